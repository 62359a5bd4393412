package reduce

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/kernel"
)

// rank finds the ranks of all elements of a row by sorting it, instead of
// comparing each with every other. It takes what TopK asks: of a row's elements
// among themselves.
type rank struct {
	p          *tensor.Primitive
	n          int
	descending bool
	rows       []int       // extents of the other axes
	out, in    affine.Form // where a row starts
	step, from int         // from one element of a row to the next
}

// NewRank returns the kernel of the ranks p, nil if its rows are not ranked among themselves.
func NewRank(p *tensor.Primitive) kernel.Kernel {
	r := len(p.Shape)
	a := int(p.Imm[0])
	if len(p.Fold) != 1 || p.Fold[0] != p.Shape[a] {
		return nil
	}
	base, terms, linear := p.Reader(0)
	again, elements, linearToo := p.Reader(1)
	if !linear || !linearToo || base != again || !p.Args[0].Shape.Equal(p.Args[1].Shape) {
		return nil
	}
	k := &rank{p: p, n: p.Shape[a], descending: p.Imm[1] == 0}
	strides := p.Shape.Strides()
	k.step, k.from = strides[a], elements[a]
	k.in.Base = base
	for i := range r {
		switch {
		case i == a:
			if terms[i] != 0 || terms[r] != elements[i] {
				return nil
			}
		case terms[i] != elements[i]:
			return nil
		default:
			k.rows = append(k.rows, p.Shape[i])
			k.out.Steps, k.in.Steps = append(k.out.Steps, strides[i]), append(k.in.Steps, elements[i])
		}
	}
	return k
}

// item is an element of a row: where it is, and a key that orders it.
type item struct {
	key uint64
	at  int
}

// keys fills items with the elements of a row. Keys of Size bytes of a type order as its elements do: zeros are one, and so are
// NaNs, above all numbers. In descending order all their bits are turned.
func (k *rank) keys(items []item, x *tensor.Tensor, at int) {
	turn := uint64(0)
	if k.descending {
		turn = math.MaxUint64
	}
	if x.Type == tensor.Float32 {
		values := tensor.Of[float32](x)
		for i := range items {
			items[i] = item{turn ^ uint64(orderedFloat32(values[at+i*k.from])), i}
		}
		return
	}
	for i := range items {
		items[i] = item{turn ^ ordered(x.Type, x.At(at+i*k.from)), i}
	}
}

// orderedFloat32 is ordered, of a float32.
func orderedFloat32(f float32) uint32 {
	switch {
	case f != f:
		return math.MaxUint32
	case f == 0:
		return 1 << 31
	}
	b := math.Float32bits(f)
	return b ^ (uint32(int32(b)>>31) | 1<<31)
}

// ordered returns the key of an element. Narrow floats take four bytes, as float32 does.
func ordered(t tensor.DType, w tensor.Word) uint64 {
	switch {
	case t == tensor.Float64:
		f := tensor.FloatOf(t, w)
		switch {
		case f != f:
			return math.MaxUint64
		case f == 0:
			return 1 << 63
		}
		b := math.Float64bits(f)
		return b ^ (uint64(int64(b)>>63) | 1<<63)
	case t.Float():
		return uint64(orderedFloat32(float32(tensor.FloatOf(t, w))))
	case t.Unsigned():
		return uint64(w)
	}
	return uint64(w) ^ 1<<63
}

// sortItems sorts by keys, of equals the first first, with as many items of room: by byte after byte, from the last.
func sortItems(items, room []item) []item {
	differ := uint64(0)
	for i := range items {
		differ |= items[i].key ^ items[0].key
	}
	for shift := 0; shift < 64; shift += 8 {
		if byte(differ>>shift) == 0 {
			continue
		}
		var starts [256]int
		for i := range items {
			starts[byte(items[i].key>>shift)]++
		}
		sum := 0
		for b, n := range starts {
			starts[b] = sum
			sum += n
		}
		for _, it := range items {
			b := byte(it.key >> shift)
			room[starts[b]] = it
			starts[b]++
		}
		items, room = room, items
	}
	return items
}

func (k *rank) Blocks() int { return tensor.Shape(k.rows).Elements() * min(k.n, 1) }

func (k *rank) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	if &args[0].Bytes()[0] != &args[1].Bytes()[0] {
		return k.apart(w, out, args, lo, hi)
	}
	coord := make([]int, len(k.rows))
	items, room := make([]item, k.n), make([]item, k.n)
	ranks := tensor.Of[int64](out)
	for row := lo; row < hi; row++ {
		if w.Stopped() {
			return kernel.ErrStopped
		}
		tensor.Shape(k.rows).Coords(row, coord)
		o, x := k.out.At(coord), k.in.At(coord)
		k.keys(items, args[0], x)
		for rank, it := range sortItems(items, room) {
			ranks[o+it.at*k.step] = int64(rank)
		}
	}
	return nil
}

// apart is for elements ranked among those of another tensor, by definition.
func (k *rank) apart(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	c := kernel.NewCell(k.p, args)
	coord := make([]int, len(k.rows))
	for row := lo; row < hi; row++ {
		tensor.Shape(k.rows).Coords(row, coord)
		o := k.out.At(coord)
		for i := range k.n {
			if w.Stopped() {
				return kernel.ErrStopped
			}
			if err := kernel.Evaluate(c, out, o+i*k.step); err != nil {
				return err
			}
		}
	}
	return nil
}
