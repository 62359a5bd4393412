package replies

import (
	"context"
	"math"
	"time"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/model/lm"
)

// drafter is a model that drafts for another one. It draws by the other's samplings and seeds, so of logits that are alike the same tokens.
type drafter struct {
	model  *lm.Model
	stages *lm.Stages
	pace   pace // of its steps
	failed bool // once: it drafts no more
}

// draftOf is a reply for which n tokens are to be drafted.
type draftOf struct {
	*reply
	n int
}

// follows reports whether the model can draft for a reply: its context may be shorter, and its vocabulary smaller.
func (d *drafter) follows(p *reply, most int) bool {
	if d == nil || d.failed || len(p.tokens)+most > d.model.Context {
		return false
	}
	for _, id := range p.tokens[p.sequence.draft.Len():] {
		if int(id) >= d.model.Vocabulary {
			return false
		}
	}
	return true
}

// caughtUp is how many tokens of a reply may be read in the same step that drafts: those of a draft that was drawn as a whole, and the one after it.
const caughtUp = 8

// takes is how long it drafts a token for each of so many replies, in seconds for each; below 0: that is not known.
func (d *drafter) takes(replies int) float64 {
	if d.pace.weight == 0 {
		return -1
	}
	step, row := d.pace.line()
	return step/float64(replies) + row
}

// draft drafts for replies. Of those that it has yet to read it reads a chunk, and drafts nothing for them.
func (d *drafter) draft(ctx context.Context, of []draftOf) error {
	room, most, reads := lm.MaxRows, 0, false
	var parts []lm.Part
	var ready []*ahead
	for _, p := range of {
		unread := p.tokens[p.sequence.draft.Len():]
		if len(unread) > caughtUp {
			if n := min(len(unread)-1, lm.Chunk, room); n > 0 {
				parts, room, reads = append(parts, lm.Part{Sequence: p.sequence.draft, Tokens: unread[:n]}), room-n, true
			}
			continue
		}
		if len(unread) > room {
			continue
		}
		draws, err := p.draws.Fork()
		if err != nil {
			return err
		}
		room -= len(unread)
		ready, most = append(ready, &ahead{p.reply, draws, unread, p.n}), max(most, p.n)
	}
	for i := 0; i == 0 || i < most; i++ {
		drawing := ready[:0:0]
		for _, x := range ready {
			if x.left > 0 {
				parts, drawing = append(parts, lm.Part{Sequence: x.sequence.draft, Tokens: x.unread, Logits: 1}), append(drawing, x)
			}
		}
		if len(parts) == 0 {
			break
		}
		begun := time.Now()
		logits, err := d.stages.Step(ctx, parts)
		if err != nil {
			return err
		}
		if i > 0 || !reads {
			d.pace.add(rowsOf(parts), time.Since(begun))
		}
		for j, x := range drawing {
			if err := x.draw(ctx, logits[len(parts)-len(drawing)+j], d.model.Vocabulary); err != nil {
				return err
			}
		}
		parts = nil
	}
	for _, x := range ready {
		x.drafting.by = &x.drafting.model
	}
	return nil
}

// ahead is a reply as it goes on if drafts are right.
type ahead struct {
	*reply
	draws  *lm.ReplySampler
	unread []int32
	left   int // tokens to be drafted
}

// draw draws a draft from logits [1, the drafting model's vocabulary]. A draft that cannot be drawn, or ends the reply, is the last.
func (x *ahead) draw(ctx context.Context, logits *tensor.Tensor, vocabulary int) error {
	own, err := fit(logits, x.model.Vocabulary)
	if err != nil {
		return err
	}
	t, err := x.draws.Draw(ctx, own, len(x.tokens)+len(x.drafting.drafts))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil { // no token follows a form, which is no fault
		x.left = 0
		return nil
	}
	x.drafting.drafts = append(x.drafting.drafts, t.ID)
	x.unread = []int32{t.ID}
	if x.left--; t.Reason != "" || int(t.ID) >= vocabulary {
		x.left = 0
	}
	return nil
}

// fit returns logits over another number of tokens. Those that the drafting model does not know are least likely.
func fit(logits *tensor.Tensor, vocabulary int) (*tensor.Tensor, error) {
	if logits.Len() == vocabulary {
		return logits, nil
	}
	out, err := tensor.New(tensor.Float32, tensor.Shape{vocabulary})
	if err != nil {
		return nil, err
	}
	all := tensor.Of[float32](out)
	for i := copy(all, tensor.Of[float32](logits)); i < vocabulary; i++ {
		all[i] = -math.MaxFloat32
	}
	return out, nil
}
