package eltwise

import (
	"math"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Cast returns the Func that converts elements of one type to another, nil if there is
// none. Halves are converted by way of float32, which holds them exactly.
func Cast(set *asm.KernelSet, from, to tensor.DType) Func {
	if from == to {
		return bySize(to, moves)
	}
	return vectorized(set, set.Casts[asm.Cast{From: from, To: to}], plainCast(from, to), to.Size(), from.Size())
}

// plainCast is a cast in plain Go.
func plainCast(from, to tensor.DType) Func {
	switch from {
	case tensor.Float16, tensor.BFloat16:
		if to == tensor.Float32 {
			return each(func(x uint16) float32 { return float32(tensor.FloatOf(from, tensor.Word(x))) })
		}
	case tensor.Float32:
		return castFloat[float32](to)
	case tensor.Float64:
		return castFloat[float64](to)
	case tensor.Bool, tensor.Uint8:
		return castInteger[uint8](to)
	case tensor.Int8:
		return castInteger[int8](to)
	case tensor.Int16:
		return castInteger[int16](to)
	case tensor.Int32:
		return castInteger[int32](to)
	case tensor.Int64:
		return castInteger[int64](to)
	case tensor.Uint16:
		return castInteger[uint16](to)
	case tensor.Uint32:
		return castInteger[uint32](to)
	case tensor.Uint64:
		return castInteger[uint64](to)
	}
	return nil
}

func castInteger[S mem.Integer](to tensor.DType) Func {
	switch to {
	case tensor.Float32:
		return convert[float32, S]()
	case tensor.Float64:
		return convert[float64, S]()
	case tensor.Float16, tensor.BFloat16:
		return each(func(x S) uint16 { return uint16(tensor.FloatWord(to, float64(x))) })
	case tensor.Bool:
		return each(func(x S) uint8 { return truth(x != 0) })
	case tensor.Int8:
		return convert[int8, S]()
	case tensor.Int16:
		return convert[int16, S]()
	case tensor.Int32:
		return convert[int32, S]()
	case tensor.Int64:
		return convert[int64, S]()
	case tensor.Uint8:
		return convert[uint8, S]()
	case tensor.Uint16:
		return convert[uint16, S]()
	case tensor.Uint32:
		return convert[uint32, S]()
	}
	return convert[uint64, S]()
}

func convert[D mem.Ordered, S mem.Integer]() Func { return each(func(x S) D { return D(x) }) }

func castFloat[S mem.Float](to tensor.DType) Func {
	switch to {
	case tensor.Float32:
		return each(func(x S) float32 { return Canonical(float32(x)) })
	case tensor.Float64:
		return each(func(x S) float64 { return Canonical(float64(x)) })
	case tensor.Float16, tensor.BFloat16:
		return each(func(x S) uint16 { return uint16(tensor.FloatWord(to, float64(x))) })
	case tensor.Bool:
		return each(func(x S) uint8 { return truth(x != 0) })
	case tensor.Int8:
		return saturate[int8, S](math.MinInt8, math.MaxInt8)
	case tensor.Int16:
		return saturate[int16, S](math.MinInt16, math.MaxInt16)
	case tensor.Int32:
		return saturate[int32, S](math.MinInt32, math.MaxInt32)
	case tensor.Int64:
		return saturate[int64, S](math.MinInt64, math.MaxInt64)
	case tensor.Uint8:
		return saturate[uint8, S](0, math.MaxUint8)
	case tensor.Uint16:
		return saturate[uint16, S](0, math.MaxUint16)
	case tensor.Uint32:
		return saturate[uint32, S](0, math.MaxUint32)
	}
	return saturate[uint64, S](0, math.MaxUint64)
}

// narrowFunc makes floats factors of profile mixed.
func narrowFunc(from tensor.DType) Func {
	if from == tensor.Float64 {
		return each(func(x float64) uint16 { return uint16(tensor.Narrowed(x)) })
	}
	return each(func(x float32) uint16 { return uint16(tensor.Narrowed(float64(x))) })
}

// saturate truncates towards zero into [least, greatest]; NaN gives 0.
func saturate[D mem.Integer, S mem.Float](least, greatest D) Func {
	return each(func(x S) D {
		switch v := float64(x); {
		case v != v:
			return 0
		case v >= float64(greatest):
			return greatest
		case v <= float64(least):
			return least
		default:
			return D(v)
		}
	})
}

// bitsFunc keeps the bits and makes them an element of type out.
func bitsFunc(out tensor.DType) Func {
	keep := bySize(out, moves)
	mend := canonicalizer(out)
	if mend == nil {
		return keep
	}
	return func(dst, x, y, z unsafe.Pointer, rows, width int) {
		keep(dst, x, y, z, rows, width)
		mend(dst, dst, nil, nil, rows, width)
	}
}

// canonicalizer makes bits an element of a type of which not all bits are; nil if all
// are.
func canonicalizer(t tensor.DType) Func {
	switch t {
	case tensor.Float32:
		return each(Canonical[float32])
	case tensor.Float64:
		return each(Canonical[float64])
	case tensor.Float16, tensor.BFloat16:
		return each(func(x uint16) uint16 { return uint16(tensor.FloatWord(t, tensor.FloatOf(t, tensor.Word(x)))) })
	case tensor.Bool:
		return each(func(x uint8) uint8 { return truth(x != 0) })
	}
	return nil
}
