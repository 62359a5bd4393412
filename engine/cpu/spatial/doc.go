// Package spatial computes what windows do plane by plane: poolings ([NewPooling]) and
// depthwise convolutions ([NewDepthwise]). Convolutions that sum over channels are
// contractions, in package gemm.
//
// The planes of a block are copied to a window buffer (window.go), in which what one term
// reads for all windows is one contiguous row. A maximum whose windows move by a stride
// goes down the lines of the operand first, in place (vertical.go). A depthwise convolution
// of many planes turns them into blocks of channels (channels.go), as NCHWc and XNNPACK's
// dwconv have them: the lanes of a vector are channels.
//
// Invariants: terms are folded in the order of the definition wherever another order could
// change a bit; elements that padding could change are evaluated by definition.
package spatial
