package engine

import (
	"context"
	"time"

	"github.com/tally-network/tally/core/graph"
)

// Explainer is a runner that can say how it runs its program.
type Explainer interface {
	Runner
	// Explain runs the program, and returns the tasks that it ran, in their order.
	Explain(ctx context.Context, in graph.Inputs) (*graph.State, []Task, error)
}

// Task is what an executor runs at a time: one node of a program, or several as one.
type Task struct {
	Nodes    []int  `json:"nodes"`    // of the program; the first is what the kernel computes, the others are fused with it
	Ops      string `json:"ops"`      // the model's operators that these nodes come from
	Kernel   string `json:"kernel"`   // what computes
	Blocking string `json:"blocking"` // how the output falls into blocks and tiles
	Packing  string `json:"packing"`  // how operands are read
	Fusion   string `json:"fusion"`   // what follows the kernel, or is computed in its place

	Blocks int `json:"blocks"` // that are independent of each other
	Grain  int `json:"grain"`  // blocks that are worth a thread
	FLOPs  int `json:"flops"`
	Bytes  int `json:"bytes"` // of all that it reads and writes once

	Outputs []Place `json:"outputs"`

	Begin time.Duration `json:"begin_ns"` // since the run began
	Took  time.Duration `json:"took_ns"`
}

// Place is where the output of a node lies.
type Place struct {
	Node   int `json:"node"`
	Offset int `json:"offset"` // bytes, in the arena; −1: memory of its own, which outlives the run
	Bytes  int `json:"bytes"`
}
