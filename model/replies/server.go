package replies

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/model/lm"
)

// Options bound a server. Zero stands for a default.
type Options struct {
	Sequences   int           // replies at once, at most; 16
	Waiting     int           // requests that wait, at most; 256
	Bytes       int64         // of keys and values, at most; 4 GiB
	Threads     int           // that hash pages; all
	Patience    time.Duration // of a request that waits to begin; 10 minutes
	Speculative Speculation   // how tokens are drafted; none are
	ahead       int           // tokens that a reply may be ahead of who listens to it; 64
}

func (o Options) withDefaults() Options {
	if o.Sequences == 0 {
		o.Sequences = 16
	}
	if o.Waiting == 0 {
		o.Waiting = 256
	}
	if o.Bytes == 0 {
		o.Bytes = 4 << 30
	}
	if o.Patience == 0 {
		o.Patience = 10 * time.Minute
	}
	if o.ahead == 0 {
		o.ahead = 64
	}
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	o.Sequences = min(o.Sequences, lm.MaxRows)
	return o
}

// ErrBusy says that as many requests wait as may wait.
var ErrBusy = errors.New("too many requests wait already: try again later")

// ErrFailed says that a fault of the program has ended the server: start another.
var ErrFailed = errors.New("the model has failed")

// ErrClosed says that the server has been closed.
var ErrClosed = errors.New("the model is no longer served")

// LargeError says that a request may need more memory than there is for all.
type LargeError struct {
	Tokens      int // of prompt and reply
	Need, Limit int64
}

// Error implements error.
func (e *LargeError) Error() string {
	return fmt.Sprintf("%d tokens take %d MB of memory, and %d MB are there for all: ask for fewer, or allow more", e.Tokens, e.Need>>20, e.Limit>>20)
}

// Server replies to many requests by one model.
type Server struct {
	model   *lm.Model
	options Options
	stages  *lm.Stages
	sampler *lm.Sampler
	drafter *drafter // nil: no model drafts
	pace    pace
	cache   cache
	active  []*reply // the serving goroutine's: the batch, in the order in which it was let in
	away    []*reply // … those that wait for their listeners
	stop    context.CancelFunc
	done    chan struct{}
	wake    chan struct{} // one: there may be something to do

	mu      sync.Mutex
	closed  error // why it takes no requests any more
	waiting []*reply
	stats   Stats
}

// Stats count what a server has done.
type Stats struct {
	Replies, Read, Reused, Drawn int64 // replies begun; tokens of prompts read, and taken over; tokens drawn
	Drafted, Accepted            int64 // tokens that were read as drafts, and those that were drawn then
	Preempted                    int64 // times that a reply had to wait for memory again
	Waiting, Active              int   // requests now
	Bytes                        int64 // of keys and values, now
}

// Start serves a model by an executor until Close.
func Start(m *lm.Model, e engine.Executor, o Options) *Server {
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{
		model: m, options: o.withDefaults(), stages: m.Stages(e), sampler: m.NewSampler(e),
		stop: stop, done: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	if d := s.options.Speculative.Model; d != nil {
		s.drafter = &drafter{model: d, stages: d.Stages(e)}
	}
	go s.serve(ctx)
	return s
}

// Close ends all replies, and waits until nothing is computed any more.
func (s *Server) Close() {
	s.stop()
	<-s.done
}

// Stats returns what was done so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Waiting = len(s.waiting)
	return s.stats
}

// Context returns how many tokens a prompt and its reply have at most: what the model holds, or memory has room for.
func (s *Server) Context() int {
	return int(min(int64(s.model.Context), s.options.Bytes/s.tokenBytes()))
}

// reply is a request under way. What is not said to be shared is the serving goroutine's.
type reply struct {
	ctx      context.Context
	by       reader
	model    *lm.Model
	passed   int // steps since it was read last that had no room for its adapter
	request  *lm.Request
	tokens   []int32 // prompt and reply
	sequence sequences
	draws    *lm.ReplySampler
	drawn    int
	drafting drafting
	begun    bool // shared, under the server's lock: it has had a sequence

	out chan lm.Token // shared; closed when the reply is over
	err error         // why it ended before its time; read after out is closed
}

// Reply implements lm.Replier.
func (s *Server) Reply(ctx context.Context, r *lm.Request) iter.Seq2[lm.Token, error] {
	return s.replyAs(ctx, s.model, r)
}

// As returns what replies as a model of the same base, in the same batches. Its replies count as the server's.
func (s *Server) As(m *lm.Model) (lm.Replier, error) {
	if !m.SharesBase(s.model) {
		return nil, errors.New("the model has another base than the one that is served: serve it by itself")
	}
	return other{s, m}, nil
}

// other is a model of the same base.
type other struct {
	server *Server
	model  *lm.Model
}

// Reply implements lm.Replier.
func (o other) Reply(ctx context.Context, r *lm.Request) iter.Seq2[lm.Token, error] {
	return o.server.replyAs(ctx, o.model, r)
}

func (s *Server) replyAs(ctx context.Context, m *lm.Model, r *lm.Request) iter.Seq2[lm.Token, error] {
	return func(yield func(lm.Token, error) bool) {
		ctx, leave := context.WithCancel(ctx)
		p, err := s.enter(ctx, m, r)
		if err != nil {
			leave()
			yield(lm.Token{}, err)
			return
		}
		defer func() { // it leaves the queue or the batch
			leave()
			s.forget(p)
			s.nudge()
		}()
		patience := time.NewTimer(s.options.Patience)
		defer patience.Stop()
		for {
			select {
			case t, more := <-p.out:
				switch {
				case more:
					if s.nudge(); !yield(t, nil) {
						return
					}
					continue
				case p.err != nil:
					yield(lm.Token{}, p.err)
				}
				return
			case <-ctx.Done():
				yield(lm.Token{}, ctx.Err())
				return
			case <-patience.C:
				if s.giveUp(p) {
					yield(lm.Token{}, ErrBusy)
					return
				}
				patience.Reset(s.options.Patience) // it is about to begin, or has begun
			}
		}
	}
}

// enter lets a request wait for its turn.
func (s *Server) enter(ctx context.Context, m *lm.Model, r *lm.Request) (*reply, error) {
	if err := r.Check(m); err != nil {
		return nil, err
	}
	if need := s.need(r); need > s.options.Bytes {
		return nil, &LargeError{r.Room(s.model), need, s.options.Bytes}
	}
	p := &reply{ctx: ctx, by: reader{r.Owner, weak.Make(m)}, model: m, request: r, tokens: append(make([]int32, 0, len(r.Prompt)+s.options.ahead), r.Prompt...), out: make(chan lm.Token, s.options.ahead)}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed != nil:
		return nil, s.closed
	case len(s.waiting) >= s.options.Waiting:
		return nil, ErrBusy
	}
	s.waiting = append(s.waiting, p)
	s.nudge()
	return p, nil
}

// forget takes a request out of the queue.
func (s *Server) forget(p *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(x *reply) bool { return x == p })
}

// giveUp takes a request out of the queue that has not begun, and reports whether there was one.
func (s *Server) giveUp(p *reply) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.waiting)
	if !p.begun {
		s.waiting = slices.DeleteFunc(s.waiting, func(x *reply) bool { return x == p })
	}
	return len(s.waiting) < before
}

// need is how many bytes of keys and values a request may come to need.
func (s *Server) need(r *lm.Request) int64 {
	return int64(r.Room(s.model)) * s.tokenBytes()
}

// tokenBytes is what a token of a sequence takes: its keys and values, and those of the model that drafts.
func (s *Server) tokenBytes() int64 {
	n := int64(s.model.TokenBytes())
	if s.drafter != nil {
		n += int64(s.drafter.model.TokenBytes())
	}
	return n
}

// holds is how many bytes a reply's sequence takes at most after the next step: sequences double.
func (s *Server) holds(p *reply) int64 {
	tokens := min(max(2*len(p.tokens), lm.Chunk), p.request.Room(s.model))
	return int64(tokens) * s.tokenBytes()
}

// nudge has the server look whether there is something to do.
func (s *Server) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

var _ lm.Replier = (*Server)(nil)
