package jsonschema

import (
	"strconv"

	"github.com/tally-network/tally/model/grammar"
)

// comma is what stands between members.
func (c *compiler) comma(next node) node { return c.Text(",", c.Either(c.Text(" ", next), next)) }

// colon is what stands behind the name of a property.
func (c *compiler) colon(next node) node { return c.Text(":", c.Either(c.Text(" ", next), next)) }

// any writes any value. Arrays and objects nest so deep.
func (c *compiler) any(depth int, next node) node {
	scalars := c.Either(c.Text("null", next), c.Text("true", next), c.Text("false", next), c.decimal(next), c.string(next))
	if depth == 0 {
		c.cut = true
		return scalars
	}
	return c.Either(scalars, c.anyArray(depth, next), c.anyObject(depth, next))
}

func (c *compiler) anyArray(depth int, next node) node {
	end := c.Text("]", next)
	more := c.Loop(end, func(next node) node { return c.comma(c.any(depth-1, next)) })
	return c.Text("[", c.Either(end, c.any(depth-1, more)))
}

func (c *compiler) anyObject(depth int, next node) node {
	end := c.Text("}", next)
	one := none
	c.Loop(end, func(next node) node {
		one = c.string(c.colon(c.any(depth-1, next)))
		return c.comma(one)
	})
	return c.Text("{", c.Either(end, one))
}

// bound reads a keyword that counts; without it there is otherwise.
func bound(s *value, keyword, at string, otherwise int) (int, error) {
	v := s.get(keyword)
	if v == nil {
		return otherwise, nil
	}
	n, err := strconv.Atoi(v.text)
	if v.of != isNumber || err != nil || n < 0 {
		return 0, wrong(at, keyword, "%s is no number of at least 0, as integers are written", keyword)
	}
	return min(n, grammar.MaxStates+1), nil // more does not fit
}

// array writes an array.
func (c *compiler) array(s *value, at string, next node) (node, error) {
	lowest, err := bound(s, "minItems", at, 0)
	if err != nil {
		return none, err
	}
	most, err := bound(s, "maxItems", at, -1)
	if err != nil {
		return none, err
	}
	items, prefix := s.get("items"), []*value(nil)
	if p := s.get("prefixItems"); p != nil {
		if p.of != isArray {
			return none, wrong(at, "prefixItems", "prefixItems is no array of schemas")
		}
		prefix = p.items
	}
	if items == nil && len(prefix) == 0 && lowest == 0 && most < 0 {
		return c.anyArray(c.nesting, next), nil
	}
	if items == nil {
		items = &value{of: isBoolean, text: "true"}
	}
	if items.of == isBoolean && items.text == "false" && (most < 0 || most > len(prefix)) {
		most = len(prefix)
	}
	if most >= 0 && most < lowest {
		return none, nil
	}
	place := func(i int, next node) node { // the i-th item
		if err != nil {
			return none
		}
		of, where := items, below(at, "items")
		if i < len(prefix) {
			of, where = prefix[i], below(at, "prefixItems", strconv.Itoa(i))
		}
		n, problem := c.schema(of, where, next)
		err = problem
		return n
	}
	end := c.Text("]", next)
	counted := max(lowest, len(prefix)) // those whose number or schema matters
	after := end                        // what may come after so many
	if most >= 0 {
		counted = most
	} else {
		after = c.Loop(end, func(next node) node { return c.comma(place(counted, next)) })
	}
	if counted == 0 {
		if most == 0 {
			return c.Text("[", end), nil
		}
		return c.Text("[", c.Either(end, place(0, after))), err
	}
	for i := counted - 1; i > 0 && c.Spend(1); i-- {
		if n := c.comma(place(i, after)); i >= lowest {
			after = c.Either(end, n)
		} else {
			after = n
		}
		if err != nil {
			return none, err
		}
	}
	first := place(0, after)
	if lowest == 0 {
		first = c.Either(end, first)
	}
	return c.Text("[", first), err
}

// object writes an object: its properties in their order, and then others, if they may be.
func (c *compiler) object(s *value, at string, next node) (node, error) {
	properties, required, err := members(s, at)
	if err != nil {
		return none, err
	}
	if names := s.get("propertyNames"); names != nil && !(len(names.members) == 1 && names.get("type") != nil && names.get("type").text == string(isString)) {
		return none, wrong(at, "propertyNames", "propertyNames is supported as {\"type\":\"string\"} alone")
	}
	others := s.get("additionalProperties")
	if others == nil && len(properties) == 0 {
		return c.anyObject(c.nesting, next), nil
	}
	end := c.Text("}", next)
	first, later := end, end // after none, and after some, of those that come here or before
	if others != nil && !(others.of == isBoolean && others.text == "false") {
		one := none
		later = c.Loop(end, func(next node) node {
			if one, err = c.schema(others, below(at, "additionalProperties"), next); err == nil {
				one, err = c.otherName(properties, c.colon(one))
			}
			return c.comma(one)
		})
		if err != nil {
			return none, err
		}
		first = c.Either(end, one)
	}
	for i := len(properties) - 1; i >= 0; i-- {
		p := properties[i]
		value, err := c.schema(p.value, below(at, "properties", p.name), later)
		if err != nil {
			return none, err
		}
		one := c.Text(quote(p.name), c.colon(value))
		if required[p.name] {
			first, later = one, c.comma(one)
		} else {
			first, later = c.Either(one, first), c.Either(c.comma(one), later)
		}
	}
	return c.Text("{", first), nil
}

// members returns the properties of a schema, and which of them are required.
func members(s *value, at string) (properties []member, required map[string]bool, err error) {
	if p := s.get("properties"); p != nil {
		if p.of != isObject {
			return nil, nil, wrong(at, "properties", "properties is no object of schemas")
		}
		properties = p.members
	}
	required = map[string]bool{}
	r := s.get("required")
	if r == nil {
		return properties, required, nil
	}
	if r.of != isArray {
		return nil, nil, wrong(at, "required", "required is no array of names")
	}
	names := map[string]bool{}
	for _, p := range properties {
		names[p.name] = true
	}
	for _, name := range r.items {
		if name.of != isString || !names[name.text] {
			return nil, nil, wrong(at, "required", "required names %.60q, which is no property: add it to properties", name.text)
		}
		required[name.text] = true
	}
	return properties, required, nil
}

// otherName writes a name that is none of the properties'.
func (c *compiler) otherName(properties []member, next node) (node, error) {
	if len(properties) == 0 {
		return c.string(next), nil
	}
	b := c.Part()
	names := make([]node, 0, len(properties))
	end := b.End()
	for _, p := range properties {
		names = append(names, b.Text(quote(p.name), end))
	}
	named, err := b.Build(b.Either(names...))
	if err != nil {
		return none, err
	}
	others, err := b.Except(anyString(), named)
	if err != nil {
		return none, err
	}
	return c.Embed(others, next), nil
}
