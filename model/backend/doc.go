// Package backend runs ONNX's backend tests: folders that hold model.onnx and,
// in test_data_set_N, the inputs and the outputs that the model should give.
//
// Invariant: a test passes if every output has the expected type, shape and values, and both
// executors give the same bits. Values may differ by the tolerance of ONNX's own runner. A model
// that is refused before anything of it runs is unsupported, for a reason that is told. So is
// one that draws by chance, unless it happens to draw what the test expects. Everything else
// fails.
//
// Give a [Suite] its folder and call [Suite.Run].
//
// Source: onnx/backend/test (github.com/onnx/onnx).
package backend
