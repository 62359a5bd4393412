package jsonschema

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tally-network/tally/model/grammar"
)

// MaxNesting is how deep values of any schema nest at most, and a $ref within itself.
const MaxNesting = 6

// Error says what of a schema is not supported, or wrong.
type Error struct {
	At      string // where in the schema: names of keywords and properties, with dots
	Keyword string // that is refused; may be empty
	Message string
}

// Error implements error.
func (e *Error) Error() string {
	at := e.At
	if at == "" {
		at = "the schema"
	}
	return at + ": " + e.Message
}

// ErrLarge says that a schema does not fit into the bounds of automata.
var ErrLarge = fmt.Errorf("the schema is too large: it needs more than %d states. Bound fewer and shorter strings and arrays, or use fewer schemas within others", grammar.MaxStates)

// Compile returns the automaton of a schema. An error that is the schema's is an [*Error] or [ErrLarge].
func Compile(schema []byte) (*grammar.Automaton, error) {
	root, err := read(schema)
	if err != nil {
		return nil, &Error{Message: err.Error()}
	}
	return compile(root)
}

// Object returns the automaton of any JSON object.
func Object() (*grammar.Automaton, error) { return Compile([]byte(`{"type":"object"}`)) }

// compile tries how deep what nests without an end may nest.
func compile(root *value) (*grammar.Automaton, error) {
	all := grammar.NewBuilder()
	for nesting := MaxNesting; ; nesting-- {
		c := &compiler{Builder: all.Part(), root: root, nesting: nesting, within: map[*value]int{}, texts: map[*value]*grammar.Automaton{}}
		start, err := c.schema(root, "", c.End())
		var a *grammar.Automaton
		if err == nil {
			a, err = c.Build(start)
		}
		switch {
		case errors.Is(err, grammar.ErrLarge) && c.cut && nesting > 1 && all.Spend(0):
			continue
		case errors.Is(err, grammar.ErrLarge):
			return nil, ErrLarge
		case errors.Is(err, grammar.ErrEmpty):
			return nil, &Error{Message: "nothing has this schema"}
		}
		return a, err
	}
}

// compiler writes a schema as a form, from its end.
type compiler struct {
	*grammar.Builder
	root    *value
	nesting int            // how deep what nests without an end may nest
	within  map[*value]int // how often a schema that a $ref names is being written
	cut     bool           // something would have nested deeper
	texts   map[*value]*grammar.Automaton
}

// node is a place of the form.
type node = grammar.Node

// none is where nothing may come.
const none = grammar.None

// ignored are keywords that tell people something.
var ignored = []string{
	"$comment", "$defs", "$id", "$schema", "default", "definitions", "deprecated", "description", "discriminator", "example", "examples", "readOnly", "title", "writeOnly",
}

// alone are keywords beside which nothing is supported but what is ignored.
var alone = []string{"$ref", "allOf", "anyOf", "oneOf"}

// supported are the others, by the type of values that they are about; of all types if that is empty.
var supported = map[string]kind{
	"type": "", "enum": "", "const": "",
	"properties": isObject, "required": isObject, "additionalProperties": isObject, "propertyNames": isObject,
	"items": isArray, "prefixItems": isArray, "minItems": isArray, "maxItems": isArray,
	"minLength": isString, "maxLength": isString, "pattern": isString, "format": isString,
	"minimum": isNumber, "maximum": isNumber, "exclusiveMinimum": isNumber, "exclusiveMaximum": isNumber,
}

// wrong is an error at a keyword.
func wrong(at, keyword, format string, args ...any) error {
	return &Error{At: at, Keyword: keyword, Message: fmt.Sprintf(format, args...)}
}

// below names a place in a schema.
func below(at string, names ...string) string {
	for _, n := range names {
		if len(n) > 60 {
			n = n[:60] + "…"
		}
		at = strings.TrimPrefix(at+"."+n, ".")
	}
	return at
}

// steps is what reading a schema counts for, beside the nodes that it becomes.
const steps = 128

// schema writes a value of a schema before next.
func (c *compiler) schema(s *value, at string, next node) (node, error) {
	if !c.Spend(steps) {
		return none, nil
	}
	switch {
	case s.of == isBoolean && s.text == "true":
		return c.any(c.nesting, next), nil
	case s.of == isBoolean:
		return none, nil
	case s.of != isObject:
		return none, wrong(at, "", "a schema is an object, or true or false")
	}
	one, err := c.keywords(s, at)
	if err != nil {
		return none, err
	}
	switch one {
	case "$ref":
		return c.ref(s.get(one), at, next)
	case "allOf":
		of := s.get(one)
		if of.of != isArray || len(of.items) != 1 {
			return none, wrong(at, one, "allOf is supported with one schema alone: join the schemas into one")
		}
		return c.schema(of.items[0], below(at, one, "0"), next)
	case "anyOf", "oneOf":
		return c.anyOf(s, one, at, next)
	}
	types, err := typesOf(s, at)
	if err != nil {
		return none, err
	}
	if s.get("enum") != nil || s.get("const") != nil {
		return c.enum(s, at, types, next)
	}
	var all []node
	for _, t := range types {
		n, err := c.typed(t, s, at, next)
		if err != nil {
			return none, err
		}
		all = append(all, n)
	}
	return c.Either(all...), nil
}

// keywords refuses what is not supported, and returns the keyword that stands alone, if there is one.
func (c *compiler) keywords(s *value, at string) (one string, err error) {
	other := ""
	for _, m := range s.members {
		_, known := supported[m.name]
		switch {
		case slices.Contains(ignored, m.name):
		case slices.Contains(alone, m.name) && one == "":
			one = m.name
		case known, slices.Contains(alone, m.name):
			other = m.name
		default:
			return "", wrong(at, m.name, "the keyword %.60q is not supported", m.name)
		}
	}
	if one != "" && other != "" {
		return "", wrong(at, other, "the keyword %q is not supported beside %s: put it into the schemas there", other, one)
	}
	return one, nil
}

// typed writes a value of a type.
func (c *compiler) typed(t kind, s *value, at string, next node) (node, error) {
	switch t {
	case isNull:
		return c.Text("null", next), nil
	case isBoolean:
		return c.Either(c.Text("true", next), c.Text("false", next)), nil
	case integer, isNumber:
		return c.number(t, s, at, next)
	case isString:
		return c.text(s, at, next)
	case isArray:
		return c.array(s, at, next)
	}
	return c.object(s, at, next)
}

// all are the types of any value. Every integer is a number.
var all = []kind{isNull, isBoolean, isNumber, isString, isArray, isObject}

// typesOf returns the types that a schema says. If it says none, keywords about one type stand for it.
func typesOf(s *value, at string) (types []kind, err error) {
	t := s.get("type")
	if t == nil {
		for _, m := range s.members {
			if of := supported[m.name]; of != "" && !slices.Contains(types, of) {
				types = append(types, of)
			}
		}
		if len(types) == 0 {
			types = all
		}
		return types, nil
	}
	names := t.items
	if t.of == isString {
		names = []*value{t}
	}
	for _, n := range names {
		k := kind(n.text)
		if n.of != isString || k != integer && !slices.Contains(all, k) {
			return nil, wrong(at, "type", "type names no type of JSON: want string, number, integer, boolean, object, array or null")
		}
		if !slices.Contains(types, k) {
			types = append(types, k)
		}
	}
	if len(types) == 0 {
		return nil, wrong(at, "type", "type is neither a string nor an array of them")
	}
	if slices.Contains(types, isNumber) {
		types = slices.DeleteFunc(types, func(k kind) bool { return k == integer })
	}
	return types, nil
}

// ref writes a schema that is named.
func (c *compiler) ref(name *value, at string, next node) (node, error) {
	to := c.resolve(name)
	if to == nil {
		return none, wrong(at, "$ref", "$ref %.80q is not supported: want a place in this schema, as #/$defs/name", name.text)
	}
	if c.within[to] >= c.nesting {
		c.cut = true
		return none, nil
	}
	c.within[to]++
	defer func() { c.within[to]-- }()
	return c.schema(to, name.text, next)
}

// resolve returns the value that a reference names, nil if there is none here.
func (c *compiler) resolve(name *value) *value {
	path, ok := strings.CutPrefix(name.text, "#")
	if path, err := url.PathUnescape(path); name.of != isString || !ok || err != nil || path != "" && path[0] != '/' {
		return nil
	} else if path != "" {
		to := c.root
		for _, part := range strings.Split(path[1:], "/") {
			part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
			if i, err := strconv.Atoi(part); to.of == isArray && err == nil && i >= 0 && i < len(to.items) {
				to = to.items[i]
			} else if to = to.get(part); to == nil {
				return nil
			}
		}
		return to
	}
	return c.root
}

// anyOf writes a value of any of several schemas. Of oneOf these must be told apart by a property.
func (c *compiler) anyOf(s *value, keyword, at string, next node) (node, error) {
	list := s.get(keyword)
	if list.of != isArray || len(list.items) == 0 {
		return none, wrong(at, keyword, "%s is no array of schemas", keyword)
	}
	if keyword == "oneOf" && len(list.items) > 1 && !c.toldApart(list.items) {
		return none, wrong(at, keyword, "oneOf is supported where all schemas are objects that require a property, which is a constant string of its own in each: use anyOf")
	}
	var nodes []node
	for i, of := range list.items {
		n, err := c.schema(of, below(at, keyword, strconv.Itoa(i)), next)
		if err != nil {
			return none, err
		}
		nodes = append(nodes, n)
	}
	return c.Either(nodes...), nil
}

// toldApart reports whether objects of the schemas differ by a property that all require.
func (c *compiler) toldApart(schemas []*value) bool {
	first := c.followed(schemas[0])
	if first == nil || first.get("properties") == nil {
		return false
	}
	for _, p := range first.get("properties").members {
		seen := map[string]bool{}
		apart := !slices.ContainsFunc(schemas, func(s *value) bool { return !c.marks(s, p.name, seen) })
		if apart {
			return true
		}
	}
	return false
}

// marks reports whether a schema of objects requires a property to be one of some strings that were not seen, and adds these.
func (c *compiler) marks(s *value, name string, seen map[string]bool) bool {
	s = c.followed(s)
	if s == nil || s.get("type") == nil || s.get("type").text != string(isObject) || s.get("properties") == nil || s.get("required") == nil {
		return false
	}
	if !slices.ContainsFunc(s.get("required").items, func(r *value) bool { return r.of == isString && r.text == name }) {
		return false
	}
	p := s.get("properties").get(name)
	if p == nil {
		return false
	}
	values := []*value{p.get("const")}
	if values[0] == nil {
		if p.get("enum") == nil {
			return false
		}
		values = p.get("enum").items
	}
	for _, v := range values {
		if v.of != isString || seen[v.text] {
			return false
		}
		seen[v.text] = true
	}
	return true
}

// followed returns the schema that a chain of references ends with, nil if it does not.
func (c *compiler) followed(s *value) *value {
	for range maxDepth {
		if s == nil || s.of != isObject {
			return nil
		}
		name := s.get("$ref")
		if name == nil {
			return s
		}
		s = c.resolve(name)
	}
	return nil
}

// enum writes one of the values that a schema lists, if it is of its types.
func (c *compiler) enum(s *value, at string, types []kind, next node) (node, error) {
	if s.get("type") == nil {
		types = all
	}
	for _, m := range s.members {
		if supported[m.name] != "" {
			return none, wrong(at, m.name, "the keyword %q is not supported beside enum and const", m.name)
		}
	}
	list := s.get("enum")
	if list == nil {
		list = &value{of: isArray, items: []*value{s.get("const")}}
	} else if s.get("const") != nil {
		return none, wrong(at, "const", "the keyword \"const\" is not supported beside enum")
	}
	if list.of != isArray || len(list.items) == 0 {
		return none, wrong(at, "enum", "enum is no array of values")
	}
	var nodes []node
	for _, v := range list.items {
		of := v.of
		if of == isNumber && !strings.ContainsAny(v.text, ".eE") && slices.Contains(types, integer) {
			of = integer
		}
		if slices.Contains(types, of) {
			var b strings.Builder
			v.write(&b)
			nodes = append(nodes, c.Text(b.String(), next))
		}
	}
	return c.Either(nodes...), nil
}
