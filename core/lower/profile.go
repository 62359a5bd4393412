package lower

import (
	"fmt"

	"github.com/tally-network/tally/core/tensor"
)

// Profile says how the matrix products of floats are computed: everything that
// becomes a contraction of them. All else is the same in every profile. It
// shows in the primitives, so that it is part of a program's root.
type Profile uint8

// The profiles. FP32 computes in the types that a model has. Mixed rounds factors to bfloat16
// within limits in which every product is exact and no sum overflows. So any hardware with
// float32 additions gives the same bits. Int8 scales each factor's tensor to whole numbers of 8
// bits and sums them as int32.
const (
	FP32 Profile = iota
	Mixed
	Int8
)

var profiles = [...]struct {
	name     string
	maxTerms int // of one product; any if 0
}{
	FP32:  {"fp32", 0},
	Mixed: {"mixed", 1 << 26},
	Int8:  {"int8", 1 << 17}, // 127² · 2¹⁷ < 2³¹
}

// Profiles returns the names of all profiles.
func Profiles() []string {
	var out []string
	for _, p := range profiles {
		out = append(out, p.name)
	}
	return out
}

// ParseProfile returns the profile called name.
func ParseProfile(name string) (Profile, error) {
	for i, p := range profiles {
		if p.name == name {
			return Profile(i), nil
		}
	}
	return 0, fmt.Errorf("numeric profile %q is not known; use one of %q", name, Profiles())
}

// String returns the name of p.
func (p Profile) String() string {
	if int(p) < len(profiles) {
		return profiles[p].name
	}
	return fmt.Sprintf("profile(%d)", uint8(p))
}

// MarshalText implements encoding.TextMarshaler.
func (p Profile) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Profile) UnmarshalText(b []byte) (err error) {
	*p, err = ParseProfile(string(b))
	return err
}

// product emits a contraction of floats as the profile has it.
func (e *Emitter) product(p tensor.Primitive, x, y Operand) (View, error) {
	rule := &profiles[e.profile]
	if n := p.Terms(); n > rule.maxTerms {
		return View{}, fmt.Errorf("a sum of %d products is too long for profile %s, which takes %d", n, rule.name, rule.maxTerms)
	}
	multiply := e.multiplyNarrow
	if e.profile == Int8 {
		multiply = e.multiplyWhole
	}
	v, err := multiply(p, x, y)
	if err != nil {
		return View{}, err
	}
	return e.Cast(v, p.Type)
}

// multiplyNarrow multiplies factors rounded to bfloat16.
func (e *Emitter) multiplyNarrow(p tensor.Primitive, x, y Operand) (View, error) {
	for _, o := range []*Operand{&x, &y} {
		v, err := e.Map(tensor.Narrow, tensor.BFloat16, o.source())
		if err != nil {
			return View{}, err
		}
		o.take(v)
	}
	p.Type = tensor.Float32
	return e.add(&p, x, y)
}

// multiplyWhole multiplies factors as whole numbers of −127 … 127: x/s rounded,
// where s = max |x| / 127 over the whole tensor. A NaN or an infinity in it
// makes s such, and with it the result.
func (e *Emitter) multiplyWhole(p tensor.Primitive, x, y Operand) (View, error) {
	var scales [2]View
	for i, o := range []*Operand{&x, &y} {
		q, s, err := e.whole8(o.source())
		if err != nil {
			return View{}, err
		}
		o.take(q)
		scales[i] = s
	}
	p.Type = tensor.Int32
	sum, err := e.add(&p, x, y)
	if err == nil {
		sum, err = e.Cast(sum, tensor.Float32)
	}
	if err != nil {
		return View{}, err
	}
	scale, err := e.Map(tensor.Mul, tensor.Float32, scales[0], scales[1])
	if err != nil {
		return View{}, err
	}
	return e.Map(tensor.Mul, tensor.Float32, sum, scale)
}

// leastSpread keeps the scale of a tensor of zeros above zero.
const leastSpread = 0x1p-100

// whole8 returns x as int8 and the scale by which it is divided.
func (e *Emitter) whole8(x View) (q, scale View, err error) {
	x, err = e.Cast(x, tensor.Float32)
	if err != nil {
		return View{}, View{}, err
	}
	spread := e.Const(tensor.Scalar[float32](leastSpread))
	for _, fn := range []tensor.Fn{tensor.FoldMax, tensor.FoldMin} {
		v := x
		for a := len(x.Shape) - 1; a >= 0 && err == nil; a-- { // row by row, so that rows can be shared out
			v, err = e.Fold(fn, tensor.Float32, v, []int{a})
		}
		if err == nil {
			v, err = e.Reshape(v, tensor.Shape{})
		}
		if err == nil && fn == tensor.FoldMin {
			v, err = e.Map(tensor.Neg, tensor.Float32, v)
		}
		if err == nil {
			spread, err = e.Map(tensor.Max, tensor.Float32, spread, v)
		}
		if err != nil {
			return View{}, View{}, err
		}
	}
	if scale, err = e.Map(tensor.Div, tensor.Float32, spread, e.Const(tensor.Scalar[float32](127))); err != nil {
		return View{}, View{}, err
	}
	q, err = e.Map(tensor.Div, tensor.Float32, x, scale)
	if err == nil {
		q, err = e.Map(tensor.Round, tensor.Float32, q)
	}
	if err == nil {
		q, err = e.Cast(q, tensor.Int8)
	}
	return q, scale, err
}

// source returns the whole tensor that o reads from.
func (o *Operand) source() View { return whole(o.ref, o.Type, o.Shape) }

// take makes o read the same elements of another tensor of its shape.
func (o *Operand) take(v View) { o.ref, o.Type = v.src, v.Type }
