package onnx

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/internal/testkit/memory"
)

// relu is a node from x to y, with what it needs around it.
func relu(set int64, more ...[]byte) []byte {
	return model(set, append([][]byte{nodeOf("Relu", []string{"x"}, []string{"y"}), input("x", 2), output("y", 2)}, more...)...)
}

func TestReadRefuses(t *testing.T) {
	x, y := []string{"x"}, []string{"y"}
	sym := func(field protowire.Number, name string, dim ...[]byte) []byte {
		return msg(field, str(valueName, name), msg(valueType, msg(typeTensor, num(tensorTypeElem, 1), msg(tensorTypeShape, msg(shapeDim, dim...)))))
	}
	constant := func(parts ...[]byte) []byte { return relu(21, msg(graphConst, parts...)) }
	attribute := func(parts ...[]byte) []byte {
		return model(21, nodeOf("Foo", x, y, msg(nodeAttr, parts...)), input("x"), output("y"))
	}
	kind := func(k int64) []byte { return num(attrKind, k) }

	for name, c := range map[string]struct {
		file        []byte
		want        string
		unsupported bool
	}{
		"empty":                        {nil, "IR version 0", true},
		"not protobuf":                 {[]byte("hello, world"), "", false},
		"new IR":                       {join(num(modelIRVersion, 99), msg(modelGraph), msg(modelOpset, num(opsetVersion, 21))), "IR version 99", true},
		"old set":                      {relu(5), "operator set 5: sets 6 to 27 are read", true},
		"future set":                   {relu(99), "operator set 99", true},
		"negative set":                 {relu(-1), "operator set version -1", false},
		"no set":                       {join(num(modelIRVersion, 8), msg(modelGraph)), "imports no operator set", true},
		"two sets":                     {join(relu(21), msg(modelOpset, str(opsetDomain, "ai.onnx"), num(opsetVersion, 21))), "imported twice", false},
		"no graph":                     {join(num(modelIRVersion, 8), msg(modelOpset, num(opsetVersion, 21))), "no graph", false},
		"two graphs":                   {join(relu(21), msg(modelGraph)), "two fields graph", false},
		"same functions":               {join(relu(21), msg(25, str(1, "f")), msg(25, str(1, "f"))), `function "f" of domain "" is defined twice`, false},
		"training":                     {join(relu(21), msg(20, str(1, "f"))), "has training_info", true},
		"unknown field":                {join(relu(21), num(19, 1)), "model has no field 19", false},
		"field zero":                   {join(relu(21), []byte{0, 0}), "no field 0", false},
		"group":                        {join(relu(21), []byte{7<<3 | 3}), "wire type 3", false},
		"wrong wire type":              {join(relu(21), num(6, 1)), "field doc_string of model has wire type 0, not 2", false},
		"sparse":                       {relu(21, msg(15, num(3, 1))), "sparse", true},
		"other domain of scikit-learn": {model(21, msg(graphNode, str(nodeOutput, "y"), str(nodeOp, "Foo"), str(nodeDomain, "ai.onnx.ml")), output("y")), "hummingbird-ml", true},
		"other domain":                 {model(21, msg(graphNode, str(nodeOutput, "y"), str(nodeOp, "Foo"), str(nodeDomain, "com.example")), output("y")), `node 0 "" (Foo): operator domain "com.example"`, true},
		"overload":                     {model(21, msg(graphNode, str(nodeOp, "Foo"), str(8, "a")), output("y")), "overload", true},
		"no operator":                  {model(21, msg(graphNode, str(nodeOutput, "y")), output("y")), "operator: the name is empty", false},
		"no output":                    {model(21, msg(graphNode, str(nodeOp, "Foo")), output("y")), `"y" is not defined`, false},
		"undefined":                    {model(21, nodeOf("Relu", []string{"z"}, y), output("y")), `value "z" is not defined`, false},
		"defined twice":                {model(21, nodeOf("Relu", x, y), nodeOf("Relu", x, y), input("x"), output("y")), `"y" is defined twice`, false},
		"cycle":                        {model(21, nodeOf("Relu", y, y), output("y")), "depends on itself", false},
		"output twice":                 {relu(21, output("y", 2)), `output "y" is given twice`, false},
		"input twice":                  {relu(21, input("x", 2)), `"x" is defined twice`, false},
		"unnamed input":                {relu(21, input("", 2)), `input "": the name is empty`, false},
		"long name":                    {relu(21, input(strings.Repeat("x", graph.MaxName+1))), "at most 512", false},
		"bad UTF-8":                    {relu(21, input("\xff")), "not UTF-8", false},
		"no type":                      {relu(21, msg(graphInput, str(valueName, "z"))), `input "z": no element type`, false},
		"sequence":                     {relu(21, msg(graphInput, str(valueName, "z"), msg(valueType, msg(4, num(1, 1))))), "type is a sequence", true},
		"element type":                 {relu(21, valueOf(graphInput, "z", 8, 2)), `input "z": element type string is not supported: convert`, true},
		"unknown type":                 {relu(21, valueOf(graphInput, "z", 1000, 2)), "unknown element type 1000", false},
		"type 256+1":                   {relu(21, valueOf(graphInput, "z", 257, 2)), "unknown element type 257", false},
		"no shape":                     {relu(21, msg(graphInput, str(valueName, "z"), msg(valueType, msg(typeTensor, num(tensorTypeElem, 1))))), "no shape is given", true},
		"symbolic":                     {relu(21, sym(graphInput, "z", str(dimParam, "batch"))), `symbolic dimensions ["batch"] have no size: give each one, for example "batch=1"`, true},
		"no extent":                    {relu(21, sym(graphOutput, "z")), "axis 0 has no extent", true},
		"two extents":                  {relu(21, sym(graphInput, "z", num(dimValue, 1), str(dimParam, "n"))), "fixed and a symbolic", false},
		"negative extent":              {relu(21, input("z", -1)), "not between 0 and 2^40", false},
		"huge extent":                  {relu(21, input("z", 1<<62)), "not between 0 and 2^40", false},
		"product wraps":                {relu(21, input("z", 1<<40, 1<<24)), "more than 2^40", false},
		"wraps past sign":              {relu(21, input("z", 1<<40, 1<<23)), "more than 2^40", false},
		"zero hides huge":              {relu(21, input("z", 0, 1<<39, 1<<39)), "more than 2^40", false},
		"many axes":                    {relu(21, input("z", 1, 1, 1, 1, 1, 1, 1, 1, 1)), "9 axes, limit 8", true},
		"attribute graph":              {attribute(str(attrName, "body"), msg(6), kind(5)), `attribute "body" is a graph, which If, Loop, Scan alone may have`, true},
		"attribute tensors":            {attribute(str(attrName, "a"), kind(9)), "kind TENSORS", true},
		"attribute kind":               {attribute(str(attrName, "a"), kind(99)), "unknown kind 99", false},
		"attribute no kind":            {attribute(str(attrName, "a"), num(attrInt, 1)), "unknown kind 0", false},
		"attribute mixed":              {attribute(str(attrName, "a"), num(attrInt, 1), flt(attrFloat, 1), kind(2)), "kind INT with a value in field f", false},
		"attribute refers":             {attribute(str(attrName, "a"), str(21, "b"), kind(2)), "refers to an attribute of a function, outside of one", false},
		"attribute unnamed":            {attribute(num(attrInt, 1), kind(2)), "the name is empty", false},
		"attribute twice":              {model(21, nodeOf("Foo", x, y, intAttr("a", 1), intAttr("a", 1)), input("x"), output("y")), `attribute "a": given twice`, false},
		"attribute tensor":             {attribute(str(attrName, "a"), kind(4)), "no tensor is given", false},
		"broken floats":                {attribute(str(attrName, "a"), str(attrFloats, "abc"), kind(6)), "no number of floats", false},
		"split float":                  {constant(num(tensorType, 1), str(tensorFloats, "\x00\x00"), str(tensorFloats, "\x80\x3f")), "no number of floats", false},
		"broken ints":                  {attribute(str(attrName, "a"), str(attrInts, "\x80"), kind(7)), "broken integer", false},
		"tensor type":                  {constant(str(tensorName, "c"), num(tensorType, 8)), `initializer "c": element type string`, true},
		"tensor no type":               {constant(str(tensorName, "c")), "no element type", false},
		"segment":                      {constant(num(tensorType, 1), msg(3, num(1, 1))), "one segment", true},
		"no data":                      {constant(str(tensorName, "c"), num(tensorType, 1)), "takes 4 bytes of elements, the file has 0", false},
		"short data":                   {constant(num(tensorDims, 2), num(tensorType, 1), str(tensorRaw, "abcd")), "takes 8 bytes of elements, the file has 4", false},
		"long data":                    {constant(num(tensorType, 9), str(tensorRaw, "\x00\x01")), "takes 1 bytes of elements, the file has 2", false},
		"huge tensor":                  {constant(num(tensorDims, 1<<33), num(tensorType, 1), str(tensorRaw, "abcd")), "takes 34359738368 bytes", false},
		"tensor wraps":                 {constant(num(tensorDims, 1<<40), num(tensorDims, 1<<24), num(tensorType, 1)), "more than 2^40", false},
		"dims 2^63":                    {constant(num(tensorDims, -1<<63), num(tensorType, 1)), "not between 0 and 2^40", false},
		"wrong data field":             {constant(num(tensorType, 1), packed(tensorInt64s, 1)), "float32 elements in int64_data, where float_data or raw_data hold them", false},
		"two data fields":              {constant(num(tensorType, 1), flt(tensorFloats, 1), str(tensorRaw, "abcd")), "elements in float_data and in raw_data", false},
		"wide int8":                    {relu(21, msg(graphConst, str(tensorName, "c"), num(tensorType, 3), packed(tensorInt32s, -129))), "-129 does not fit int8", false},
		"negative uint16":              {relu(21, msg(graphConst, str(tensorName, "c"), num(tensorType, 4), packed(tensorInt32s, -1))), "-1 does not fit uint16", false},
		"wide half":                    {relu(21, msg(graphConst, str(tensorName, "c"), num(tensorType, 10), packed(tensorInt32s, 1<<16))), "65536 does not fit float16", false},
		"wide uint32":                  {relu(21, msg(graphConst, str(tensorName, "c"), num(tensorType, 12), packed(tensorUint64s, 1<<32))), "does not fit uint32", false},
		"uint32 as int64":              {relu(21, msg(graphConst, str(tensorName, "c"), num(tensorType, 12), packed(tensorInt64s, 1))), "uint32 elements in int64_data, where uint64_data or raw_data hold them", false},
		"half a double":                {relu(21, msg(graphConst, str(tensorName, "c"), num(tensorType, 11), str(tensorDoubles, "abcd"))), "no number of floats", false},
		"wide int32":                   {relu(21, msg(graphConst, str(tensorName, "c"), num(tensorType, 6), packed(tensorInt32s, 1<<31))), "does not fit int32", false},
		"boolean 2":                    {relu(21, msg(graphConst, str(tensorName, "c"), num(tensorType, 9), packed(tensorInt32s, 2))), "element 2 does not fit bool", false},
		"raw boolean 2":                {relu(21, msg(graphConst, str(tensorName, "c"), num(tensorType, 9), str(tensorRaw, "\x02"))), "is 2, not 0 or 1", false},
		"external":                     {constant(num(tensorType, 1), num(tensorLocation, 1), msg(tensorFiles, str(1, "location"), str(2, "w"))), "elements in another file", true},
		"location 2":                   {constant(num(tensorType, 1), num(tensorLocation, 2)), "unknown data_location 2", false},
		"stray external":               {constant(num(tensorType, 1), msg(tensorFiles, str(1, "location"), str(2, "w"))), "data_location is not EXTERNAL", false},
		"input clashes":                {relu(21, msg(graphConst, str(tensorName, "x"), num(tensorType, 1), str(tensorRaw, "abcd"))), `input "x" is float32[2] and its initializer float32[]`, false},
	} {
		g, err := read(c.file, Options{})
		switch {
		case err == nil:
			t.Errorf("%s: read as %+v", name, g)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v\nwanted %q", name, err, c.want)
		case errors.Is(err, errors.ErrUnsupported) != c.unsupported && c.want != "":
			t.Errorf("%s: errors.ErrUnsupported is %v for: %v", name, !c.unsupported, err)
		}
	}
}

func TestReadRefusesLargeFiles(t *testing.T) {
	b := relu(21)
	if _, err := read(b, Options{MaxBytes: int64(len(b)) - 1}); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Fatalf("got %v", err)
	}
	// A size above what the reader holds is a file that ends early.
	if _, err := Read(strings.NewReader(string(b)), int64(len(b))+100, Options{}); err == nil {
		t.Fatal("a file shorter than its size was read")
	}
	if _, err := Read(strings.NewReader(""), -1, Options{}); err == nil {
		t.Fatal("a negative size was taken")
	}
}

func TestReadTakesElementsFromEveryField(t *testing.T) {
	f := func(v ...float32) (b []byte) {
		for _, x := range v {
			b = append(b, flt(tensorFloats, x)...)
		}
		return b
	}
	for name, c := range map[string]struct {
		parts [][]byte
		want  *tensor.Tensor
	}{
		"raw":             {[][]byte{num(tensorDims, 2), num(tensorType, 6), str(tensorRaw, "\x01\x00\x00\x00\xff\xff\xff\xff")}, tensor.Must(tensor.From(tensor.Shape{2}, []int32{1, -1}))},
		"float unpacked":  {[][]byte{num(tensorDims, 3), num(tensorType, 1), f(1, -2, 0.5)}, tensor.Must(tensor.From(tensor.Shape{3}, []float32{1, -2, 0.5}))},
		"float packed":    {[][]byte{packed(tensorDims, 2, 1), num(tensorType, 1), str(tensorFloats, "\x00\x00\x80\x3f\x00\x00\x00\x40")}, tensor.Must(tensor.From(tensor.Shape{2, 1}, []float32{1, 2}))},
		"float both":      {[][]byte{num(tensorDims, 2), num(tensorType, 1), f(3), str(tensorFloats, "\x00\x00\x80\x3f")}, tensor.Must(tensor.From(tensor.Shape{2}, []float32{3, 1}))},
		"int32":           {[][]byte{num(tensorDims, 2), num(tensorType, 6), packed(tensorInt32s, -1<<31, 1<<31-1)}, tensor.Must(tensor.From(tensor.Shape{2}, []int32{-1 << 31, 1<<31 - 1}))},
		"int64":           {[][]byte{num(tensorDims, 3), num(tensorType, 7), num(tensorInt64s, -1), packed(tensorInt64s, 1<<62), num(tensorInt64s, 7)}, tensor.Must(tensor.From(tensor.Shape{3}, []int64{-1, 1 << 62, 7}))},
		"bool":            {[][]byte{num(tensorDims, 2), num(tensorType, 9), packed(tensorInt32s, 0, 1)}, tensor.Must(tensor.Bools(tensor.Shape{2}, false, true))},
		"int8":            {[][]byte{num(tensorDims, 2), num(tensorType, 3), packed(tensorInt32s, -128, 127)}, tensor.Must(tensor.From(tensor.Shape{2}, []int8{-128, 127}))},
		"uint8":           {[][]byte{num(tensorDims, 2), num(tensorType, 2), packed(tensorInt32s, 0, 255)}, tensor.Must(tensor.From(tensor.Shape{2}, []uint8{0, 255}))},
		"int16":           {[][]byte{num(tensorDims, 2), num(tensorType, 5), packed(tensorInt32s, -1<<15, 1<<15-1)}, tensor.Must(tensor.From(tensor.Shape{2}, []int16{-1 << 15, 1<<15 - 1}))},
		"uint16":          {[][]byte{num(tensorDims, 1), num(tensorType, 4), packed(tensorInt32s, 1<<16-1)}, tensor.Must(tensor.From(tensor.Shape{1}, []uint16{1<<16 - 1}))},
		"uint32":          {[][]byte{num(tensorDims, 1), num(tensorType, 12), packed(tensorUint64s, 1<<32-1)}, tensor.Must(tensor.From(tensor.Shape{1}, []uint32{1<<32 - 1}))},
		"uint64":          {[][]byte{num(tensorDims, 2), num(tensorType, 13), packed(tensorUint64s, -1), num(tensorUint64s, 3)}, tensor.Must(tensor.From(tensor.Shape{2}, []uint64{1<<64 - 1, 3}))},
		"float64":         {[][]byte{num(tensorDims, 1), num(tensorType, 11), str(tensorDoubles, "\x00\x00\x00\x00\x00\x00\xf8\x3f")}, tensor.Must(tensor.From(tensor.Shape{1}, []float64{1.5}))},
		"float16":         {[][]byte{num(tensorDims, 2), num(tensorType, 10), packed(tensorInt32s, 0x3c00, 0xfe01)}, tensor.Must(tensor.FromBytes(tensor.Float16, tensor.Shape{2}, []byte{0, 0x3c, 0, 0x7e}))},
		"bfloat16":        {[][]byte{num(tensorDims, 1), num(tensorType, 16), packed(tensorInt32s, 0x3f80)}, tensor.Must(tensor.FromBytes(tensor.BFloat16, tensor.Shape{1}, []byte{0x80, 0x3f}))},
		"raw float16":     {[][]byte{num(tensorDims, 1), num(tensorType, 10), str(tensorRaw, "\x00\xbc")}, tensor.Must(tensor.FromBytes(tensor.Float16, tensor.Shape{1}, []byte{0, 0xbc}))},
		"no elements":     {[][]byte{packed(tensorDims, 2, 0), num(tensorType, 7)}, tensor.Must(tensor.New(tensor.Int64, tensor.Shape{2, 0}))},
		"empty raw":       {[][]byte{num(tensorDims, 0), num(tensorType, 1), str(tensorRaw, "")}, tensor.Must(tensor.New(tensor.Float32, tensor.Shape{0}))},
		"NaN is made one": {[][]byte{num(tensorType, 1), str(tensorRaw, "\x01\x00\xc0\xff")}, tensor.Scalar(tensor.AsF32(0x7fc00000))},
	} {
		file := model(21, nodeOf("Identity", []string{"c"}, []string{"y"}), output("y"), msg(graphConst, append(c.parts, str(tensorName, "c"))...))
		g, err := read(file, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := g.Const("c"); !got.Equal(c.want) {
			t.Errorf("%s: got %v%v %x", name, got.Type, got.Shape, got.Bytes())
		}
	}
}

func TestReadBindsSymbolicExtents(t *testing.T) {
	value := func(field protowire.Number, name string) []byte {
		return msg(field, str(valueName, name), msg(valueType, msg(typeTensor, num(tensorTypeElem, 1),
			msg(tensorTypeShape, msg(shapeDim, str(dimParam, "batch")), msg(shapeDim, num(dimValue, 3))))))
	}
	file := model(21, nodeOf("Relu", []string{"x"}, []string{"y"}), value(graphInput, "x"), value(graphOutput, "y"))
	g, err := read(file, Options{Dims: map[string]int{"batch": 4}})
	if err != nil {
		t.Fatal(err)
	}
	if want := (tensor.Shape{4, 3}); !g.Inputs[0].Shape.Equal(want) || !g.Outputs[0].Shape.Equal(want) {
		t.Fatalf("got %v and %v", g.Inputs[0].Shape, g.Outputs[0].Shape)
	}
	for name, dims := range map[string]map[string]int{
		"mistyped": {"batch": 4, "bacth": 4},
		"negative": {"batch": -1},
		"huge":     {"batch": 1 << 50},
	} {
		if g, err := read(file, Options{Dims: dims}); err == nil {
			t.Errorf("%s: read as %v", name, g.Inputs)
		}
	}
}

// Whoever has a model with several dimensions learns of all of them at once.
func TestReadNamesAllSymbols(t *testing.T) {
	value := func(field protowire.Number, name string, symbols ...string) []byte {
		var dims [][]byte
		for _, s := range symbols {
			dims = append(dims, msg(shapeDim, str(dimParam, s)))
		}
		return msg(field, str(valueName, name), msg(valueType, msg(typeTensor, num(tensorTypeElem, 1), msg(tensorTypeShape, dims...))))
	}
	names := func(symbols []string, given map[string]int, inputs ...string) {
		t.Helper()
		var err error
		file := model(21, nodeOf("Relu", []string{"x"}, []string{"y"}), value(graphInput, "x", inputs...), value(graphInput, "z", "batch", "width"), value(graphOutput, "y", "more"))
		_, err = read(file, Options{Dims: given})
		var open *SymbolError
		if !errors.As(err, &open) || !slices.Equal(open.Symbols, symbols) || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v, want %q", err, symbols)
		}
	}
	names([]string{"batch", "more", "sequence", "width"}, nil, "batch", "sequence")
	names([]string{"more", "width"}, map[string]int{"batch": 2, "sequence": 3}, "batch", "sequence")
	var many []byte
	for i := range 100 {
		many = append(many, value(graphInput, fmt.Sprint(i), fmt.Sprint("s", i))...)
	}
	var open *SymbolError
	if _, err := read(model(21, many, nodeOf("Relu", []string{"1"}, []string{"y"}), output("y")), Options{}); !errors.As(err, &open) || len(open.Symbols) != maxSymbols {
		t.Error(err)
	}
}

// Shapes of inputs that are given stand for what the file leaves open, and must
// not contradict it.
func TestReadTakesShapesOfInputs(t *testing.T) {
	typed := func(field protowire.Number, name string, shape []byte) []byte {
		return msg(field, str(valueName, name), msg(valueType, msg(typeTensor, num(tensorTypeElem, 1), shape)))
	}
	shape := func(dims ...[]byte) []byte {
		var all []byte
		for _, d := range dims {
			all = append(all, msg(shapeDim, d)...)
		}
		return msg(tensorTypeShape, all)
	}
	file := model(21, nodeOf("Add", []string{"x", "z"}, []string{"y"}), typed(graphOutput, "y", shape(str(dimParam, "elsewhere"))),
		typed(graphInput, "x", shape(str(dimParam, "n"), num(dimValue, 3), nil)), typed(graphInput, "z", nil), typed(graphInput, "w", shape(str(dimParam, "n"))))
	g, err := read(file, Options{Shapes: map[string]tensor.Shape{"x": {2, 3, 4}, "z": {4}, "w": {2}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []tensor.Shape{{2, 3, 4}, {4}, {2}} {
		if !g.Inputs[i].Shape.Equal(want) {
			t.Errorf("input %q is %v", g.Inputs[i].Name, g.Inputs[i].Shape)
		}
	}
	for want, shapes := range map[string]map[string]tensor.Shape{
		"axis 1 of the model has 3":            {"x": {2, 2, 4}, "z": {4}, "w": {2}},
		"where the model has 3 axes":           {"x": {2}, "z": {4}, "w": {2}},
		`dimension "n" is given as 2 and as 5`: {"x": {2, 3, 4}, "z": {4}, "w": {5}},
		`input "z": no shape is given`:         {"x": {2, 3, 4}, "w": {2}},
		"extent -1 is not between":             {"x": {2, 3, -1}, "z": {4}, "w": {2}},
	} {
		if g, err := read(file, Options{Shapes: shapes}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("read as %v (%v), wanted %s", g, err, want)
		}
	}
}

func TestReadTensor(t *testing.T) {
	file := join(str(tensorName, "c"), num(tensorDims, 2), num(tensorType, 7), packed(tensorInt64s, 1, -1))
	name, x, err := ReadTensor(bytes.NewReader(file), int64(len(file)))
	if want := tensor.Must(tensor.From(tensor.Shape{2}, []int64{1, -1})); err != nil || name != "c" || !x.Equal(want) {
		t.Fatalf("%q %v (%v)", name, x, err)
	}
	for n := range len(file) - 1 {
		if _, x, err := ReadTensor(bytes.NewReader(file[:n]), int64(n)); err == nil {
			t.Errorf("the first %d bytes are read as %v", n, x)
		}
	}
	outside := join(num(tensorType, 1), num(tensorLocation, 1))
	if _, _, err := ReadTensor(bytes.NewReader(outside), int64(len(outside))); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("elements in another file: %v", err)
	}
}

func entry(key, value string) []byte {
	return msg(modelMetadata, str(entryKey, key), str(entryValue, value))
}

func TestInspect(t *testing.T) {
	file := model(3, nodeOf("Relu", []string{"x"}, []string{"y"}), nodeOf("Abs", []string{"x"}, []string{"z"}), nodeOf("Relu", []string{"z"}, nil),
		msg(graphNode, str(nodeOp, "Foo"), str(nodeDomain, "com.example"), msg(nodeAttr, msg(6, str(1, "a graph")))),
		input("w"), input("x", -7), output("y"), msg(graphConst, str(tensorName, "w"), num(tensorType, 8)))
	s, err := Inspect(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(*s); got != "{[x] [y] [Abs Relu com.example.Foo]  []}" {
		t.Error(got)
	}
	for n := range file {
		_, _ = Inspect(bytes.NewReader(file[:n]), int64(n)) // must not panic
	}
	said := join(str(modelProducer, "torch"), entry("license", "MIT"), entry("license", string(make([]byte, maxMetadata+1))), entry("text", "\xff"), entry("", "x"),
		bytes.Repeat(entry("more", "x"), maxEntries))
	if s, err = Inspect(bytes.NewReader(said), int64(len(said))); err != nil || s.Producer != "torch" || len(s.Metadata) != maxEntries || s.Metadata[0] != (Entry{"license", "MIT"}) || s.Metadata[1] != (Entry{"more", "x"}) {
		t.Errorf("%v, %v", s, err)
	}
	many := model(21, bytes.Repeat(nodeOf("A", nil, nil), 1<<20))
	if used := memory.Allocated(func() { _, err = Inspect(bytes.NewReader(many), int64(len(many))) }); used > int64(len(many))+memory.Slack {
		t.Errorf("%d bytes took %d (%v)", len(many), used, err)
	}
}

func TestReadOrdersAndPrunes(t *testing.T) {
	g, err := read(model(21,
		nodeOf("Neg", []string{"a"}, []string{"y"}),
		nodeOf("Abs", []string{"x"}, []string{"unused"}),
		nodeOf("Add", []string{"x", "w"}, []string{"a"}),
		input("x", 1), output("y", 1),
		// As files up to IR version 3 have it, w is an input too.
		input("w", 1),
		msg(graphConst, str(tensorName, "w"), num(tensorDims, 1), num(tensorType, 1), flt(tensorFloats, 2)),
		msg(graphConst, str(tensorName, "v"), num(tensorDims, 1), num(tensorType, 1), flt(tensorFloats, 2)),
	), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ops []string
	for _, n := range g.Nodes {
		ops = append(ops, n.Op)
	}
	if got := strings.Join(ops, " "); got != "Add Neg" {
		t.Errorf("nodes are %s", got)
	}
	if len(g.Inputs) != 1 || g.Inputs[0].Name != "x" || len(g.Consts) != 1 || g.Consts[0].Name != "w" {
		t.Errorf("inputs %v, initializers %v", g.Inputs, g.Consts)
	}
	if g.Name != unnamed {
		t.Errorf("an unnamed graph is called %q", g.Name)
	}
}

func TestReadIgnoresWhatIsNotComputed(t *testing.T) {
	file := join(relu(21, str(10, "doc"), msg(13, str(1, "a")), msg(14, str(1, "q")), msg(16, str(1, "k"))),
		str(3, "1.0"), str(4, "org"), num(5, 3), str(6, "doc"), msg(14, str(1, "k"), str(2, "v")), msg(25), msg(20),
		msg(modelOpset, str(opsetDomain, "com.example"), num(opsetVersion, 1)))
	if _, err := read(file, Options{}); err != nil {
		t.Fatal(err)
	}
}
