package train

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/train/pattern"
)

// part is a part of a recipe that is left out where neither it nor a later one has anything.
type part struct {
	has  func() bool
	code func()
}

// Code walks the fields of r: an order carries a recipe in this form.
func (r *Recipe) Code(c *canon.Codec) {
	canon.Seq(c, (*[]record.Field)(&r.Fields), record.MaxFields, 3, func(c *canon.Codec, f *record.Field) { f.Code(c) })
	c.String(&r.Loss, 64)
	r.LossOptions.code(c)
	c.String(&r.Optimizer, 64)
	c.String(&r.Schedule, 64)
	for _, f := range []*float32{
		&r.LearningRate, &r.Final, &r.Momentum, &r.Beta1, &r.Beta2, &r.Epsilon, &r.WeightDecay, &r.ClipNorm, &r.Adapters.Alpha,
	} {
		codeFloat(c, f)
	}
	c.Bool(&r.Nesterov)
	c.Int(&r.Warmup, 1<<24)
	c.Int(&r.Decay, 1<<24)
	c.Int(&r.Accumulate, 1<<16)
	c.Int(&r.Recompute, maxParts)
	c.Int(&r.Batch, maxBatch)
	c.U64(&r.Seed)
	c.Int(&r.Adapters.Rank, maxRank)
	for _, list := range []*[]string{&r.Frozen, &r.Adapters.Of} {
		canon.Seq(c, list, pattern.Max, 1, func(c *canon.Codec, s *string) { c.String(s, pattern.MaxBytes) })
	}
	// What came later stands at the end, each part with all before it, and the last one is not empty.
	parts := []part{
		{func() bool { return len(r.Augment) > 0 }, func() {
			canon.Seq(c, &r.Augment, maxAugments, 4, func(c *canon.Codec, a *Augment) { a.code(c) })
		}},
		{func() bool { return r.Teacher != "" }, func() {
			c.String(&r.Teacher, record.MaxFieldName)
			codeFloat(c, &r.Weight)
		}},
		{func() bool { return r.Best != Best{} }, func() { r.Best.code(c) }},
	}
	for i, p := range parts {
		later := slices.ContainsFunc(parts[i:], func(p part) bool { return p.has() })
		if !c.Tail(later) {
			return
		}
		if p.code(); !p.has() && !c.Tail(later) {
			c.Fail("an empty part at the end of a recipe")
		}
	}
}

func (a *LossOptions) code(c *canon.Codec) {
	for _, s := range []*string{&a.Output, &a.Target, &a.Mask} {
		c.String(s, record.MaxFieldName)
	}
	for _, f := range []*float32{&a.Smoothing, &a.Delta, &a.Temperature, &a.Beta} {
		codeFloat(c, f)
	}
	canon.Seq(c, &a.Weights, maxClasses, 1, codeFloat)
}

// codeFloat walks the bits of a float32.
func codeFloat(c *canon.Codec, f *float32) {
	bits := uint64(math.Float32bits(*f))
	if c.U64(&bits); bits > math.MaxUint32 {
		c.Fail("%d is not the bits of a float32", bits)
	}
	*f = math.Float32frombits(uint32(bits))
}
