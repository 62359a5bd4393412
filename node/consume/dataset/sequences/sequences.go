// Package sequences lays sequences of tokens into rows of one length, as a language model reads them.
//
// Call [Lay] with the tokens of all texts, each an [Example] that says which of its tokens are learnt. It
// gives [Rows], tensors of one shape:
//
//	texts        a b c d e │ f g h
//	             by itself                packed
//	tokens       a b c d e · · ·          a b c d e f g h
//	loss mask    0 1 1 1 1 0 0 0          0 1 1 1 1 0 1 1
//	positions    0 1 2 3 4 0 0 0          0 1 2 3 4 0 1 2
//	segments     1 1 1 1 1 0 0 0          1 1 1 1 1 2 2 2
//
// Invariants: no token is learnt twice, and none across the start of a text. Rows keep the order of texts.
// A row of which nothing is learnt is left out, unless rows are to be aligned with texts.
//
// Source: our own; packing is next-fit.
package sequences

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/tensor"
)

// Example is one text as tokens.
type Example struct {
	Tokens   []int32
	LossMask []bool // by token, whether it is to be predicted; nil: all
}

// Head returns the first n tokens, or all if there are no more.
func (e Example) Head(n int) Example {
	if len(e.Tokens) <= n {
		return e
	}
	out := Example{Tokens: slices.Clone(e.Tokens[:n])}
	if e.LossMask != nil {
		out.LossMask = slices.Clone(e.LossMask[:n])
	}
	return out
}

// Rule is what becomes of a text that is longer than a row.
type Rule string

// The rules.
const (
	Refuse   Rule = "refuse"
	Truncate Rule = "truncate" // its end is left out
	Split    Rule = "split"    // it goes on in another row, which begins with the last token of this one
)

// Layout says how rows are made.
type Layout struct {
	Length     int              // tokens of a row, at least 2
	Long       Rule             // "": Refuse
	Pack       bool             // several texts in a row
	Pad        int32            // stands where a row has no token
	OnePerText bool             // a row for each text, even if nothing of it is learnt
	Allocator  tensor.Allocator // of the rows; nil: Go's
}

// MaxTokens bounds the tokens of all rows.
const MaxTokens = tensor.MaxBytes / 4

// Check returns an error for what is no layout.
func (l *Layout) Check() error {
	switch {
	case l.Length < 2:
		return fmt.Errorf("rows of %d tokens: a row has at least 2", l.Length)
	case l.OnePerText && (l.Pack || l.Long == Split):
		return errors.New("each text is to have its row: texts are neither packed nor split")
	case l.Long != "" && l.Long != Refuse && l.Long != Truncate && l.Long != Split:
		return fmt.Errorf("long is %q: write %s, %s or %s", l.Long, Refuse, Truncate, Split)
	}
	return nil
}

// Rows are tensors [rows length].
type Rows struct {
	Tokens        *tensor.Tensor // int32
	LossMask      *tensor.Tensor // uint8: 1 where the token is to be predicted from those before it
	AttentionMask *tensor.Tensor // uint8: 1 where there is a token
	Positions     *tensor.Tensor // int32: from the start of its text in the row
	Segments      *tensor.Tensor // int32: the number of its text in the row, from 1; 0 where there is none

	Truncated int // texts whose end was left out
	Dropped   int // rows that were left out, for nothing of them would be learnt
}

// span is what a row takes of a text.
type span struct {
	tokens []int32
	learnt []bool
}

// Lay makes rows of sequences.
func Lay(all []Example, l Layout) (*Rows, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	out := &Rows{}
	var rows [][]span
	room := 0
	for i := range all {
		spans, err := l.spans(&all[i], out)
		if err != nil {
			return nil, fmt.Errorf("text %d: %w", i+1, err)
		}
		for _, p := range spans {
			if !l.Pack || len(p.tokens) > room {
				rows, room = append(rows, nil), l.Length
			}
			last := len(rows) - 1
			rows[last] = append(rows[last], p)
			room -= len(p.tokens)
		}
	}
	kept := rows[:0]
	for _, r := range rows {
		if l.OnePerText || learns(r) {
			kept = append(kept, r)
		}
	}
	if out.Dropped = len(rows) - len(kept); len(kept) == 0 {
		return nil, errors.New("nothing is learnt of any text: they are empty, or what is to be learnt comes after the cut: take a model of a longer context, or long: split")
	}
	return out, out.fill(kept, l)
}

// learns reports whether anything of a row is learnt: the first token of a span has none before it.
func learns(row []span) bool {
	for _, p := range row {
		for i := 1; i < len(p.tokens); i++ {
			if p.learnt == nil || p.learnt[i] {
				return true
			}
		}
	}
	return false
}

// spans cuts a text as the rule says.
func (l *Layout) spans(s *Example, out *Rows) (spans []span, err error) {
	if s.LossMask != nil && len(s.LossMask) != len(s.Tokens) {
		return nil, fmt.Errorf("%d tokens, of which %d say whether they are learnt", len(s.Tokens), len(s.LossMask))
	}
	part := func(from, to int) span {
		p := span{tokens: s.Tokens[from:to]}
		if s.LossMask != nil {
			p.learnt = s.LossMask[from:to]
		}
		return p
	}
	switch n := len(s.Tokens); {
	case n < 2 && !l.OnePerText:
		return nil, nil
	case n <= l.Length:
		return []span{part(0, n)}, nil
	case l.Long == Truncate:
		out.Truncated++
		return []span{part(0, l.Length)}, nil
	case l.Long == Split:
		for from := 0; from+1 < n; from += l.Length - 1 {
			spans = append(spans, part(from, min(from+l.Length, n)))
		}
		return spans, nil
	default:
		return nil, fmt.Errorf("it has %d tokens, a row %d: write long: %s or %s, or take a model of a longer context", n, l.Length, Truncate, Split)
	}
}

// fill writes the rows.
func (r *Rows) fill(rows [][]span, l Layout) error {
	if len(rows) > MaxTokens/l.Length {
		return fmt.Errorf("%d rows of %d tokens, of at most %d tokens together: bring fewer texts", len(rows), l.Length, MaxTokens)
	}
	shape := tensor.Shape{len(rows), l.Length}
	for _, x := range []struct {
		to   **tensor.Tensor
		kind tensor.DType
	}{{&r.Tokens, tensor.Int32}, {&r.LossMask, tensor.Uint8}, {&r.AttentionMask, tensor.Uint8}, {&r.Positions, tensor.Int32}, {&r.Segments, tensor.Int32}} {
		var err error
		if *x.to, err = l.Allocator.New(x.kind, shape); err != nil {
			return err
		}
	}
	tokens, positions, segments := tensor.Of[int32](r.Tokens), tensor.Of[int32](r.Positions), tensor.Of[int32](r.Segments)
	learnt, present := r.LossMask.Bytes(), r.AttentionMask.Bytes()
	for n, row := range rows {
		at := n * l.Length
		for segment, p := range row {
			for i, token := range p.tokens {
				tokens[at], positions[at], segments[at], present[at] = token, int32(i), int32(segment+1), 1
				if i > 0 && (p.learnt == nil || p.learnt[i]) {
					learnt[at] = 1
				}
				at++
			}
		}
		for ; at < (n+1)*l.Length; at++ {
			tokens[at] = l.Pad
		}
	}
	return nil
}
