// Package yaml reads YAML that people write: one document, in which every value stands for
// itself.
//
// [Decode] reads into fields with json tags. Callers that decode by other means call [Plain]
// first.
//
// Invariant: what is read takes memory in proportion to its bytes, which callers bound.
// Anchors and aliases, by which a few lines become billions of values, are refused before
// anything is made of them.
//
// Source: YAML 1.2, without §7.1 (alias nodes).
package yaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"

	tree "go.yaml.in/yaml/v3"
	strict "sigs.k8s.io/yaml"
)

// Decode reads text into what v points to, by its json tags. Fields that are not known, or
// occur twice, or in other letters, are refused; those that are not given stay as they are.
func Decode(text []byte, v any) error {
	n, err := document(text)
	if err == nil {
		err = named(&n, reflect.TypeOf(v))
	}
	if err != nil {
		return err
	}
	if err := strict.UnmarshalStrict(text, v); err != nil {
		return explain(text, v, err)
	}
	return nil
}

// Plain returns an error unless text is at most one YAML document, without anchors and
// aliases. It expands nothing.
func Plain(text []byte) error {
	_, err := document(text)
	return err
}

// document returns the tree of a plain text, which has nothing in it if the text has no document.
func document(text []byte) (n tree.Node, err error) {
	d := tree.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&n); errors.Is(err, io.EOF) {
		return tree.Node{}, nil
	} else if err != nil {
		return n, err
	}
	if err := d.Decode(new(tree.Node)); !errors.Is(err, io.EOF) {
		return n, errors.New("more follows the end of the document: one YAML document is enough")
	}
	return n, plain(&n)
}

// truths are what YAML 1.1 takes for true or false, which readers of today may do, too.
var truths = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false)$`)

func plain(n *tree.Node) error {
	if n.Kind == tree.AliasNode || n.Anchor != "" {
		return fmt.Errorf("yaml: line %d: anchors and aliases (&name, *name) are not read here: write the value out", n.Line)
	}
	if n.Kind == tree.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			if k := n.Content[i]; k.Style == 0 && truths.MatchString(k.Value) {
				return fmt.Errorf("yaml: line %d: the name %s stands for true or false in YAML: write it in quotes, as %q", k.Line, k.Value, k.Value)
			}
		}
	}
	for _, c := range n.Content { // as deep as the parser allows
		if err := plain(c); err != nil {
			return err
		}
	}
	return nil
}
