package sequences_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/node/consume/dataset/sequences"
)

func of(text string, learnt ...bool) sequences.Example {
	s := sequences.Example{LossMask: learnt}
	for _, c := range text {
		s.Tokens = append(s.Tokens, c)
	}
	return s
}

// told writes rows as "tokens learnt positions segments", a line for each.
func told(r *sequences.Rows) string {
	var b strings.Builder
	width := r.Tokens.Shape[1]
	for i := range r.Tokens.Shape[0] {
		for j := range width {
			b.WriteRune(tensor.Of[int32](r.Tokens)[i*width+j])
		}
		for _, t := range []*tensor.Tensor{r.LossMask, r.AttentionMask, r.Positions, r.Segments} {
			b.WriteByte(' ')
			for j := range width {
				fmt.Fprint(&b, int64(t.At(i*width+j)))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestLay(t *testing.T) {
	texts := []sequences.Example{of("abcde"), of("fgh"), of("i"), of(""), of("jkl", true, false, true)}
	for _, c := range []struct {
		name string
		l    sequences.Layout
		want string
	}{
		{"alone", sequences.Layout{Length: 6, Pad: '.'}, "abcde. 011110 111110 012340 111110\nfgh... 011000 111000 012000 111000\njkl... 001000 111000 012000 111000\n"},
		{"packed", sequences.Layout{Length: 8, Pad: '.', Pack: true}, "abcdefgh 01111011 11111111 01234012 11111222\njkl..... 00100000 11100000 01200000 11100000\n"},
		{"truncated", sequences.Layout{Length: 3, Long: sequences.Truncate}, "abc 011 111 012 111\nfgh 011 111 012 111\njkl 001 111 012 111\n"},
		{"split", sequences.Layout{Length: 3, Long: sequences.Split}, "abc 011 111 012 111\ncde 011 111 012 111\nfgh 011 111 012 111\njkl 001 111 012 111\n"},
		{"split and packed", sequences.Layout{Length: 4, Long: sequences.Split, Pack: true, Pad: '.'}, "abcd 0111 1111 0123 1111\nde.. 0100 1100 0100 1100\nfgh. 0110 1110 0120 1110\njkl. 0010 1110 0120 1110\n"},
		{"aligned", sequences.Layout{Length: 3, Long: sequences.Truncate, OnePerText: true, Pad: '.'}, "abc 011 111 012 111\nfgh 011 111 012 111\ni.. 000 100 000 100\n... 000 000 000 000\njkl 001 111 012 111\n"},
	} {
		got, err := sequences.Lay(texts, c.l)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if told(got) != c.want {
			t.Errorf("%s gives\n%swant\n%s", c.name, told(got), c.want)
		}
	}
}

func TestLayRefuses(t *testing.T) {
	for want, c := range map[string]struct {
		texts []sequences.Example
		l     sequences.Layout
	}{
		"text 2: it has 3 tokens": {[]sequences.Example{of("ab"), of("abc")}, sequences.Layout{Length: 2}},
		"nothing is learnt":       {[]sequences.Example{of("a"), of("ab", true, false)}, sequences.Layout{Length: 2}},
		"comes after the cut":     {[]sequences.Example{of("abc", false, false, true)}, sequences.Layout{Length: 2, Long: sequences.Truncate}},
		"at least 2":              {nil, sequences.Layout{Length: 1}},
		`long is "no"`:            {nil, sequences.Layout{Length: 2, Long: "no"}},
		"neither packed nor":      {nil, sequences.Layout{Length: 2, Pack: true, OnePerText: true}},
		"1 say whether":           {[]sequences.Example{of("ab", true)}, sequences.Layout{Length: 2}},
	} {
		if _, err := sequences.Lay(c.texts, c.l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Each token that is to be learnt is learnt once, from the tokens of its text before it.
func TestEachTokenIsLearntOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var texts []sequences.Example
		next := int32(1)
		want := map[[2]int32]bool{} // a token, and the one before it
		for range 1 + r.IntN(8) {
			var s sequences.Example
			for i := range r.IntN(12) {
				s.Tokens, s.LossMask = append(s.Tokens, next), append(s.LossMask, r.IntN(2) == 0)
				if i > 0 && s.LossMask[i] {
					want[[2]int32{next, next - 1}] = true
				}
				next++
			}
			next++
			texts = append(texts, s)
		}
		rows, err := sequences.Lay(texts, sequences.Layout{Length: 2 + r.IntN(9), Long: sequences.Split, Pack: r.IntN(2) == 0})
		if err != nil {
			if len(want) > 0 {
				t.Fatal(err)
			}
			continue
		}
		tokens := tensor.Of[int32](rows.Tokens)
		for i, learnt := range rows.LossMask.Bytes() {
			if learnt == 0 {
				continue
			}
			if key := [2]int32{tokens[i], tokens[i-1]}; !want[key] {
				t.Fatalf("token %d is learnt behind %d", key[0], key[1])
			} else {
				delete(want, key)
			}
		}
		if len(want) > 0 {
			t.Fatalf("%d tokens are not learnt", len(want))
		}
	}
}
