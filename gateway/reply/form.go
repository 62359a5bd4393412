package reply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/model/grammar"
	"github.com/tally-network/tally/model/grammar/jsonschema"
)

// Format is what a reply's text shall be: JSON of a schema.
type Format struct {
	Field  string // in which the schema stands, for faults
	Schema json.RawMessage
}

// AnyObject is the schema of any JSON object.
var AnyObject = json.RawMessage(`{"type":"object"}`)

// ReadFormat reads a format as OpenAI's APIs write it: {"type": "text"}, which is none, {"type": "json_object"}, or json_schema with a
// schema, in the object itself or in its member json_schema.
func ReadFormat(field string, text json.RawMessage) (*Format, error) {
	if api.IsNull(text) {
		return nil, nil
	}
	var f struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema"`
		Within *struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	if err := api.Decode(field, text, &f); err != nil {
		return nil, err
	}
	switch f.Type {
	case "text":
		return nil, nil
	case "json_object":
		return &Format{field, AnyObject}, nil
	case "json_schema":
	default:
		return nil, api.Unsupported(field+".type", "%s is of type %.60q, which is not supported: want text, json_object or json_schema", field, f.Type)
	}
	at, schema := field+".schema", f.Schema
	if f.Within != nil {
		at, schema = field+".json_schema.schema", f.Within.Schema
	}
	if api.IsNull(schema) {
		return nil, api.Invalid(at, "%s is missing: want a JSON schema", at)
	}
	return &Format{at, schema}, nil
}

// invalidSchema is a fault of a schema, as OpenAI calls it.
func invalidSchema(field string, err error) error {
	return &api.Fault{Status: http.StatusBadRequest, Code: "invalid_json_schema", Param: field, Message: field + ": " + err.Error()}
}

// forms keeps what schemas were turned into.
var forms = struct {
	sync.Mutex
	made map[[32]byte]*grammar.Automaton
	used [][32]byte // the last used last
}{made: map[[32]byte]*grammar.Automaton{}}

// maxForms is how many of these are kept, each of which takes up to 3 MB.
const maxForms = 64

// compiled returns the form of a schema. The caller has a turn of toEncode.
func compiled(schema json.RawMessage) (*grammar.Automaton, error) {
	id := sha256.Sum256(schema)
	forms.Lock()
	form := forms.made[id]
	forms.Unlock()
	if form == nil {
		var err error
		if form, err = jsonschema.Compile(schema); err != nil {
			return nil, err
		}
	}
	forms.Lock()
	defer forms.Unlock()
	forms.made[id] = form
	forms.used = append(slices.DeleteFunc(forms.used, func(x [32]byte) bool { return x == id }), id)
	if len(forms.used) > maxForms {
		delete(forms.made, forms.used[0])
		forms.used = forms.used[1:]
	}
	return form, nil
}

// form returns what replies are bound to: calls of tools if they must be, and else the format, or calls if there are tools beside it.
func (a *Ask) form(ctx context.Context) (*grammar.Automaton, error) {
	var tools []Tool
	if a.Chat != nil {
		tools = a.Chat.Tools
	}
	if a.Format == nil && a.MustCall == nil {
		return nil, nil
	}
	done, err := toEncode(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	b := grammar.NewBuilder()
	end := b.End()
	var nodes []grammar.Node
	if a.MustCall != nil {
		tools = a.MustCall
	} else {
		form, err := compiled(a.Format.Schema)
		if err != nil {
			return nil, invalidSchema(a.Format.Field, err)
		}
		if len(tools) == 0 {
			return form, nil
		}
		nodes = append(nodes, b.Embed(form, end))
	}
	for _, t := range tools {
		schema := t.Parameters
		if schema == nil {
			schema = AnyObject
		}
		form, err := compiled(schema)
		if err != nil {
			return nil, invalidSchema("tools", errors.New("the parameters of "+t.Name+": "+err.Error()))
		}
		name, err := json.Marshal(t.Name)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, b.Text(`{"name": `+string(name)+`, "arguments": `, b.Embed(form, b.Text("}", end))))
	}
	form, err := b.Build(b.Either(nodes...))
	if err != nil {
		return nil, invalidSchema("tools", errors.New("all tools together: "+err.Error()))
	}
	return form, nil
}

// formField is the field that asks for a form.
func (a *Ask) formField() string {
	if a.Format != nil {
		return a.Format.Field
	}
	return "tool_choice"
}

// Choose returns the tools of which a reply must call one: the one of a name, or any, if that is empty.
func Choose(tools []Tool, name string) ([]Tool, error) {
	if name == "" && len(tools) > 0 {
		return tools, nil
	}
	for _, t := range tools {
		if t.Name == name {
			return []Tool{t}, nil
		}
	}
	return nil, api.Invalid("tool_choice", "tool_choice asks for a tool %.60q, which is not among the tools", name)
}
