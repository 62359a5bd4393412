package replies

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/model/lm"
)

// serve makes steps while there are replies to make, and ends all that are left.
func (s *Server) serve(ctx context.Context) {
	defer close(s.done)
	why := s.batches(ctx)
	s.mu.Lock()
	s.closed = why
	left := slices.Concat(s.active, s.waiting, s.away)
	s.active, s.waiting, s.away = nil, nil, nil
	s.mu.Unlock()
	for _, p := range left {
		p.end(why)
	}
}

// batches makes steps until the context ends. A panic is an error: it shall end this model, and not the process.
func (s *Server) batches(ctx context.Context) (why error) {
	defer func() {
		if p := recover(); p != nil {
			why = fmt.Errorf("%w: panic: %v\n%s", ErrFailed, p, debug.Stack())
		}
	}()
	for ctx.Err() == nil {
		s.active = s.dismiss(s.active)
		s.recall()
		s.admit()
		parts, of := s.plan(s.active)
		if len(parts) == 0 {
			select {
			case <-s.wake:
			case <-ctx.Done():
			}
			continue
		}
		err := s.speculate(ctx, parts, of)
		if err == nil {
			err = s.step(ctx, parts, of)
		}
		if err != nil {
			if ctx.Err() != nil {
				err = ErrClosed
			}
			for _, p := range s.active { // their sequences are of no use any more
				p.end(err)
			}
			s.active = nil
		}
	}
	return ErrClosed
}

// end ends a reply, with the reason if it ends before its time.
func (p *reply) end(err error) {
	if p.request != nil {
		p.err = err
		close(p.out)
		p.request = nil
	}
}

// dismiss returns those that go on. Sequences of the others are kept for whoever begins alike.
func (s *Server) dismiss(active []*reply) []*reply {
	return slices.DeleteFunc(active, func(p *reply) bool {
		over := p.request == nil
		if !over && p.ctx.Err() != nil {
			p.end(p.ctx.Err())
			over = true
		}
		leaves := !over && len(p.out) == cap(p.out) && s.othersWait()
		if leaves {
			s.away = append(s.away, p)
		}
		if over || leaves {
			s.putAside(p)
		}
		return over || leaves
	})
}

func (s *Server) othersWait() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) > 0
}

// recall lets replies queue again whose tokens have been taken, and ends those that nobody listens to any more.
func (s *Server) recall() {
	s.away = slices.DeleteFunc(s.away, func(p *reply) bool {
		if p.ctx.Err() != nil {
			p.end(p.ctx.Err())
			return true
		}
		back := len(p.out) <= cap(p.out)/2
		if back {
			s.mu.Lock()
			s.waiting = append(s.waiting, p)
			s.mu.Unlock()
		}
		return back
	})
}

// admit lets requests in, in their order, while there is room for what their replies hold next. Replies grow: if there is no room any more,
// those that came last wait for it again, and go on where they were.
func (s *Server) admit() {
	used := int64(0)
	for _, p := range s.active {
		used += s.holds(p)
	}
	for len(s.active) > 1 && used > s.options.Bytes { // the first always has room: enter looked
		last := len(s.active) - 1
		p := s.active[last]
		used -= s.holds(p)
		s.active = slices.Delete(s.active, last, last+1)
		s.putAside(p)
		s.queueFirst(p)
		s.mu.Lock()
		s.stats.Preempted++
		s.mu.Unlock()
	}
	for len(s.active) < s.options.Sequences {
		p := s.next(s.options.Bytes - used)
		if p == nil {
			break
		}
		if p.ctx.Err() != nil {
			p.end(p.ctx.Err())
			continue
		}
		if s.readsAlike(p, s.active) { // it begins when that is read
			s.queueFirst(p)
			break
		}
		used += s.holds(p)
		s.cache.shrink(s.options.Bytes - used)
		others := s.active
		s.active = append(s.active, p) // so that it ends with all, whatever happens
		if err := s.begin(p, others); err != nil {
			s.active = others
			used -= s.holds(p)
			p.end(err)
		}
	}
	s.cache.shrink(s.options.Bytes - used)
	s.mu.Lock()
	s.stats.Active, s.stats.Bytes = len(s.active), s.cache.bytes
	for _, p := range s.active {
		s.stats.Bytes += int64(p.sequence.Bytes())
	}
	s.mu.Unlock()
}

// putAside keeps what a reply has read, for it or for whoever begins alike.
func (s *Server) putAside(p *reply) {
	s.cache.keep(p.by, slices.Clone(p.tokens[:p.sequence.own.Len()]), p.sequence)
	p.sequence = sequences{}
}

// queueFirst lets a reply wait before all others.
func (s *Server) queueFirst(p *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.Insert(s.waiting, 0, p)
}

// readsAlike reports whether a reply under way has yet to read a good part of a prompt that p has in common with it.
func (s *Server) readsAlike(p *reply, active []*reply) bool {
	return slices.ContainsFunc(active, func(x *reply) bool {
		alike := min(common(x.tokens, p.tokens), len(p.tokens)-1)
		return x.by == p.by && min(alike, len(x.tokens)-1)-x.sequence.own.Len() >= sharedTokens
	})
}

// sharedTokens is how many tokens in common, still to be read, are worth waiting for.
const sharedTokens = 32

// next takes the first that waits, if it fits into so many bytes.
func (s *Server) next(room int64) *reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 || s.waiting[0].ctx.Err() == nil && s.holds(s.waiting[0]) > room {
		return nil
	}
	p := s.waiting[0]
	s.waiting = slices.Delete(s.waiting, 0, 1)
	return p
}

// begin gives a reply a sequence, which has read what others had of its prompt.
func (s *Server) begin(p *reply, active []*reply) (err error) {
	if p.draws == nil {
		if p.draws, err = s.sampler.Begin(p.request); err != nil {
			return err
		}
	}
	if p.sequence, err = s.cache.take(p.by, p.tokens, s.holds(p), active); err != nil {
		return err
	}
	p.sequence.own.Capacity, p.sequence.draft.Capacity = p.request.Room(s.model), p.request.Room(s.model)
	s.mu.Lock()
	if !p.begun {
		s.stats.Replies++
	}
	p.begun = true
	s.stats.Reused += int64(p.sequence.own.Len())
	s.mu.Unlock()
	return nil
}

// plan chooses what the next step reads: the last token of each reply, then chunks of prompts. Those whose adapters no step reads together with others' take
// turns.
func (s *Server) plan(active []*reply) (parts []lm.Part, of []*reply) {
	room := lm.MaxRows
	var mix lm.Mix
	add := func(p *reply, n int) {
		if !mix.Take(p.model) {
			p.passed++
			return
		}
		p.passed = 0
		from := p.sequence.own.Len()
		part := lm.Part{Sequence: p.sequence.own, Tokens: p.tokens[from : from+n], Model: p.model}
		if from+n == len(p.tokens) {
			part.Logits = 1
		}
		parts, of, room = append(parts, part), append(of, p), room-n
	}
	inTurn := slices.SortedStableFunc(slices.Values(active), func(a, b *reply) int { return b.passed - a.passed })
	if len(inTurn) > 0 && inTurn[0].passed > 0 && len(inTurn[0].out) < cap(inTurn[0].out) {
		mix.Take(inTurn[0].model) // before those who only draw
	}
	for _, p := range inTurn {
		if len(p.tokens)-p.sequence.own.Len() == 1 && len(p.out) < cap(p.out) {
			add(p, 1)
		}
	}
	for _, p := range inTurn {
		if left := len(p.tokens) - p.sequence.own.Len(); left > 1 && room > 0 {
			add(p, min(left, room, lm.Chunk))
		}
	}
	return parts, of
}

// enough reports whether nobody wants more tokens.
func (p *reply) enough() bool {
	select {
	case <-p.request.Enough: // never, if it is nil
		return true
	default:
		return false
	}
}

// step reads parts, and draws what follows each whose sequence is read.
func (s *Server) step(ctx context.Context, parts []lm.Part, of []*reply) error {
	begun, decodes := time.Now(), !readsPrompts(of)
	logits, err := s.stages.Step(ctx, parts)
	if err != nil {
		return err
	}
	if decodes {
		s.pace.add(rowsOf(parts), time.Since(begun))
	}
	var n Stats
	for i, p := range of {
		drafts := len(p.drafting.drafts)
		if p.drawn == 0 {
			n.Read += int64(len(parts[i].Tokens) - drafts)
		}
		if logits[i] == nil {
			continue
		}
		drawn, err := s.draw(ctx, p, logits[i])
		if err != nil {
			p.sequence.cut(len(p.tokens))
			p.end(err)
		}
		n.Drawn += int64(drawn)
		n.Drafted += int64(drafts)
		n.Accepted += int64(max(drawn-1, 0))
	}
	s.mu.Lock()
	s.stats.Read += n.Read
	s.stats.Drawn += n.Drawn
	s.stats.Drafted += n.Drafted
	s.stats.Accepted += n.Accepted
	s.mu.Unlock()
	return nil
}

// draw draws the token after those of a reply, and another one after each draft that was drawn. What was drafted otherwise is forgotten. Logits are
// [1 + drafts, vocabulary].
func (s *Server) draw(ctx context.Context, p *reply, logits *tensor.Tensor) (drawn int, err error) {
	drafts := p.drafting.take()
	defer func() { p.drafting.learn(len(drafts), drawn-1) }()
	for {
		row, err := lm.Row(logits, drawn)
		if err != nil {
			return drawn, err
		}
		t, err := p.draws.Draw(ctx, row, len(p.tokens))
		if err != nil {
			return drawn, err
		}
		p.tokens = append(p.tokens, t.ID)
		p.drawn++
		drawn++
		switch {
		case t.Reason != "":
		case len(p.tokens) == p.request.Room(s.model):
			t.Reason = lm.Length
		case p.enough():
			t.Reason = lm.Cut
		}
		goesOn := t.Reason == "" && drawn <= len(drafts) && drafts[drawn-1] == t.ID
		if !goesOn {
			p.sequence.cut(len(p.tokens) - 1)
		}
		if t.Reason != "" && p.request.Pages {
			if t.Pages, err = p.sequence.own.PagesRoot(s.options.Threads); err != nil {
				return drawn, err
			}
		}
		p.out <- t // there is room: plan and speculate looked
		if t.Reason != "" {
			p.end(nil)
		}
		if !goesOn {
			return drawn, nil
		}
	}
}

// rowsOf is how many tokens parts read.
func rowsOf(parts []lm.Part) (n int) {
	for _, p := range parts {
		n += len(p.Tokens)
	}
	return n
}
