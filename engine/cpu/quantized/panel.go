package quantized

import (
	"context"
	"fmt"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/weights"
)

// weight is a constant matrix of blocks, by rows, of which each becomes a column of a panel.
type weight struct{ *product }

// layoutVersion changes when the same layout gives other bytes.
const layoutVersion = 1

// blocks returns the blocks of a column in a panel, of which the last may hold fewer terms.
func (k *product) blocks() int { return mem.CeilDiv(k.terms, k.format.elements) }

// panelBytes returns the size of a panel.
func (k *product) panelBytes() int { return k.blocks() * k.format.panelSize }

// rowBytes returns the size of a row of the constant.
func (k *product) rowBytes() int {
	elements, size := k.format.of.Block()
	return k.terms / elements * size
}

// Weights implements kernel.Prepacker.
func (k *product) Weights(isConstant func(operand int) bool) []kernel.Weight {
	if !isConstant(k.arg) {
		return nil
	}
	return []kernel.Weight{&weight{k}}
}

// Operand implements kernel.Weight.
func (w *weight) Operand() int { return w.arg }

// Layout implements kernel.Weight.
func (w *weight) Layout() string {
	return fmt.Sprintf("blocks %d: %v, %d rows of %d", layoutVersion, w.format.of, w.cols.N, w.terms)
}

// Bytes implements kernel.Weight.
func (w *weight) Bytes() int { return mem.CeilDiv(w.cols.N, columns) * w.panelBytes() }

// Pack implements kernel.Weight.
func (w *weight) Pack(ctx context.Context, dst []byte, x *tensor.Tensor) error {
	for panel := range mem.CeilDiv(w.cols.N, columns) {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.pack(dst[panel*w.panelBytes():][:w.panelBytes()], x.Bytes(), panel)
	}
	return nil
}

// pack packs a panel of the matrix.
func (k *product) pack(dst, matrix []byte, panel int) {
	clear(dst)
	k.move(dst, matrix, panel, false)
}

// move moves a panel of the matrix to dst, or back.
func (k *product) move(dst, matrix []byte, panel int, back bool) {
	var last [2 * 8]byte // of a row of 16-bit floats that is no whole blocks
	f, row := k.format, k.rowBytes()
	for column := range min(columns, k.cols.N-panel*columns) {
		src := matrix[(panel*columns+column)*row:][:row]
		for b := range k.blocks() {
			v := view{panel: dst[b*f.panelSize:][:f.panelSize], column: column, restore: back}
			if from := src[b*f.size:]; len(from) >= f.size {
				v.block = from[:f.size]
				f.move(v)
				continue
			}
			n := copy(last[:], src[b*f.size:])
			clear(last[n:])
			v.block = last[:]
			f.move(v)
			copy(src[b*f.size:], last[:n])
		}
	}
}

// Whole implements kernel.Weight.
func (w *weight) Whole() bool { return true }

// Unpack implements kernel.Weight.
func (w *weight) Unpack(packed []byte) (*tensor.Tensor, error) {
	x, err := tensor.New(w.stored.Type, w.stored.Shape)
	if err != nil {
		return nil, err
	}
	for panel := range mem.CeilDiv(w.cols.N, columns) {
		w.move(packed[panel*w.panelBytes():][:w.panelBytes()], x.Bytes(), panel, true)
	}
	return x, nil
}

// Use implements kernel.Weight.
func (w *weight) Use(p *weights.Packed) { w.packed = p }

var _ kernel.Prepacker = (*product)(nil)
