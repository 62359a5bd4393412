package replies

import (
	"context"
	"slices"

	"github.com/tally-network/tally/model/lm"
)

// serve makes steps while there are replies to make.
func (s *Server) serve(ctx context.Context) {
	defer close(s.done)
	var active []*reply
	for ctx.Err() == nil {
		active = s.dismiss(active)
		s.recall()
		active = s.admit(active)
		parts, of := s.plan(active)
		if len(parts) == 0 {
			select {
			case <-s.wake:
			case <-ctx.Done():
			}
			continue
		}
		if err := s.step(ctx, parts, of); err != nil {
			if ctx.Err() != nil {
				err = ErrClosed
			}
			for _, p := range active { // their sequences are of no use any more
				p.end(err)
			}
			active = nil
		}
	}
	s.mu.Lock()
	s.closed = true
	active = slices.Concat(active, s.waiting, s.away)
	s.waiting, s.away = nil, nil
	s.mu.Unlock()
	for _, p := range active {
		p.end(ErrClosed)
	}
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
			s.cache.keep(p.owner, slices.Clone(p.tokens[:p.sequence.Len()]), p.sequence)
			p.sequence = nil
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

// admit lets requests in, in their order, while there is room for their replies.
func (s *Server) admit(active []*reply) []*reply {
	used := int64(0)
	for _, p := range active {
		used += s.need(p.request)
	}
	for len(active) < s.options.Sequences {
		p := s.next(s.options.Bytes - used)
		if p == nil {
			break
		}
		if p.ctx.Err() != nil {
			p.end(p.ctx.Err())
			continue
		}
		if s.readsAlike(p, active) { // it begins when that is read
			s.mu.Lock()
			s.waiting = slices.Insert(s.waiting, 0, p)
			s.mu.Unlock()
			break
		}
		used += s.need(p.request)
		s.cache.shrink(s.options.Bytes - used)
		if err := s.begin(p, active); err != nil {
			p.end(err)
			continue
		}
		active = append(active, p)
	}
	s.cache.shrink(s.options.Bytes - used)
	s.mu.Lock()
	s.stats.Active, s.stats.Bytes = len(active), s.cache.bytes
	for _, p := range active {
		s.stats.Bytes += int64(p.sequence.Bytes())
	}
	s.mu.Unlock()
	return active
}

// readsAlike reports whether a reply under way has yet to read a good part of a prompt that p has in common with it.
func (s *Server) readsAlike(p *reply, active []*reply) bool {
	return slices.ContainsFunc(active, func(x *reply) bool {
		alike := min(common(x.tokens, p.tokens), len(p.tokens)-1)
		return x.owner == p.owner && min(alike, len(x.tokens)-1)-x.sequence.Len() >= sharedTokens
	})
}

// sharedTokens is how many tokens in common, still to be read, are worth waiting for.
const sharedTokens = 32

// next takes the first that waits, if it fits into so many bytes.
func (s *Server) next(room int64) *reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 || s.waiting[0].ctx.Err() == nil && s.need(s.waiting[0].request) > room {
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
	if p.sequence, err = s.cache.take(p.owner, p.tokens, s.need(p.request), active); err != nil {
		return err
	}
	p.sequence.Capacity = p.request.Room(s.model)
	s.mu.Lock()
	if p.drawn == 0 {
		s.stats.Replies++
	}
	s.stats.Reused += int64(p.sequence.Len())
	s.mu.Unlock()
	return nil
}

// plan chooses what the next step reads: the last token of each reply, then chunks of prompts.
func (s *Server) plan(active []*reply) (parts []lm.Part, of []*reply) {
	room := lm.MaxRows
	add := func(p *reply, n int) {
		from := p.sequence.Len()
		part := lm.Part{Sequence: p.sequence, Tokens: p.tokens[from : from+n]}
		if from+n == len(p.tokens) {
			part.Logits = 1
		}
		parts, of, room = append(parts, part), append(of, p), room-n
	}
	for _, p := range active {
		if len(p.tokens)-p.sequence.Len() == 1 && len(p.out) < cap(p.out) {
			add(p, 1)
		}
	}
	for _, p := range active {
		if left := len(p.tokens) - p.sequence.Len(); left > 1 && room > 0 {
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

// step reads parts, and draws a token for each whose sequence is read.
func (s *Server) step(ctx context.Context, parts []lm.Part, of []*reply) error {
	logits, err := s.stages.Step(ctx, parts)
	if err != nil {
		return err
	}
	read, drawn := int64(0), int64(0)
	for i, p := range of {
		if p.drawn == 0 {
			read += int64(len(parts[i].Tokens))
		}
		if logits[i] == nil {
			continue
		}
		t, err := p.draws.Draw(ctx, logits[i], len(p.tokens))
		if err != nil {
			p.end(err)
			continue
		}
		p.tokens = append(p.tokens, t.ID)
		p.drawn++
		drawn++
		switch {
		case slices.Contains(p.request.Ends, t.ID):
			t.Reason = lm.Stop
		case len(p.tokens) == p.request.Room(s.model):
			t.Reason = lm.Length
		case p.enough():
			t.Reason = lm.Cut
		}
		if t.Reason != "" && p.request.Pages {
			if t.Pages, err = p.sequence.PagesRoot(s.options.Threads); err != nil {
				p.end(err)
				continue
			}
		}
		p.out <- t // there is room: plan looked
		if t.Reason != "" {
			p.end(nil)
		}
	}
	s.mu.Lock()
	s.stats.Read += read
	s.stats.Drawn += drawn
	s.mu.Unlock()
	return nil
}
