package yaml

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	tree "go.yaml.in/yaml/v3"
	strict "sigs.k8s.io/yaml"
)

// Bounds on what is looked at to find what is wrong: values, and how deep they lie.
const maxTries, maxDepth = 1000, 16

// explain says where in text the first value is that v does not take: it gives v's type
// each by itself. Where none is wrong alone, it returns why the whole is.
func explain(text []byte, v any, whole error) error {
	var root tree.Node
	if err := tree.Unmarshal(text, &root); err != nil || len(root.Content) == 0 || deeper(&root, maxDepth) {
		return plainly(whole, "")
	}
	tries := 0
	var search func(n *tree.Node, path []string) error
	search = func(n *tree.Node, path []string) error {
		if n.Kind == tree.MappingNode {
			for i := 0; i+1 < len(n.Content); i += 2 {
				key := n.Content[i]
				if err := search(n.Content[i+1], append(path[:len(path):len(path)], key.Value)); err != nil {
					return err
				}
			}
			return nil
		}
		if tries++; tries > maxTries || len(path) == 0 {
			return nil
		}
		if err := alone(n, path, v); err != nil {
			return fmt.Errorf("line %d: %s: %w", n.Line, strings.Join(path, "."), plainly(err, n.Value))
		}
		return nil
	}
	if err := search(root.Content[0], nil); err != nil {
		return err
	}
	return plainly(whole, "")
}

func deeper(n *tree.Node, depth int) bool {
	return depth == 0 || slices.ContainsFunc(n.Content, func(c *tree.Node) bool { return deeper(c, depth-1) })
}

// alone decodes one value, in the fields that hold it, into a new value of v's type.
func alone(n *tree.Node, path []string, v any) error {
	for i := len(path) - 1; i >= 0; i-- {
		key := &tree.Node{Kind: tree.ScalarNode, Value: path[i]}
		n = &tree.Node{Kind: tree.MappingNode, Content: []*tree.Node{key, n}}
	}
	text, err := tree.Marshal(n)
	if err != nil {
		return nil // nothing that a person could correct
	}
	return strict.UnmarshalStrict(text, reflect.New(reflect.TypeOf(v).Elem()).Interface())
}

// plainly says what is wrong with a value without the decoder's words.
func plainly(err error, value string) error {
	if t := (*json.UnmarshalTypeError)(nil); errors.As(err, &t) {
		if value == "" || t.Value == "object" || t.Value == "array" {
			value = t.Value
		}
		if u, ok := reflect.New(t.Type).Interface().(encoding.TextUnmarshaler); ok {
			if err := u.UnmarshalText([]byte(value)); err != nil {
				return err // it says how such values are written
			}
		}
		return fmt.Errorf("%q is not %s", value, wanted(t.Type.Kind().String()))
	}
	return errors.New(decoders.ReplaceAllString(err.Error(), ""))
}

var decoders = regexp.MustCompile(`^(error (unmarshaling JSON|converting YAML to JSON): |while decoding JSON: |json: |yaml: )+`)

// wanted describes a kind of Go's, with an example.
func wanted(kind string) string {
	switch {
	case strings.HasPrefix(kind, "uint"):
		return "a whole number from 0 on, such as 8"
	case strings.HasPrefix(kind, "int"):
		return "a whole number, such as 8"
	case strings.HasPrefix(kind, "float"):
		return "a number, such as 0.005"
	case kind == "bool":
		return "true or false"
	case kind == "string":
		return "a text, such as \"name\""
	case kind == "slice", strings.HasPrefix(kind, "[]"):
		return "a list, such as [a, b]"
	case strings.HasSuffix(kind, "Duration"):
		return "a time, such as 90s, 10m or 2h"
	}
	return "a group of fields, each on a line of its own"
}

// mistyped is how the parser of trees puts it.
var mistyped = regexp.MustCompile("line ([0-9]+): cannot unmarshal !!\\w+(?: `(.*)`)? into (\\S+)")

// Plainly returns the error of a decoder of trees about text in plain words, with the
// fields that it is about.
func Plainly(text []byte, err error) error {
	if t := (*tree.TypeError)(nil); !errors.As(err, &t) {
		return err
	}
	var root tree.Node
	if tree.Unmarshal(text, &root) != nil {
		return err
	}
	words := mistyped.ReplaceAllStringFunc(err.Error(), func(s string) string {
		m := mistyped.FindStringSubmatch(s)
		key, value := at(&root, m[1], "")
		if key == "" {
			key, value = "a value", m[2]
		}
		return fmt.Sprintf("line %s: %s: %q is not %s", m[1], key, value, wanted(m[3]))
	})
	return errors.New(strings.TrimPrefix(words, "yaml: unmarshal errors:\n  "))
}

// at returns the path of the field in a line, and its value.
func at(n *tree.Node, line, path string) (key, value string) {
	step := 1
	if n.Kind == tree.MappingNode {
		step = 2
	}
	for i := step - 1; i < len(n.Content); i += step {
		name, c := path, n.Content[i]
		if step == 2 {
			name = strings.TrimPrefix(path+"."+n.Content[i-1].Value, ".")
		}
		if step == 2 && fmt.Sprint(c.Line) == line {
			return name, c.Value
		}
		if key, value = at(c, line, name); key != "" {
			return key, value
		}
	}
	return "", ""
}
