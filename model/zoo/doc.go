// Package zoo builds reference models: graphs in ONNX's operators, with initial weights, which can be trained
// at once. Call [Find] or go through [Architectures], then [Architecture.New].
//
// What may be chosen of an architecture is a table ([Setting]): help, checks and documents follow from it.
//
// Invariants:
//   - A graph follows from name, settings and seed, bit for bit, on every machine. Weights are drawn from
//     SHA-256, and scaled by one product in float32.
//   - Weights do not depend on the batch.
//   - Inputs are called tokens, features, sequence or image, with the batch as their first axis. The one output
//     is logits, or value where classes=0.
//   - Float initializers are what is trained, but for running statistics of BatchNormalization. Other
//     constants are nodes.
//   - Sizes are checked before weights take memory.
//
// Sources: the papers that each file names. Names, layouts and first distributions of weights are those of
// PyTorch, torchvision, timm and milesial's U-Net, so that state_dicts fit; gpt alone has names of its own.
package zoo
