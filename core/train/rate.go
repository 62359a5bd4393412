package train

import (
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// A schedule writes what is left of the learning rate, between 1 and 0, from how
// far its fall has come, between 0 and 1.
var schedules = map[string]func(b *graph.Builder, x string) string{
	"":         func(b *graph.Builder, _ string) string { return b.Scalar(1) },
	"constant": func(b *graph.Builder, _ string) string { return b.Scalar(1) },
	"linear":   func(b *graph.Builder, x string) string { return b.Op("Sub", b.Scalar(1), x) },
	// ½ + ½·cos πx
	"cosine": func(b *graph.Builder, x string) string {
		wave := b.Op("Cos", b.Op("Mul", x, b.Scalar(math.Pi)))
		return b.Op("Add", b.Op("Mul", wave, b.Scalar(0.5)), b.Scalar(0.5))
	},
}

// write writes the rate of a step from the number of steps done by its end.
func (r Rate) write(b *graph.Builder, step string) string {
	rate := b.Scalar(r.LearningRate)
	if r.Warmup < 2 && r.Decay == 0 {
		return rate
	}
	done := b.Cast(step, tensor.Float32)
	if r.Warmup >= 2 {
		part := b.Op("Div", done, b.Scalar(float32(r.Warmup)))
		rate = b.Op("Mul", b.Op("Min", part, b.Scalar(1)), rate)
	}
	if r.Decay == 0 || r.Schedule == "" || r.Schedule == "constant" {
		return rate
	}
	past := b.Op("Max", b.Op("Sub", done, b.Scalar(float32(r.Warmup))), b.Scalar(0))
	x := b.Op("Min", b.Op("Div", past, b.Scalar(float32(r.Decay))), b.Scalar(1))
	left := schedules[r.Schedule](b, x)
	if r.Final != 0 { // final + (1 − final)·left
		left = b.Op("Add", b.Op("Mul", left, b.Scalar(1-r.Final)), b.Scalar(r.Final))
	}
	return b.Op("Mul", rate, left)
}
