// Package backend runs ONNX's backend tests: folders that hold model.onnx and,
// in test_data_set_N, the inputs and the outputs that the model should give.
//
// Invariant: a test passes if every output has the expected type, shape and values, within
// the tolerance that ONNX's own runner has, and if both executors give the same
// bits. A model that is refused before anything of it runs is unsupported, for
// a reason that is told, and so is one that draws by chance, unless it happens to
// draw what the test expects; everything else fails.
//
// Give a [Suite] its folder and call [Suite.Run].
//
// Source: onnx/backend/test (github.com/onnx/onnx).
package backend
