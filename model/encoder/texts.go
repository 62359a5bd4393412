package encoder

import (
	"fmt"

	"github.com/tally-network/tally/core/tensor"
)

// Texts are what the model's inputs take of all texts: int64 [texts length] each.
type Texts struct{ IDs, Mask *tensor.Tensor }

// Texts checks token ids, and a mask of the same shape. Without one, padding is told by its token.
func (e *Encoder) Texts(ids, mask *tensor.Tensor) (*Texts, error) {
	out := &Texts{}
	var err error
	if out.IDs, err = numbers(ids, e.Vocabulary); err != nil {
		return nil, fmt.Errorf("token ids: %w: use the model's own tokenizer", err)
	}
	if n := ids.Shape[1]; n > e.Positions {
		return nil, fmt.Errorf("texts have %d tokens, and the model reads %d: cut them", n, e.Positions)
	}
	if mask != nil {
		if !mask.Shape.Equal(ids.Shape) {
			return nil, fmt.Errorf("the mask has shape %v, and the token ids %v: save both from one run of the tokenizer", mask.Shape, ids.Shape)
		}
		if out.Mask, err = numbers(mask, 2); err != nil {
			return nil, fmt.Errorf("mask: %w: it is 1 for tokens and 0 for padding", err)
		}
		return out, nil
	}
	if out.Mask, err = tensor.New(tensor.Int64, ids.Shape); err != nil {
		return nil, err
	}
	marks := tensor.Of[int64](out.Mask)
	for i, id := range tensor.Of[int64](out.IDs) {
		if id != int64(e.Padding) {
			marks[i] = 1
		}
	}
	return out, nil
}

// numbers returns whole numbers from 0 to below a limit as int64.
func numbers(x *tensor.Tensor, below int) (*tensor.Tensor, error) {
	if x.Type != tensor.Int32 && x.Type != tensor.Int64 || len(x.Shape) != 2 || x.Len() == 0 {
		return nil, fmt.Errorf("they are %v%v, want int32 or int64 [texts tokens]", x.Type, x.Shape)
	}
	out, err := tensor.New(tensor.Int64, x.Shape)
	if err != nil {
		return nil, err
	}
	for i := range x.Len() {
		n := int64(x.At(i))
		if n < 0 || n >= int64(below) {
			return nil, fmt.Errorf("number %d of text %d is %d, want 0 to %d", i%x.Shape[1], i/x.Shape[1], n, below-1)
		}
		out.Set(i, tensor.Word(n))
	}
	return out, nil
}
