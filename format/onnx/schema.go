package onnx

import "google.golang.org/protobuf/encoding/protowire"

// maxField is the highest field number of any message here.
const maxField = 26

// schema says which fields a message may have.
type schema struct {
	name   string
	fields [maxField + 1]spec
}

// spec is a field's name, wire type and use.
type spec struct {
	name string
	wire protowire.Type
	use  use
	why  string // of a refused field: what is wrong and what to do
}

type use uint8

const (
	many    use = iota // any number of times; integers and floats may be packed
	once               // at most once
	ignored            // any number of times: says nothing about what is computed
	refused            // not supported unless empty
)

const (
	varint  = protowire.VarintType
	fixed32 = protowire.Fixed32Type
	fixed64 = protowire.Fixed64Type
	chunk   = protowire.BytesType
)

func one(name string, wire protowire.Type) spec    { return spec{name, wire, once, ""} }
func list(name string, wire protowire.Type) spec   { return spec{name, wire, many, ""} }
func ignore(name string, wire protowire.Type) spec { return spec{name, wire, ignored, ""} }
func refuse(name, why string) spec                 { return spec{name, chunk, refused, why} }

// Numbers of the fields that are read or written.
const (
	modelIRVersion = 1
	modelProducer  = 2
	modelGraph     = 7
	modelOpset     = 8
	modelMetadata  = 14
	modelFunction  = 25

	opsetDomain  = 1
	opsetVersion = 2

	graphNode   = 1
	graphName   = 2
	graphConst  = 5
	graphInput  = 11
	graphOutput = 12

	valueName = 1
	valueType = 2

	typeTensor      = 1
	tensorTypeElem  = 1
	tensorTypeShape = 2
	shapeDim        = 1
	dimValue        = 1
	dimParam        = 2

	nodeInput    = 1
	nodeOutput   = 2
	nodeName     = 3
	nodeOp       = 4
	nodeAttr     = 5
	nodeDomain   = 7
	nodeOverload = 8

	attrName    = 1
	attrFloat   = 2
	attrInt     = 3
	attrString  = 4
	attrTensor  = 5
	attrGraph   = 6
	attrFloats  = 7
	attrInts    = 8
	attrStrings = 9
	attrKind    = 20
	attrRef     = 21

	functionName     = 1
	functionInput    = 4
	functionOutput   = 5
	functionAttr     = 6
	functionNode     = 7
	functionOpset    = 9
	functionDomain   = 10
	functionDefault  = 11
	functionOverload = 13

	tensorDims     = 1
	tensorType     = 2
	tensorFloats   = 4
	tensorInt32s   = 5
	tensorInt64s   = 7
	tensorName     = 8
	tensorRaw      = 9
	tensorDoubles  = 10
	tensorUint64s  = 11
	tensorFiles    = 13
	tensorLocation = 14

	entryKey   = 1
	entryValue = 2
)

var modelSchema = schema{"model", [maxField + 1]spec{
	modelIRVersion: one("ir_version", varint),
	modelProducer:  ignore("producer_name", chunk),
	3:              ignore("producer_version", chunk),
	4:              ignore("domain", chunk),
	5:              ignore("model_version", varint),
	6:              ignore("doc_string", chunk),
	modelGraph:     one("graph", chunk),
	modelOpset:     list("opset_import", chunk),
	modelMetadata:  ignore("metadata_props", chunk),
	20:             refuse("training_info", "has training_info: remove it, the order states how to train"),
	modelFunction:  list("functions", chunk),
	26:             ignore("configuration", chunk),
}}

var opsetSchema = schema{"opset_import", [maxField + 1]spec{
	opsetDomain:  one("domain", chunk),
	opsetVersion: one("version", varint),
}}

var graphSchema = schema{"graph", [maxField + 1]spec{
	graphNode:   list("node", chunk),
	graphName:   one("name", chunk),
	graphConst:  list("initializer", chunk),
	10:          ignore("doc_string", chunk),
	graphInput:  list("input", chunk),
	graphOutput: list("output", chunk),
	13:          ignore("value_info", chunk),
	14:          ignore("quantization_annotation", chunk),
	15:          refuse("sparse_initializer", "has sparse initializers: make them dense"),
	16:          ignore("metadata_props", chunk),
}}

var functionSchema = schema{"function", [maxField + 1]spec{
	functionName:     one("name", chunk),
	functionInput:    list("input", chunk),
	functionOutput:   list("output", chunk),
	functionAttr:     list("attribute", chunk),
	functionNode:     list("node", chunk),
	8:                ignore("doc_string", chunk),
	functionOpset:    list("opset_import", chunk),
	functionDomain:   one("domain", chunk),
	functionDefault:  list("attribute_proto", chunk),
	12:               ignore("value_info", chunk),
	functionOverload: one("overload", chunk),
	14:               ignore("metadata_props", chunk),
}}

var valueSchema = schema{"value", [maxField + 1]spec{
	valueName: one("name", chunk),
	valueType: one("type", chunk),
	3:         ignore("doc_string", chunk),
	4:         ignore("metadata_props", chunk),
}}

var typeSchema = schema{"type", [maxField + 1]spec{
	typeTensor: one("tensor_type", chunk),
	4:          refuse("sequence_type", "is a sequence: only tensors are supported"),
	5:          refuse("map_type", "is a map: only tensors are supported"),
	6:          ignore("denotation", chunk),
	7:          refuse("opaque_type", "is opaque: only tensors are supported"),
	8:          refuse("sparse_tensor_type", "is a sparse tensor: only dense ones are supported"),
	9:          refuse("optional_type", "is optional: only tensors are supported"),
}}

var tensorTypeSchema = schema{"tensor type", [maxField + 1]spec{
	tensorTypeElem:  one("elem_type", varint),
	tensorTypeShape: one("shape", chunk),
}}

var shapeSchema = schema{"shape", [maxField + 1]spec{
	shapeDim: list("dim", chunk),
}}

var dimSchema = schema{"dimension", [maxField + 1]spec{
	dimValue: one("dim_value", varint),
	dimParam: one("dim_param", chunk),
	3:        ignore("denotation", chunk),
}}

var nodeSchema = schema{"node", [maxField + 1]spec{
	nodeInput:    list("input", chunk),
	nodeOutput:   list("output", chunk),
	nodeName:     one("name", chunk),
	nodeOp:       one("op_type", chunk),
	nodeAttr:     list("attribute", chunk),
	6:            ignore("doc_string", chunk),
	nodeDomain:   one("domain", chunk),
	nodeOverload: one("overload", chunk),
	9:            ignore("metadata_props", chunk),
	10:           ignore("device_configurations", chunk),
}}

var attrSchema = schema{"attribute", [maxField + 1]spec{
	attrName:    one("name", chunk),
	attrFloat:   one("f", fixed32),
	attrInt:     one("i", varint),
	attrString:  one("s", chunk),
	attrTensor:  one("t", chunk),
	attrGraph:   one("g", chunk),
	attrFloats:  list("floats", fixed32),
	attrInts:    list("ints", varint),
	attrStrings: list("strings", chunk),
	10:          list("tensors", chunk),
	11:          list("graphs", chunk),
	13:          ignore("doc_string", chunk),
	14:          one("tp", chunk),
	15:          list("type_protos", chunk),
	attrKind:    one("type", varint),
	attrRef:     one("ref_attr_name", chunk),
	22:          one("sparse_tensor", chunk),
	23:          list("sparse_tensors", chunk),
}}

var tensorSchema = schema{"tensor", [maxField + 1]spec{
	tensorDims:     list("dims", varint),
	tensorType:     one("data_type", varint),
	3:              refuse("segment", "is one segment of a larger tensor: join the segments"),
	tensorFloats:   list("float_data", fixed32),
	tensorInt32s:   list("int32_data", varint),
	6:              list("string_data", chunk),
	tensorInt64s:   list("int64_data", varint),
	tensorName:     one("name", chunk),
	tensorRaw:      one("raw_data", chunk),
	tensorDoubles:  list("double_data", fixed64),
	tensorUint64s:  list("uint64_data", varint),
	12:             ignore("doc_string", chunk),
	tensorFiles:    list("external_data", chunk),
	tensorLocation: one("data_location", varint),
	16:             ignore("metadata_props", chunk),
}}

var entrySchema = schema{"external_data", [maxField + 1]spec{
	entryKey:   one("key", chunk),
	entryValue: one("value", chunk),
}}
