package serve

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/node/tabs"
	"github.com/tally-network/tally/p2p"
)

// work is an answer under way.
type work struct {
	server   *Server
	model    *Model
	tab      *tabs.Tab
	terms    session.Terms
	question *tabs.Question
	from     peer.ID
	out      *p2p.Answer
}

// answer replies to questions, or checks replies.
func (s *Server) answer(kind session.Kind) p2p.StreamHandler {
	return func(ctx context.Context, from peer.ID, b []byte, out *p2p.Answer) error {
		var q tabs.Question
		if err := canon.UnmarshalWithin(b, &q, 16*tabs.MaxQuestion); err != nil {
			return fmt.Errorf("read the question: %w", err)
		}
		if q.Kind() != kind {
			return errors.New("a check has a reply, and a question for one has none")
		}
		return s.begin(ctx, from, &q, out)
	}
}

func (s *Server) begin(ctx context.Context, from peer.ID, q *tabs.Question, out *p2p.Answer) error {
	t, err := s.tab(ctx, q.Session, from)
	if err != nil {
		return err
	}
	if err := pay(t, &q.Payment); err != nil {
		return err
	}
	w := &work{s, s.model(t.Terms().Model), t, t.Terms(), q, from, out}
	r := &q.Request
	if err := r.Check(w.model.Weights); err != nil {
		return err
	}
	if r.Room(w.model.Weights) > int(w.model.Listing.Context) {
		return fmt.Errorf("a prompt of %d tokens and a reply of %d: at most %d together are served here", len(r.Prompt), r.MaxTokens, w.model.Listing.Context)
	}
	r.Owner = from.String()
	if q.Kind() == session.OfCheck {
		return w.check()
	}
	return w.reply(ctx)
}

// price returns what the question costs with a reply of so many tokens.
func (w *work) price(tokens int) uint64 {
	return tabs.PriceOf(w.question.Kind(), w.terms.Prices, len(w.question.Request.Prompt))(tokens)
}

// reply makes a reply as long as it is paid for, and bills it, whether or not anybody still listens.
func (w *work) reply(ctx context.Context) error {
	r := w.question.Request
	most, held, err := w.tab.HoldUpTo(r.Room(w.model.Weights)-len(r.Prompt), w.price)
	if err != nil {
		return err
	}
	defer held.Free()
	enough := make(chan struct{})
	r.MaxTokens, r.Pages, r.Enough = most, true, enough
	go func() { // it ends with the stream
		select {
		case <-w.out.Enough:
		case <-ctx.Done():
		}
		close(enough)
	}()
	made := make(chan lm.Token, 64)
	failed := make(chan error, 1)
	go func() {
		defer close(made)
		for t, err := range w.model.Replier.Reply(w.server.ctx, &r) {
			if err != nil {
				failed <- err
				return
			}
			made <- t
		}
	}()
	reply, last, err := w.tell(made)
	if err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	default:
	}
	if last.Reason == "" {
		return errors.New("the reply broke off: ask again")
	}
	return w.bill(reply, last.Pages, held, &tabs.Piece{})
}

// tell sends tokens as they come, and beats while none do. Who left hears nothing, and pays all the same.
func (w *work) tell(made <-chan lm.Token) (reply []int32, last lm.Token, err error) {
	beat := time.NewTicker(tabs.Beat)
	defer beat.Stop()
	var gone error
	say := func(p *tabs.Piece) {
		if gone == nil {
			gone = w.out.Send(canon.Marshal(p))
		}
	}
	for {
		select {
		case t, more := <-made:
			if !more {
				return reply, last, nil
			}
			p := &tabs.Piece{}
			for more {
				last = t
				if last.Reason == lm.Length && len(w.question.Request.Prompt)+len(reply)+1 < w.question.Request.Room(w.model.Weights) {
					last.Reason = lm.Cut // as far as it was paid for
				}
				reply, p.Tokens = append(reply, t.ID), append(p.Tokens, last)
				if len(p.Tokens) == pieceTokens {
					break
				}
				select {
				case t, more = <-made:
				default:
					more = false
				}
			}
			say(p)
		case <-beat.C:
			say(&tabs.Piece{})
		}
	}
}

// pieceTokens bounds the tokens of a piece, so that it is within its limit with all that each may name.
const pieceTokens = 256

// check re-executes a reply and bills that.
func (w *work) check() error {
	held, err := w.tab.Hold(w.price(len(w.question.Reply)))
	if err != nil {
		return err
	}
	defer held.Free()
	type found struct {
		wrong int
		pages canon.Hash
		err   error
	}
	done := make(chan found, 1)
	go func() {
		v, err := w.model.Checker.Check(w.server.ctx, &w.question.Request, w.question.Reply)
		done <- found{v.Wrong, v.Pages, err}
	}()
	beat := time.NewTicker(tabs.Beat)
	defer beat.Stop()
	for {
		select {
		case f := <-done:
			if f.err != nil {
				return f.err
			}
			if f.wrong >= 0 {
				w.server.found.add(w.from, finding(w.terms.Model, &w.question.Request, w.question.Reply))
			}
			return w.bill(w.question.Reply, f.pages, held, &tabs.Piece{Wrong: f.wrong + 1})
		case <-beat.C:
			_ = w.out.Send(canon.Marshal(&tabs.Piece{})) // who left pays all the same
		}
	}
}

// bill ends an answer.
func (w *work) bill(reply []int32, pages canon.Hash, held *tabs.Held, end *tabs.Piece) error {
	q := w.question
	if q.Kind() == session.OfReply {
		if err := w.server.made.Keep(w.tab.ID(), &q.Request, reply); err != nil {
			return err
		}
	}
	key := w.server.Key.Public().(ed25519.PublicKey)
	signed, err := w.tab.Bill(session.Receipt{
		Kind: q.Kind(), Request: q.ID(), Prompt: uint64(len(q.Request.Prompt)), Reply: uint64(len(reply)),
		Tokens: lm.TokensRoot(append(q.Request.Prompt[:len(q.Request.Prompt):len(q.Request.Prompt)], reply...)), Pages: dispute.SaltedPages(pages, key),
	}, pages, w.server.Key, held)
	if err != nil {
		return err
	}
	w.server.count(q, reply, w.price(len(reply)))
	end.Bill = &signed
	return w.out.Send(canon.Marshal(end))
}

func (s *Server) count(q *tabs.Question, reply []int32, price uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Earned += price
	if q.Kind() == session.OfCheck {
		s.stats.Checks++
		return
	}
	s.stats.Replies++
	s.stats.Read += len(q.Request.Prompt)
	s.stats.Written += len(reply)
}
