package onnx

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/internal/testkit/memory"
)

// TestMemory reads files built to take as much memory a byte as they can.
// Everything allocated on the way is counted, so the peak is below it; lowering
// the graph as well leaves more behind, so that the peak itself is measured.
func TestMemory(t *testing.T) {
	const MiB = 1 << 20
	fill := func(unit []byte, n int) []byte { return bytes.Repeat(unit, n/len(unit)) }
	const size = 10 * MiB
	names := func(n int, make func(i int) []byte) []byte {
		var b []byte
		for i := range n {
			b = append(b, make(i)...)
		}
		return b
	}
	tensorOf := func(parts ...[]byte) []byte {
		return msg(graphConst, append(parts, str(tensorName, "c"))...)
	}
	out := nodeOf("Identity", []string{"c"}, []string{"y"})
	files := map[string][]byte{
		"nothing":           {},
		"empty nodes":       model(21, fill(msg(graphNode), size)),
		"bare nodes":        model(21, fill(nodeOf("A", nil, nil), size)),
		"distinct nodes":    model(21, names(1<<17, func(i int) []byte { return nodeOf("A", nil, []string{fmt.Sprint(i)}) })),
		"chain":             model(21, input("0"), output("60000"), names(60000, func(i int) []byte { return nodeOf("A", []string{fmt.Sprint(i)}, []string{fmt.Sprint(i + 1)}) })),
		"too long a chain":  model(21, input("0"), output("400000"), names(400000, func(i int) []byte { return nodeOf("A", []string{fmt.Sprint(i)}, []string{fmt.Sprint(i + 1)}) })),
		"outputs of a node": model(21, nodeOf("A", nil, make([]string, 4*MiB)), output("y")),
		"distinct outputs":  model(21, msg(graphNode, str(nodeOp, "A"), names(1<<18, func(i int) []byte { return str(nodeOutput, fmt.Sprint(i)) })), output("7")),
		"inputs of a node":  model(21, msg(graphNode, str(nodeOp, "A"), fill(str(nodeInput, ""), size), str(nodeOutput, "y")), output("y")),
		"attributes":        model(21, msg(graphNode, str(nodeOp, "A"), fill(msg(nodeAttr, num(attrKind, 2)), size))),
		"reduced axes": model(13, input("x"), output("1"), names(20000, func(i int) []byte {
			return nodeOf("ReduceMax", []string{"x"}, []string{fmt.Sprint(i)}, intsAttr("axes", 0))
		})),
		// Each function calls the one before ten times: 10⁷ nodes in the end.
		"functions in functions": join(model(21, input("x"), output("y"), callOf("F7", []string{"x"}, []string{"y"})), names(8, func(i int) []byte {
			if i == 0 {
				return functionOf("F0", []string{"a"}, []string{"b"}, inside(nodeOf("Neg", []string{"a"}, []string{"b"})))
			}
			var calls [][]byte
			for k := range 10 {
				calls = append(calls, inside(callOf(fmt.Sprint("F", i-1), []string{"a"}, []string{fmt.Sprint("b", k)})))
			}
			return functionOf(fmt.Sprint("F", i), []string{"a"}, []string{"b9"}, calls...)
		})),
		"calls of nothing": join(model(21, input("x"), output("y"), names(1<<18, func(i int) []byte { return callOf("F", nil, nil) })), functionOf("F", nil, nil, str(8, strings.Repeat("doc", 1<<20)))),
		"functions":        join(relu(21), names(1<<18, func(i int) []byte { return functionOf(fmt.Sprint(i), nil, nil) })),
		"graphs in nodes": model(21, input("x"), output("1"), names(60000, func(i int) []byte {
			return nodeOf("If", []string{"x"}, []string{fmt.Sprint(i)}, bodyAttr("then_branch", msg(graphOutput, str(valueName, "x"))))
		})),
		"graphs that take much": model(21, input("x"), output("1"), nodeOf("If", []string{"x"}, []string{"1"}, names(1000, func(i int) []byte {
			return bodyAttr(fmt.Sprint(i), nodeOf("A", []string{"x"}, []string{"y"}), names(100, func(k int) []byte { return nodeOf("A", []string{fmt.Sprint(i, k)}, nil) }))
		}))),
		"old operators": model(6, input("x"), output("1"), names(100000, func(i int) []byte {
			return nodeOf("PRelu", []string{"x", "x"}, []string{fmt.Sprint(i)})
		})),
		"old operators of one name": model(6, input("x"), output("1"), names(20000, func(i int) []byte {
			return nodeOf("PRelu", []string{"x", "x"}, []string{"1"})
		})),
		"empty constants": model(11, input("x"), output("1"), names(20000, func(i int) []byte {
			return nodeOf("Resize", []string{"x", "e", "e"}, []string{fmt.Sprint(i)})
		})),
		"ints":            model(21, nodeOf("A", nil, []string{"y"}, msg(nodeAttr, str(attrName, "a"), num(attrKind, 7), msg(attrInts, make([]byte, size)))), output("y")),
		"unpacked ints":   model(21, nodeOf("A", nil, []string{"y"}, msg(nodeAttr, str(attrName, "a"), num(attrKind, 7), fill(num(attrInts, 0), size))), output("y")),
		"floats":          model(21, nodeOf("A", nil, []string{"y"}, msg(nodeAttr, str(attrName, "a"), num(attrKind, 6), msg(attrFloats, make([]byte, size)))), output("y")),
		"values":          model(21, fill(msg(graphInput), size)),
		"distinct inputs": model(21, names(1<<17, func(i int) []byte { return input(fmt.Sprint(i)) })),
		"graph outputs":   model(21, input("x"), fill(output("x"), size)),
		"tensors":         model(21, fill(msg(graphConst, num(tensorType, 1), num(tensorDims, 0)), size)),
		"distinct tensors": model(21, out, output("y"), names(50000, func(i int) []byte {
			return msg(graphConst, num(tensorType, 1), num(tensorDims, 0), str(tensorName, fmt.Sprint(i)))
		})),
		"raw tensor":      model(21, out, output("y"), tensorOf(num(tensorType, 1), num(tensorDims, size/4), msg(tensorRaw, make([]byte, size)))),
		"int64 of a byte": model(21, out, output("y"), tensorOf(num(tensorType, 7), num(tensorDims, size), msg(tensorInt64s, make([]byte, size)))),
		"unpacked floats": model(21, out, output("y"), tensorOf(num(tensorType, 1), num(tensorDims, size/5), fill(flt(tensorFloats, 1), size/5*5))),
		"claimed tensor":  model(21, out, output("y"), tensorOf(num(tensorType, 1), num(tensorDims, 1<<31), msg(tensorRaw, make([]byte, 100)))),
		"dimensions":      model(21, out, output("y"), tensorOf(num(tensorType, 1), msg(tensorDims, make([]byte, size)))),
		"operator sets":   join(num(modelIRVersion, 8), fill(msg(modelOpset, str(opsetDomain, "a.b")), size)),
		"metadata":        join(relu(21), fill(msg(14), size)),
		"long strings":    model(21, fill(str(graphName, strings.Repeat("n", 500)), size)),
		"nesting":         nested(1 << 16),
		"spread and long": model(21, input("x"), out, output("y"), output("40000"), tensorOf(num(tensorType, 7), num(tensorDims, 1<<20), msg(tensorInt64s, make([]byte, 1<<20))),
			nodeOf("Neg", []string{"x"}, []string{"0"}), names(40000, func(i int) []byte { return nodeOf("Neg", []string{fmt.Sprint(i)}, []string{fmt.Sprint(i + 1)}) })),
	}
	for name, file := range files {
		var err error
		got := memory.Allocated(func() { _, err = read(file, Options{}) })
		limit := int64(len(file)) + memory.Slack
		if got > limit {
			t.Errorf("%s: %d bytes of file took %d bytes of memory, limit %d (%v)", name, len(file), got, limit, err)
		}
		peak := int64(0)
		if err == nil {
			peak = memory.Peak(func() {
				g, _ := read(file, Options{})
				_, _ = op.Infer(g, lower.FP32)
			}, func(peak int64) bool { return peak <= limit })
		}
		if peak > limit {
			t.Errorf("%s: %d bytes of file, read and lowered, took %d bytes of memory at once, limit %d", name, len(file), peak, limit)
		}
		if testing.Verbose() {
			t.Logf("%-18s %5.1f MiB file, %5.1f MiB memory, %5.1f MiB with lowering, %.80v", name, float64(len(file))/MiB, float64(got)/MiB, float64(peak)/MiB, err)
		}
	}
	for _, fine := range []string{"chain", "distinct inputs", "raw tensor", "unpacked floats", "reduced axes"} {
		if _, err := read(files[fine], Options{}); err != nil {
			t.Errorf("%s: an honest file is refused: %v", fine, err)
		}
	}
}

// nested is a file with graphs inside attributes inside nodes, depth deep.
func nested(depth int) []byte {
	// Built from the inside by sizes first: wrapping copies would be quadratic.
	tags := []protowire.Number{6, nodeAttr, graphNode}
	var sizes []int
	n := 0
	for i := range 3 * depth {
		sizes = append(sizes, n)
		n += protowire.SizeTag(tags[i%3]) + protowire.SizeVarint(uint64(n))
	}
	b := join(num(modelIRVersion, 8), protowire.AppendVarint(protowire.AppendTag(nil, modelGraph, chunk), uint64(n)))
	for i := 3*depth - 1; i >= 0; i-- {
		b = protowire.AppendVarint(protowire.AppendTag(b, tags[i%3], chunk), uint64(sizes[i]))
	}
	return append(b, msg(modelOpset, num(opsetVersion, 21))...)
}

func TestTruncatedFilesAreRefused(t *testing.T) {
	file, err := Write(linear(3, 2))
	if err != nil {
		t.Fatal(err)
	}
	for n := range file {
		if g, err := read(file[:n], Options{}); err == nil {
			t.Fatalf("the first %d of %d bytes are read as %+v", n, len(file), g)
		}
	}
}

func TestFlippedBitsAreRefusedOrReadConsistently(t *testing.T) {
	file, err := Write(linear(3, 2))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range 8 * len(file) {
		bent := bytes.Clone(file)
		bent[i/8] ^= 1 << (i % 8)
		if !consistent(t, bent) {
			refused++
		}
	}
	// Most bits are structure or names that something else refers to.
	if refused < 8*len(file)/3 {
		t.Errorf("only %d of %d flipped bits were noticed", refused, 8*len(file))
	}
}

// consistent reads a file and reports whether that worked. If it did, what was
// read must survive being written.
func consistent(t *testing.T, file []byte) bool {
	g, err := read(file, Options{})
	if err != nil {
		return false
	}
	b, err := Write(g)
	if err != nil {
		if slices.ContainsFunc(g.Nodes, func(n graph.Node) bool { return slices.Contains(controls, n.Op) }) {
			return true // it is no program
		}
		t.Fatalf("what was read cannot be written: %v\n%x", err, file)
	}
	if slices.ContainsFunc(g.Nodes, func(n graph.Node) bool { return slices.Contains(controls, n.Op) }) {
		return true // written as what it comes to
	}
	h, err := read(b, Options{})
	if err != nil {
		t.Fatalf("what was written cannot be read: %v\n%x", err, file)
	}
	if !same(g, h) {
		t.Fatalf("read %+v\nthen %+v", g, h)
	}
	return true
}

func FuzzReadTensor(f *testing.F) {
	f.Add(join(str(tensorName, "c"), num(tensorDims, 2), num(tensorType, 7), packed(tensorInt64s, 1, -1)))
	f.Add(join(num(tensorDims, 1), num(tensorType, 10), packed(tensorInt32s, 0x3c00)))
	f.Add(join(num(tensorDims, 1), num(tensorType, 11), str(tensorDoubles, "12345678")))
	f.Fuzz(func(t *testing.T, file []byte) {
		var x *tensor.Tensor
		var err error
		if used := memory.Allocated(func() { _, x, err = ReadTensor(bytes.NewReader(file), int64(len(file))) }); used > int64(len(file))+memory.Slack {
			t.Fatalf("%d bytes took %d bytes of memory", len(file), used)
		}
		if err == nil && len(x.Bytes()) > 8*len(file) {
			t.Fatalf("%d bytes are read as %v%v", len(file), x.Type, x.Shape)
		}
	})
}

func FuzzInspect(f *testing.F) {
	f.Add(relu(13))
	f.Add(model(13, nodeOf("If", []string{"x"}, []string{"y"}, msg(nodeAttr, msg(6, str(1, "g")))), input("x"), output("y", 2, 1)))
	f.Fuzz(func(t *testing.T, file []byte) {
		if used := memory.Allocated(func() { _, _ = Inspect(bytes.NewReader(file), int64(len(file))) }); used > int64(len(file))+memory.Slack {
			t.Fatalf("%d bytes took %d bytes of memory", len(file), used)
		}
	})
}

func FuzzRead(f *testing.F) {
	for set := int64(OldestSet); set <= NewestSet; set += 3 {
		for _, op := range []string{"Add", "Clip", "Softmax", "PRelu", "OneHot", "Resize", "Upsample", "GroupNormalization", "Dropout", "Slice", "TopK"} {
			f.Add(model(set, nodeOf(op, []string{"x", "x", "x"}, []string{"y", "z"}, intAttr("axis", 1)), input("x", 2, 2), output("y", 2, 2)))
		}
	}
	whole, err := Write(linear(3, 2))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(relu(13))
	f.Add(nestedIfs(2))
	f.Add(model(8, nodeOf("Scan", []string{"", "s", "x"}, []string{"y", "z"}, scanned...),
		input("s", 2, 1), input("x", 2, 3, 1), input("w", 1), output("y", 2, 1), output("z", 2, 3, 1)))
	f.Add(model(21, nodeOf("Loop", []string{"n", "", "x"}, []string{"y"}, bodyAttr("body", msg(graphInput, str(valueName, "i")), msg(graphInput, str(valueName, "c")), msg(graphInput, str(valueName, "v")),
		nodeOf("Neg", []string{"v"}, []string{"w"}), msg(graphOutput, str(valueName, "c")), msg(graphOutput, str(valueName, "w")))),
		msg(graphConst, num(tensorType, 7), packed(tensorInt64s, 3), str(tensorName, "n")), input("x", 2), output("y", 2)))
	f.Add(join(model(21, callOf("Old", []string{"x"}, []string{"y"}), input("x", 1, 2), output("y", 2)), oldFunction()))
	f.Add(model(13, nodeOf("ReduceMean", []string{"x"}, []string{"y"}, intsAttr("axes", 1)), input("x", 2, 3), output("y", 2, 1)))
	f.Add(model(17, nodeOf("Split", []string{"x"}, []string{"y", "z"}), input("x", 2, 4), output("y", 2, 2)))
	f.Add(model(21, nodeOf("Identity", []string{"c"}, []string{"y"}), output("y", 2),
		msg(graphConst, num(tensorDims, 2), num(tensorType, 7), packed(tensorInt64s, 1, -1), str(tensorName, "c"))))
	f.Add(model(21, nodeOf("Identity", []string{"c"}, []string{"y"}), output("y"),
		msg(graphConst, num(tensorType, 1), str(tensorName, "c"), num(tensorLocation, 1), msg(tensorFiles, str(entryKey, "location"), str(entryValue, "../w")))))
	f.Fuzz(func(t *testing.T, file []byte) {
		if used := memory.Allocated(func() { _, _ = read(file, Options{}) }); used > int64(len(file))+memory.Slack {
			t.Fatalf("%d bytes took %d bytes of memory", len(file), used)
		}
		consistent(t, file)
		if g, err := read(file, Options{}); err == nil { // it keeps less at once than it allocates in all
			if used := memory.Allocated(func() { _, err = op.Infer(g, lower.FP32) }); used > 16*memory.Slack {
				t.Fatalf("lowering %d bytes allocates %d bytes in all (%v)", len(file), used, err)
			}
		}
	})
}
