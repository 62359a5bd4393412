package onnx

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/elements"
)

// validate returns an error unless g, in canonical order, can be written and
// read back.
func validate(g *graph.Graph) error {
	if err := checkName(g.Name); err != nil {
		return fmt.Errorf("name of the graph: %w", err)
	}
	for _, v := range g.Inputs {
		if err := checkValue(v); err != nil {
			return fmt.Errorf("input %q: %w", v.Name, err)
		}
	}
	given := make(map[string]bool, len(g.Outputs))
	for _, v := range g.Outputs {
		if err := checkValue(v); err != nil {
			return fmt.Errorf("output %q: %w", v.Name, err)
		}
		if given[v.Name] {
			return fmt.Errorf("output %q is given twice: copy it with Identity", v.Name)
		}
		given[v.Name] = true
	}
	return checkBody(g)
}

// checkBody checks what a graph holds. Graphs lie inside others to a limited
// depth.
func checkBody(g *graph.Graph) error {
	for _, c := range g.Consts {
		err := checkName(c.Name)
		if err == nil {
			err = checkTensor(c.Tensor)
		}
		if err != nil {
			return fmt.Errorf("initializer %q: %w", c.Name, err)
		}
	}
	for i := range g.Nodes {
		if err := checkNode(&g.Nodes[i]); err != nil {
			return fmt.Errorf("%s: %w", nodeLabel(i, &g.Nodes[i]), err)
		}
	}
	return nil
}

func checkValue(v graph.Value) error {
	if err := checkName(v.Name); err != nil {
		return err
	}
	if !v.Type.Valid() {
		return fmt.Errorf("unknown element type %d", uint8(v.Type))
	}
	_, err := elements.Size(v.Type, v.Shape)
	return err
}

func checkTensor(t *tensor.Tensor) error {
	if t == nil || !t.Type.Valid() {
		return errors.New("no tensor is given")
	}
	return nil
}

// checkName refuses names that ONNX does not allow. Empty ones mean absence.
func checkName(s string) error {
	if s == "" {
		return errors.New("the name is empty")
	}
	return checkText(s)
}

func checkText(s string) error {
	if len(s) > graph.MaxName {
		return fmt.Errorf("%d bytes, limit %d", len(s), graph.MaxName)
	}
	if !utf8.ValidString(s) {
		return errors.New("text is not UTF-8")
	}
	return nil
}

func checkNode(n *graph.Node) error {
	if err := checkName(n.Op); err != nil {
		return fmt.Errorf("operator: %w", err)
	}
	if len(n.Outputs) == 0 {
		return errors.New("the node has no output")
	}
	for _, list := range [][]string{{n.Name}, n.Inputs, n.Outputs} {
		for _, s := range list {
			if err := checkText(s); err != nil {
				return fmt.Errorf("name %.64q…: %w", s, err)
			}
		}
	}
	for i := range n.Attrs {
		a := &n.Attrs[i]
		err := checkName(a.Name)
		switch {
		case err != nil:
		case i > 0 && n.Attrs[i-1].Name == a.Name:
			err = errors.New("given twice")
		case i > 0 && n.Attrs[i-1].Name > a.Name:
			err = errors.New("attributes are not in order of their names")
		case int(a.Kind) >= len(attrKinds) || attrKinds[a.Kind].field == 0:
			err = fmt.Errorf("unknown kind %d", a.Kind)
		case a.Kind == graph.AttrString && len(a.String) > windowSize:
			err = fmt.Errorf("%d bytes, limit %d", len(a.String), windowSize)
		case a.Kind == graph.AttrTensor:
			err = checkTensor(a.Tensor)
		case a.Kind == graph.AttrGraph && a.Graph == nil:
			err = errors.New("no graph is given")
		case a.Kind == graph.AttrGraph:
			err = checkBody(a.Graph)
		}
		if err != nil {
			return fmt.Errorf("attribute %q: %w", a.Name, err)
		}
	}
	return nil
}
