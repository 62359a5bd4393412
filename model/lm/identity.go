package lm

import (
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// State returns what a reply to r follows from, as steps of a model read it (docs/adr/0071-disputes-of-replies.md). All requests that were checked have
// the same slots:
//
//	made, max_tokens, likeliest, top_k  int64 [1]
//	temperature, top_p, min_p, repeat, presence, frequency  [1]
//	seed             uint32 [2], the lower half first
//	ends             int64 [MaxEnds], −1 where there is none
//	bias_ids, bias   int64 and float32 [MaxBias], in order; −1 and 0 where there is none
//	prompt           int64 [1]: how many tokens it has
//	prompt_root      uint8 [32]: their root
//	form             uint8 [32]: hash of the form, zeros where there is none
func (r *Request) State() *graph.State {
	s := &r.Sampling
	root := TokensRoot(r.Prompt)
	ends, ids, by := make([]int64, 0, MaxEnds), make([]int64, 0, MaxBias), make([]float32, 0, MaxBias)
	for _, id := range r.Ends {
		ends = append(ends, int64(id))
	}
	for _, b := range s.biases() {
		ids, by = append(ids, int64(b.id)), append(by, b.by)
	}
	for len(ends) < MaxEnds { // more, which no check lets through, have a shape of their own
		ends = append(ends, -1)
	}
	for len(ids) < MaxBias {
		ids, by = append(ids, -1), append(by, 0)
	}
	var form canon.Hash
	if r.Form != nil {
		form = r.Form.ID()
	}
	return stateOf(map[string]*tensor.Tensor{
		"form": vector(form[:]...),
		"made": vector(int64(r.Made)), "max_tokens": vector(int64(r.MaxTokens)), "likeliest": vector(int64(r.Likeliest)), "top_k": vector(int64(s.TopK)),
		"temperature": vector(s.Temperature), "top_p": vector(s.TopP), "min_p": vector(s.MinP),
		"repeat": vector(s.Repeat), "presence": vector(s.Presence), "frequency": vector(s.Frequency),
		"seed": vector(uint32(r.Seed), uint32(r.Seed>>32)), "ends": vector(ends...), "bias_ids": vector(ids...), "bias": vector(by...),
		"prompt": vector(int64(len(r.Prompt))), "prompt_root": vector(root[:]...),
	})
}

func vector[E tensor.Element](x ...E) *tensor.Tensor {
	return tensor.Must(tensor.From(tensor.Shape{len(x)}, x))
}

// ID returns the identity of the request: the root of its state. A receipt names it.
func (r *Request) ID() canon.Hash { return rootOf(r.State()) }

// rootOf returns the root of a state whose slots are in order.
func rootOf(s *graph.State) canon.Hash {
	root, err := s.Root()
	if err != nil {
		panic(err) // the names are in order, and short
	}
	return root
}

// TokenPage returns Chunk tokens of a sequence as a state: a slot called tokens, int64 [Chunk], zeros after the last token.
func TokenPage(tokens []int32) *graph.State {
	x := make([]int64, Chunk)
	for i, id := range tokens[:min(len(tokens), Chunk)] {
		x[i] = int64(id)
	}
	return stateOf(map[string]*tensor.Tensor{"tokens": vector(x...)})
}

// TokenPages returns the roots of the pages of tokens.
func TokenPages(tokens []int32) (pages []canon.Hash) {
	for page := range slices.Chunk(tokens, Chunk) {
		pages = append(pages, rootOf(TokenPage(page)))
	}
	return pages
}

// TokensRoot returns the root over the pages of tokens of a sequence.
func TokensRoot(tokens []int32) canon.Hash { return canon.Root(TokenPages(tokens)) }
