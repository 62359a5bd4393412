package replies

import (
	"slices"
	"weak"

	"github.com/tally-network/tally/model/lm"
)

// cache keeps sequences whose replies are over. The last to be used comes last.
type cache struct {
	kept  []kept
	bytes int64
}

// reader is whose a sequence is: keys and values are of one model, and what one owner has asked is no other's to know. What is kept of a model does not keep it.
type reader struct {
	owner string
	model weak.Pointer[lm.Model]
}

// maxKept is how many sequences are kept at most: each prompt is compared with all.
const maxKept = 1 << 10

// kept are sequences that have read tokens.
type kept struct {
	by     reader
	tokens []int32
	sequences
}

// sequences are what the model, and the one that drafts for it, have read of the same tokens. The second has none where nothing is drafted by a model, and
// may be behind.
type sequences struct{ own, draft *lm.Sequence }

func newSequences() sequences { return sequences{&lm.Sequence{}, &lm.Sequence{}} }

// Bytes is what both take.
func (q sequences) Bytes() int { return q.own.Bytes() + q.draft.Bytes() }

// cut forgets all tokens but the first n.
func (q sequences) cut(n int) {
	q.own.Cut(n)
	q.draft.Cut(n)
}

// copy returns sequences of the first n tokens, which go their own way.
func (q sequences) copy(n int) (c sequences, err error) {
	if c.own, err = q.own.Copy(n); err == nil {
		c.draft, err = q.draft.Copy(n)
	}
	return c, err
}

// keep keeps sequences. They replace those that they go on from.
func (c *cache) keep(by reader, tokens []int32, q sequences) {
	if len(tokens) == 0 {
		return
	}
	for i := len(c.kept) - 1; i >= 0; i-- {
		if k := c.kept[i]; k.by == by && common(k.tokens, tokens) == len(k.tokens) {
			c.remove(i)
		}
	}
	c.kept = append(c.kept, kept{by, tokens, q})
	c.bytes += int64(q.Bytes())
	if len(c.kept) > maxKept {
		c.remove(0)
	}
}

func (c *cache) remove(i int) {
	c.bytes -= int64(c.kept[i].Bytes())
	c.kept = slices.Delete(c.kept, i, i+1)
}

// shrink forgets sequences until the others take so many bytes at most.
func (c *cache) shrink(bytes int64) {
	for len(c.kept) > 0 && c.bytes > bytes {
		c.remove(0)
	}
}

// take returns sequences that have read as much of a prompt as any of the same reader have: others would learn by time what was asked before.
// The last token is left to be read, for its logits are needed. What is over is
// taken, if it takes no more than room bytes; else, and of what is under way, there is a copy.
func (c *cache) take(by reader, prompt []int32, room int64, active []*reply) (sequences, error) {
	best, from, at := 0, sequences{}, -1
	for i, k := range c.kept {
		if n := min(common(k.tokens, prompt), len(prompt)-1); k.by == by && n > best {
			best, from, at = n, k.sequences, i
		}
	}
	for _, p := range active {
		if n := min(common(p.tokens[:p.sequence.own.Len()], prompt), len(prompt)-1); p.by == by && n > best {
			best, from, at = n, p.sequence, -1
		}
	}
	if from.own == nil {
		return newSequences(), nil
	}
	if at < 0 || int64(from.Bytes()) > room {
		return from.copy(best)
	}
	c.remove(at)
	from.cut(best)
	return from, nil
}

// common returns how many tokens x and y begin with alike.
func common(x, y []int32) int {
	n := min(len(x), len(y))
	for i := range n {
		if x[i] != y[i] {
			return i
		}
	}
	return n
}
