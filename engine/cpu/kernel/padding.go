package kernel

// Kernels compute with padding, a 0 for every term that lies outside an operand, where
// the definition leaves the term out. The sum is the same, but in two cases: a product
// of padding with an infinity or a NaN is a NaN, and +0 + −0 is +0 where −0 alone would
// stay −0. A sum is −0 only if all its products are −0, or if one rounds to zero. So a
// kernel that has met padding looks for NaNs, and asks by exponents whether a product
// may have rounded to zero; only then does it [Evaluate] the elements in doubt.

// MinExponent bounds the exponents of some values from below: no value but zero has a
// lesser biased exponent.
type MinExponent uint32

// NoExponent is the bound of no values at all.
const NoExponent MinExponent = 255

// MinExponentOf returns the bound that belongs to a least asm.Magnitude.
func MinExponentOf(leastMagnitude uint32) MinExponent { return MinExponent(leastMagnitude >> 24) }

// ProductsKept is the least sum of the bounds of two operands with which no product
// rounds to zero: products are multiples of 2^(a+b−300), here of the least subnormal,
// 2⁻¹⁴⁹.
const ProductsKept = 300 - 149
