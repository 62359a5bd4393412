package yaml

import (
	"fmt"
	"reflect"
	"strings"

	tree "go.yaml.in/yaml/v3"
)

// named returns an error if a name in a node is that of a field of t but for the case of letters.
// The decoder would take it, and of two such names one.
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
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == key.Value:
			return f.Type, nil
		case name != "" && strings.EqualFold(name, key.Value):
			return nil, fmt.Errorf("line %d: %s is written %s", key.Line, key.Value, name)
		}
	}
	return nil, nil
}
