package onnx

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
)

// functionOf is a function of the model, in the domain "own".
func functionOf(name string, in, out []string, parts ...[]byte) []byte {
	b := [][]byte{str(functionName, name), str(functionDomain, "own"), msg(functionOpset, num(opsetVersion, 21))}
	for _, s := range in {
		b = append(b, str(functionInput, s))
	}
	for _, s := range out {
		b = append(b, str(functionOutput, s))
	}
	return msg(modelFunction, append(b, parts...)...)
}

// inside is a node of a function: the field has another number there.
func inside(node []byte) []byte { return append([]byte{functionNode<<3 | 2}, node[1:]...) }

// callOf is a node of the domain "own".
func callOf(op string, in, out []string, attrs ...[]byte) []byte {
	return nodeOf(op, in, out, append(attrs, str(nodeDomain, "own"))...)
}

// refAttr is an attribute whose value is the function's attribute from.
func refAttr(name, from string, kind graph.AttrKind) []byte {
	return msg(nodeAttr, str(attrName, name), str(attrRef, from), num(attrKind, int64(kind)))
}

// listed returns operators, inputs, outputs and attributes of nodes.
func listed(g *graph.Graph) string {
	var s strings.Builder
	for _, n := range g.Nodes {
		fmt.Fprintf(&s, "%s(%s)%s", n.Op, strings.Join(n.Inputs, ","), strings.Join(n.Outputs, ","))
		for _, a := range n.Attrs {
			fmt.Fprintf(&s, " %s=%d", a.Name, a.Int)
		}
		s.WriteString("; ")
	}
	return s.String()
}

func TestFunctionsAreCalledInPlace(t *testing.T) {
	x, y := []string{"x"}, []string{"y"}
	twice := functionOf("Twice", []string{"a"}, []string{"b"}, inside(nodeOf("Add", []string{"a", "a"}, []string{"b"})))
	for name, c := range map[string]struct {
		node  []byte
		parts [][]byte
		want  string
	}{
		"one node": {callOf("Twice", x, y), [][]byte{twice}, "Add(x,x)y; "},
		"inner names": {callOf("Chain", x, y), [][]byte{functionOf("Chain", []string{"a"}, []string{"c"},
			inside(nodeOf("Neg", []string{"a"}, []string{"b"})), inside(nodeOf("Abs", []string{"b"}, []string{"c"})))}, "Neg(x)Chain.1.b; Abs(Chain.1.b)y; "},
		"a function in a function": {callOf("Four", x, y), [][]byte{twice, functionOf("Four", []string{"a"}, []string{"c"},
			inside(callOf("Twice", []string{"a"}, []string{"b"})), inside(callOf("Twice", []string{"b"}, []string{"c"})))}, "Add(x,x)Four.3.b; Add(Four.3.b,Four.3.b)y; "},
		"attribute given": {callOf("Flat", x, y, intAttr("at", 1)), [][]byte{functionOf("Flat", []string{"a"}, []string{"b"}, str(functionAttr, "at"),
			inside(nodeOf("Flatten", []string{"a"}, []string{"b"}, refAttr("axis", "at", graph.AttrInt))))}, "Flatten(x)y axis=1; "},
		"attribute not given": {callOf("Flat", x, y), [][]byte{functionOf("Flat", []string{"a"}, []string{"b"}, str(functionAttr, "at"),
			inside(nodeOf("Flatten", []string{"a"}, []string{"b"}, refAttr("axis", "at", graph.AttrInt))))}, "Flatten(x)y; "},
		"attribute by default": {callOf("Flat", x, y), [][]byte{functionOf("Flat", []string{"a"}, []string{"b"}, append([]byte{functionDefault<<3 | 2}, intAttr("at", 2)[1:]...),
			inside(nodeOf("Flatten", []string{"a"}, []string{"b"}, refAttr("axis", "at", graph.AttrInt))))}, "Flatten(x)y axis=2; "},
		"attribute passed on": {callOf("Outer", x, y, intAttr("o", 2)), [][]byte{
			functionOf("Flat", []string{"a"}, []string{"b"}, str(functionAttr, "at"), inside(nodeOf("Flatten", []string{"a"}, []string{"b"}, refAttr("axis", "at", graph.AttrInt)))),
			functionOf("Outer", []string{"a"}, []string{"b"}, str(functionAttr, "o"), inside(callOf("Flat", []string{"a"}, []string{"b"}, refAttr("at", "o", graph.AttrInt)))),
		}, "Flatten(x)y axis=2; "},
		"an input that is an output": {callOf("Same", x, y), [][]byte{functionOf("Same", []string{"a"}, []string{"a"})}, "Identity(x)y; "},
		"inputs left out": {callOf("Clipped", x, y), [][]byte{functionOf("Clipped", []string{"a", "lo"}, []string{"b", "c"},
			inside(nodeOf("Clip", []string{"a", "lo"}, []string{"b"})), inside(nodeOf("Neg", []string{"a"}, []string{"c"})))}, "Clip(x,)y; "},
		"its own operator set": {callOf("Old", x, y), [][]byte{oldFunction()}, "Squeeze(x,Old.1.b.axes)y; "},
		"a standard name": {nodeOf("Relu", x, y), [][]byte{msg(modelFunction, str(functionName, "Relu"), str(functionInput, "a"), str(functionOutput, "b"),
			inside(nodeOf("Abs", []string{"a"}, []string{"b"})))}, "Abs(x)y; "},
	} {
		file := join(append([][]byte{model(21, c.node, input("x", 1, 2), output("y", 1, 2))}, c.parts...)...)
		g, err := read(file, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := listed(g); got != c.want {
			t.Errorf("%s: %s\nwanted %s", name, got, c.want)
		}
	}
}

// oldFunction is of an operator set in which Squeeze had an attribute.
func oldFunction() []byte {
	return msg(modelFunction, str(functionName, "Old"), str(functionDomain, "own"), msg(functionOpset, num(opsetVersion, 11)), str(functionInput, "a"), str(functionOutput, "b"),
		inside(nodeOf("Squeeze", []string{"a"}, []string{"b"}, intsAttr("axes", 0))))
}

func TestFunctionsAreRefused(t *testing.T) {
	x, y := []string{"x"}, []string{"y"}
	neg := inside(nodeOf("Neg", []string{"a"}, []string{"b"}))
	a, b := []string{"a"}, []string{"b"}
	deep := func(n int) (all [][]byte) {
		for i := range n {
			all = append(all, functionOf(fmt.Sprint("F", i), a, b, inside(callOf(fmt.Sprint("F", i+1), a, b))))
		}
		return append(all, functionOf(fmt.Sprint("F", n), a, b, neg))
	}
	for name, c := range map[string]struct {
		node        []byte
		functions   [][]byte
		want        string
		unsupported bool
	}{
		"calls itself":      {callOf("F", x, y), [][]byte{functionOf("F", a, b, inside(callOf("F", a, b)))}, "it calls itself", false},
		"through another":   {callOf("F", x, y), [][]byte{functionOf("F", a, b, inside(callOf("G", a, b))), functionOf("G", a, b, inside(callOf("F", a, b)))}, "it calls itself", false},
		"not there":         {callOf("F", x, y), nil, `operator domain "own"`, true},
		"too many inputs":   {callOf("F", []string{"x", "x"}, y), [][]byte{functionOf("F", a, b, neg)}, "2 inputs and 1 outputs, where it has 1 and 1", false},
		"unknown attribute": {callOf("F", x, y, intAttr("k", 1)), [][]byte{functionOf("F", a, b, neg)}, `it has no attribute "k"`, false},
		"attribute of another kind": {callOf("F", x, y, textAttr("k", "1")), [][]byte{functionOf("F", a, b, str(functionAttr, "k"),
			inside(nodeOf("Flatten", a, b, refAttr("axis", "k", graph.AttrInt))))}, `attribute "k" is a string, where kind 2 is wanted`, false},
		"undefined inside": {callOf("F", x, y), [][]byte{functionOf("F", a, b, inside(nodeOf("Neg", []string{"x"}, b)))}, "is not defined", false},
		"old":              {callOf("F", x, y), [][]byte{msg(modelFunction, str(functionName, "F"), str(functionDomain, "own"), msg(functionOpset, num(opsetVersion, 3)))}, "operator set 3", true},
		"deep":             {callOf("F0", x, y), deep(20), "more than 8 deep", true},
		"overload":         {callOf("F", x, y, str(nodeOverload, "o")), [][]byte{functionOf("F", a, b, neg)}, "overload", true},
		"long names":       {callOf("F", x, y), [][]byte{functionOf("F", a, b, inside(nodeOf("Neg", []string{strings.Repeat("n", graph.MaxName)}, b)))}, "too long", false},
	} {
		file := join(append([][]byte{model(21, c.node, input("x", 1, 2), output("y", 1, 2))}, c.functions...)...)
		g, err := read(file, Options{})
		switch {
		case err == nil:
			t.Errorf("%s: read as %s", name, listed(g))
		case !strings.Contains(err.Error(), c.want) || errors.Is(err, errors.ErrUnsupported) != c.unsupported:
			t.Errorf("%s: %v\nwanted %s", name, err, c.want)
		}
	}
	if _, err := read(join(append([][]byte{model(21, callOf("F0", x, y), input("x", 1, 2), output("y", 1, 2))}, deep(7)...)...), Options{}); err != nil {
		t.Errorf("8 functions in each other: %v", err)
	}
}

// bodyAttr is an attribute that is a graph.
func bodyAttr(name string, parts ...[]byte) []byte {
	return msg(nodeAttr, str(attrName, name), msg(attrGraph, parts...), num(attrKind, int64(graph.AttrGraph)))
}

func TestGraphsInNodes(t *testing.T) {
	in, out := func(s string) []byte { return msg(graphInput, str(valueName, s)) }, func(s string) []byte { return msg(graphOutput, str(valueName, s)) }
	inner := nodeOf("If", []string{"p"}, []string{"r"},
		bodyAttr("then_branch", nodeOf("Add", []string{"v", "w"}, []string{"t"}), out("t")),
		bodyAttr("else_branch", nodeOf("Mul", []string{"v", "x"}, []string{"e"}), out("e")))
	body := bodyAttr("body", in("i"), in("c"), in("v"), inner,
		nodeOf("Identity", []string{"c"}, []string{"d"}), nodeOf("Neg", []string{"dead"}, []string{"unused"}), out("d"), out("r"))
	file := model(21, nodeOf("Loop", []string{"n", "", "x"}, []string{"y"}, body),
		input("x", 2), input("w", 2), valueOf(graphInput, "p", 9), valueOf(graphInput, "n", 7), input("dead", 2), output("y", 2))
	g, err := read(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := listed(g); got != "Loop(n,,x,p,x,w,dead)y body=4; " {
		t.Fatalf("the loop is %s", got)
	}
	a := g.Nodes[0].Attrs[0].Graph
	if got := listed(a); got != "Identity(c)d; If(p,v,x,w)r else_branch=3 then_branch=3; " {
		t.Errorf("its body is %s", got)
	}
	if len(a.Inputs) != 7 || a.Inputs[6].Name != "dead" {
		t.Errorf("its body takes %v", a.Inputs)
	}
	for want, bent := range map[string][]byte{
		"is not defined":    model(21, nodeOf("Loop", []string{"n"}, []string{"y"}, body), valueOf(graphInput, "n", 7), output("y", 2)),
		"depends on itself": model(21, nodeOf("If", []string{"p"}, []string{"y"}, bodyAttr("then_branch", nodeOf("Neg", []string{"y"}, []string{"t"}), out("t"))), valueOf(graphInput, "p", 9), output("y", 2)),
		"defined twice":     model(21, nodeOf("If", []string{"p"}, []string{"y"}, bodyAttr("then_branch", nodeOf("Neg", []string{"p"}, []string{"t"}), nodeOf("Neg", []string{"p"}, []string{"t"}), out("t"))), valueOf(graphInput, "p", 9), output("y", 2)),
		"is a sequence":     model(21, nodeOf("If", []string{"p"}, []string{"y"}, bodyAttr("then_branch", msg(graphOutput, str(valueName, "t"), msg(valueType, msg(4, num(1, 1)))))), valueOf(graphInput, "p", 9), output("y", 2)),
		"more than 8 deep":  nestedIfs(40),
	} {
		if g, err := read(bent, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("read as %v (%v), wanted %s", g, err, want)
		}
	}
}

func nestedIfs(depth int) []byte {
	b := nodeOf("Neg", []string{"p"}, []string{"y"})
	for range depth {
		b = nodeOf("If", []string{"p"}, []string{"y"}, bodyAttr("then_branch", b, msg(graphOutput, str(valueName, "y"))))
	}
	return model(21, b, valueOf(graphInput, "p", 9), output("y", 2))
}
