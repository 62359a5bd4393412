package yaml

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	tree "go.yaml.in/yaml/v3"
)

// named returns an error if a name in a node is that of no field of t, or but for the case of letters. The decoder would take the
// latter, and of two such names one; of the former it says neither the line nor what is meant.
func named(n *tree.Node, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case n.Kind == tree.DocumentNode && len(n.Content) > 0:
		return named(n.Content[0], t)
	case n.Kind == tree.SequenceNode && t.Kind() == reflect.Slice:
		for _, c := range n.Content {
			if err := named(c, t.Elem()); err != nil {
				return err
			}
		}
	case n.Kind == tree.MappingNode && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		for i := 0; i+1 < len(n.Content); i += 2 {
			of, err := fieldOf(n.Content[i], t)
			if err != nil {
				return err
			}
			if of != nil {
				if err := named(n.Content[i+1], of); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// fieldOf returns the type of what a name stands for in t, nil if in nothing.
func fieldOf(key *tree.Node, t reflect.Type) (reflect.Type, error) {
	if t.Kind() == reflect.Map {
		return t.Elem(), nil
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == key.Value:
			return f.Type, nil
		case name != "" && strings.EqualFold(name, key.Value):
			return nil, fmt.Errorf("line %d: %s is written %s", key.Line, key.Value, name)
		case name != "" && name != "-":
			names = append(names, name)
		}
	}
	if len(names) == 0 || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil, nil // it reads itself
	}
	if near := nearest(key.Value, names); near != "" {
		return nil, fmt.Errorf("line %d: unknown field %q: is it %s?", key.Line, key.Value, near)
	}
	return nil, fmt.Errorf("line %d: unknown field %q: the fields here are %s", key.Line, key.Value, strings.Join(names, ", "))
}

// maxName bounds the names that others are sought for, in bytes: that takes the product of their lengths.
const maxName = 64

// nearest returns the name of which a mistyped one differs in the fewest letters, if in no more than a third; else nothing.
func nearest(mistyped string, names []string) (best string) {
	if len(mistyped) > maxName {
		return ""
	}
	least := len(mistyped)/3 + 1
	for _, name := range names {
		if d := distance(strings.ToLower(mistyped), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is how many letters are to be put in, taken out or changed to make one text of another (Levenshtein, 1965).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := left
			if a[i] != b[j] {
				change++
			}
			left = row[j+1]
			row[j+1] = min(change, left+1, row[j]+1)
		}
	}
	return row[len(b)]
}
