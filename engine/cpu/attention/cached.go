package attention

import (
	"math"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// Shape is what CachedAttention of a sequence is, but for its length: heads of queries share those of keys and values.
type Shape struct {
	Heads, Shared, Size int
	Window              int     // keys before its own that a query sees at most; negative: all
	Scale               float32 // of products; 0: 1/√Size
	Softcap             float32 // 0: none
}

// Sequence is some last tokens of a sequence, and all tokens that they may look at. Tokens come one after another, with all their heads.
type Sequence struct {
	Rows, Total  int // tokens that look, and all
	Queries      []float32
	Keys, Values []float32 // of all
	Out          []float32 // like Queries
}

// Cached computes the operator CachedAttention for float32, whatever the lengths. Keys and values are read where they are.
type Cached struct {
	Shape
	set      *asm.KernelSet
	each     int // heads of queries for each of keys
	root     float32
	aOffsets []int // bytes to terms, which are tokens: of weights,
	bOffsets []int // and of values
	max, sum asm.FoldKernel
}

// NewCached returns what computes attention of a shape, nil where only programs do.
func NewCached(s Shape, set *asm.KernelSet) *Cached {
	lanes := s.Size > 0 && s.Size%asm.DotTerms == 0 && s.Size%set.Lanes == 0
	if s.Shared < 1 || s.Heads < 1 || s.Heads%s.Shared != 0 || !(s.Scale >= 0) || !lanes || len(set.DotGEMM) == 0 || set.EltwiseChain == nil {
		return nil
	}
	c := &Cached{Shape: s, set: set, each: s.Heads / s.Shared, max: set.Folds[tensor.FoldMax], sum: set.Folds[tensor.FoldSum]}
	if c.max == nil || c.sum == nil {
		return nil
	}
	scale := 1 / math.Sqrt(float64(s.Size))
	if s.Scale != 0 {
		scale = float64(s.Scale)
	}
	c.root = float32(math.Sqrt(scale))
	c.aOffsets, c.bOffsets = make([]int, tuning.BandedKC), make([]int, tuning.BandedKC)
	for t := range c.aOffsets {
		c.aOffsets[t], c.bOffsets[t] = t*mem.Word, t*s.Shared*s.Size*mem.Word
	}
	return c
}

// Units returns in how many parts a sequence falls, which are computed apart.
func (c *Cached) Units(x *Sequence) int { return x.Rows * c.Shared }

// Fits reports whether the slices of a sequence are as long as its lengths say.
func (c *Cached) Fits(x *Sequence) bool {
	queries, keys := x.Rows*c.Heads*c.Size, x.Total*c.Shared*c.Size
	return x.Rows > 0 && x.Rows <= x.Total && len(x.Queries) == queries && len(x.Out) == queries && len(x.Keys) == keys && len(x.Values) == keys
}

// Run computes one of the parts.
func (c *Cached) Run(w *kernel.Worker, x *Sequence, unit int) {
	l := kernel.Scratch[look](w)
	row, group := unit/c.Shared, unit%c.Shared
	l.Cached, l.to = c, x.Total-x.Rows+row+1
	l.from = 0
	if c.Window >= 0 {
		l.from = max(0, l.to-1-c.Window)
	}
	at, head := (row*c.Heads+group*c.each)*c.Size, group*c.Size
	l.multiply(x.Queries[at:][:c.each*c.Size], x.Keys[head:])
	l.softmax()
	l.sumValues(x.Out[at:][:c.each*c.Size], x.Values[head:])
}

// look is one token that looks at those from…to−1 by all heads that share keys.
type look struct {
	*Cached
	from, to     int
	pitch        int       // from head to head in scores
	scores       []float32 // products, then weights; a token's stands at its place
	queries      []float32 // scaled, term by term
	keys         []float32 // some, scaled
	greatest     []float32 // by head
	total        []float32
	acc          []float32
	sums         kernel.KBlocks
	ops          [2]asm.EltwiseOp
	root, capped float32
}

// field is rows of so many elements, with a gap of so many between them where they go, and a greater one, by lead, where they come from.
type field struct{ rows, width, gap, lead int }

// chain takes x through ops.
func (l *look) chain(f field, dst, x *float32, ops ...asm.EltwiseOp) {
	n := copy(l.ops[:], ops)
	l.set.EltwiseChain(f.rows, 1, f.width, f.gap*mem.Word, 0, f.lead*mem.Word, dst, x, (*byte)(unsafe.Pointer(&l.ops)), n)
}

// multiply multiplies queries and keys, both times the root of the scale.
func (l *look) multiply(q, keys []float32) {
	l.root = l.Cached.root
	by := asm.EltwiseOp{Fn: asm.OpMul, At: unsafe.Pointer(&l.root)}
	l.pitch = mem.RoundUp(l.to, asm.DotColumns) + asm.DotColumns
	l.scores = mem.Grow(l.scores, l.each*l.pitch)
	l.keys = mem.Grow(l.keys, tuning.CachedKeys*l.Size)
	l.queries = mem.Grow(l.queries, 2*l.each*l.Size)
	scaled, turned := l.queries[:l.each*l.Size], l.queries[l.each*l.Size:]
	l.chain(field{rows: 1, width: len(q)}, &scaled[0], &q[0], by)
	most := len(l.set.DotGEMM)
	for h, n := 0, 0; h < l.each; h += n {
		n = min(most, l.each-h)
		for k := range l.Size {
			for i := range n {
				turned[h*l.Size+k*n+i] = scaled[(h+i)*l.Size+k]
			}
		}
	}
	token := l.Shared * l.Size
	for t := l.from; t < l.to; t += tuning.CachedKeys {
		some := min(tuning.CachedKeys, l.to-t)
		l.chain(field{rows: some, width: l.Size, lead: token - l.Size}, &l.keys[0], &keys[t*token], by)
		for j := 0; j < some; j += asm.DotColumns {
			for h, n := 0, 0; h < l.each; h += n {
				n = min(most, l.each-h)
				l.set.DotGEMM[n-1](l.Size, &turned[h*l.Size], &l.keys[j*l.Size], l.Size*mem.Word, &l.scores[h*l.pitch+t+j], l.pitch*mem.Word, false)
			}
		}
	}
}

// softmax makes weights of the products. Tokens that are not seen have the weight 0, which is what the exponential of −∞ is.
func (l *look) softmax() {
	l.greatest, l.total = mem.Grow(l.greatest, l.each), mem.Grow(l.total, l.each)
	n := l.to - l.from
	first, all := &l.scores[l.from], field{rows: l.each, width: n, gap: l.pitch - n}
	if l.Softcap != 0 {
		l.capped = l.Softcap
		by := unsafe.Pointer(&l.capped)
		l.chain(all, first, first, asm.EltwiseOp{Fn: asm.OpDiv, At: by}, asm.EltwiseOp{Fn: asm.OpTanh, At: by})
		l.chain(all, first, first, asm.EltwiseOp{Fn: asm.OpMul, At: by})
	}
	for h := range l.each {
		l.max(&l.greatest[h], &l.scores[h*l.pitch+l.from], 1, n)
	}
	less := asm.EltwiseOp{Fn: asm.OpSub, At: unsafe.Pointer(&l.greatest[0]), Row: -1}
	l.chain(all, first, first, less, asm.EltwiseOp{Fn: asm.OpExp, At: unsafe.Pointer(&l.root)})
	for h := range l.each {
		clear(l.scores[h*l.pitch:][:l.from])
		l.sum(&l.total[h], &l.scores[h*l.pitch], 1, l.to)
	}
	l.chain(all, first, first, asm.EltwiseOp{Fn: asm.OpDiv, At: unsafe.Pointer(&l.total[0]), Row: -1})
}

// sumValues adds values by their weights.
func (l *look) sumValues(out, values []float32) {
	if l.to <= tensor.KBlock {
		l.advance(out, values, l.from, l.to, false)
		return
	}
	l.acc, l.sums = mem.Grow(l.acc, len(out)), l.sums[:0]
	for n := 0; ; n++ {
		start, end := n*tensor.KBlock, min((n+1)*tensor.KBlock, l.to)
		clear(l.acc)
		l.advance(l.acc, values, max(start, l.from), end, true)
		if end == l.to {
			break
		}
		l.sums.End(l.acc, n+1)
	}
	copy(out, l.acc)
	for s := len(l.sums) - 1; s >= 0; s-- {
		kernel.AddTo(out, l.sums[s])
	}
	for i, x := range out {
		out[i] = eltwise.Canonical(x)
	}
}

// advance advances accumulators of all heads by the terms from…to−1.
func (l *look) advance(acc, values []float32, from, to int, add bool) {
	token, row := l.Shared*l.Size, l.Size*mem.Word
	for t := from; t < to; t += len(l.aOffsets) {
		n := min(len(l.aOffsets), to-t)
		for h, rows := 0, 0; h < l.each; h += rows {
			rows = mem.EvenPart(l.each-h, l.set.MR(), 1)
			for c, left := 0, l.Size/l.set.Lanes; left > 0; {
				vectors := mem.EvenPart(left, l.set.NRVectors(), 1)
				tiles := left / vectors
				width := vectors * l.set.Lanes
				l.set.GEMM[rows-1][vectors-1](tiles, n, &l.scores[h*l.pitch+t], l.pitch*mem.Word, &l.aOffsets[0], &values[t*token+c], width*mem.Word, &l.bOffsets[0],
					&acc[h*l.Size+c], row, add || t > from)
				c, left = c+tiles*width, left-tiles*vectors
			}
		}
	}
}
