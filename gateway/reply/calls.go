package reply

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/tally-network/tally/format/chat"
)

// Marks by which models call tools.
const (
	hermesOpen  = "<tool_call>"
	hermesClose = "</tool_call>"
	mistral     = "[TOOL_CALLS]"
	mistralArgs = "[ARGS]"
	llama       = "<|python_tag|>"
)

// callMarkers may be special tokens, which are no text otherwise.
var callMarkers = []string{hermesOpen, hermesClose, mistral, mistralArgs, llama}

// callOpeners begin calls.
var callOpeners = []string{hermesOpen, mistral, llama}

// maxCalls bounds the calls of a reply.
const maxCalls = 64

// caller finds calls of tools in a text that comes in pieces. What looks like a call and is none stays text.
type caller struct {
	known map[string]bool
	held  string // text that is not certain yet
	mark  string // that opened what is held; "{" for an object that a text begins with
	begun bool   // text was given, so that an object is no call any more
	count int    // calls so far
}

func newCaller(tools []Tool) *caller {
	c := &caller{known: map[string]bool{}}
	for _, t := range tools {
		c.known[t.Name] = true
	}
	return c
}

// push takes a piece of text and returns what is certain.
func (c *caller) push(text string) (string, []Call) {
	from := max(0, len(c.held)-len(hermesClose)) // no earlier end can have been missed
	c.held += text
	var out strings.Builder
	var calls []Call
	for {
		if c.mark == "" {
			c.open(&out)
			from = 0
		}
		if c.mark != hermesOpen {
			return out.String(), calls
		}
		i := strings.Index(c.held[from:], hermesClose)
		if i < 0 {
			return out.String(), calls
		}
		inner, whole := c.held[len(hermesOpen):from+i], c.held[:from+i+len(hermesClose)]
		found := c.parse(inner)
		if found == nil {
			out.WriteString(whole)
			c.begun = true
		}
		calls = append(calls, found...)
		c.held, c.mark = c.held[len(whole):], ""
	}
}

// open gives text up to where a call begins, or may begin.
func (c *caller) open(out *strings.Builder) {
	body := strings.TrimLeftFunc(c.held, unicode.IsSpace)
	if !c.begun && c.count == 0 && strings.HasPrefix(body, "{") {
		c.mark = "{"
		return
	}
	at, mark := len(c.held), ""
	for _, m := range callOpeners {
		if i := strings.Index(c.held, m); i >= 0 && i < at {
			at, mark = i, m
		}
	}
	sure := c.held[:at]
	if mark == "" {
		sure = sure[:len(sure)-partial(sure, callOpeners)]
	}
	sure = strings.TrimRightFunc(sure, unicode.IsSpace) // white space before a call is no text
	if mark != "" {
		c.held, c.mark = c.held[at:], mark
	} else {
		c.held = c.held[len(sure):]
	}
	if c.count > 0 && strings.TrimSpace(sure) == "" {
		return
	}
	out.WriteString(sure)
	c.begun = c.begun || sure != ""
}

// close returns what is left at the end.
func (c *caller) close() (string, []Call) {
	held := c.held
	c.held = ""
	var calls []Call
	switch c.mark {
	case "":
		if c.count > 0 && strings.TrimSpace(held) == "" {
			held = ""
		}
		return held, nil
	case "{":
		calls = c.parse(held)
	case mistral:
		calls = c.parseMistral(strings.TrimPrefix(held, mistral))
	default:
		calls = c.parse(strings.TrimPrefix(held, c.mark))
	}
	if calls == nil {
		return held, nil
	}
	return "", calls
}

// parse returns the calls of a text that is nothing else: objects, alone, in an array, or with semicolons between them.
func (c *caller) parse(text string) (calls []Call) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "[") {
		var all []json.RawMessage
		if json.Unmarshal([]byte(text), &all) != nil || len(all) == 0 {
			return nil
		}
		for _, one := range all {
			call, ok := c.parseOne(one)
			if !ok {
				return nil
			}
			calls = append(calls, call)
		}
		return c.accept(calls)
	}
	for text != "" {
		var one json.RawMessage
		d := json.NewDecoder(strings.NewReader(text))
		if d.Decode(&one) != nil {
			return nil
		}
		call, ok := c.parseOne(one)
		if !ok {
			return nil
		}
		calls = append(calls, call)
		text = strings.TrimLeft(text[d.InputOffset():], "; \t\r\n")
	}
	return c.accept(calls)
}

// parseMistral reads what follows Mistral's mark: an array of calls, or a name and its arguments for each mark.
func (c *caller) parseMistral(text string) (calls []Call) {
	if !strings.Contains(text, mistralArgs) {
		return c.parse(text)
	}
	for _, one := range strings.Split(text, mistral) {
		name, args, _ := strings.Cut(one, mistralArgs)
		name, _, _ = strings.Cut(name, "[CALL_ID]")
		call, ok := c.call(strings.TrimSpace(name), json.RawMessage(strings.TrimSpace(args)))
		if !ok {
			return nil
		}
		calls = append(calls, call)
	}
	return c.accept(calls)
}

func (c *caller) parseOne(text []byte) (Call, bool) {
	var one struct {
		Name       string          `json:"name"`
		Arguments  json.RawMessage `json:"arguments"`
		Parameters json.RawMessage `json:"parameters"`
	}
	if json.Unmarshal(text, &one) != nil {
		return Call{}, false
	}
	if one.Arguments == nil {
		one.Arguments = one.Parameters
	}
	return c.call(one.Name, one.Arguments)
}

func (c *caller) call(name string, args json.RawMessage) (Call, bool) {
	object, err := Arguments(args)
	if err != nil || !c.known[name] {
		return Call{}, false
	}
	return Call{ID: NewID(9), Name: name, Arguments: object}, true // Mistral's template takes ids of nine letters alone
}

// accept counts calls, unless there are too many.
func (c *caller) accept(calls []Call) []Call {
	if c.count+len(calls) > maxCalls {
		return nil
	}
	c.count += len(calls)
	return calls
}

// Arguments returns the object of a call's arguments: see [chat.Arguments].
func Arguments(text json.RawMessage) (json.RawMessage, error) { return chat.Arguments(text) }
