package reply

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/model/grammar"
	"github.com/tally-network/tally/model/lm"
)

// Service gives replies of models.
type Service struct{ Models Models }

// Run is a request that has begun: its prompts are read, and there is room for its replies.
type Run struct {
	Model    *Model
	Seed     uint64
	Date     time.Time
	Read     int // tokens of all prompts
	Times    Times
	id       string
	ctx      context.Context
	ask      *Ask
	asks     []lm.Request // one for each reply
	form     *grammar.Automaton
	leave    func()
	account  Account
	reserved atomic.Int64 // tokens of the budget that are neither written nor given back
	tokens   int          // written, of all replies
	bills    bills
}

// Times is how long the parts of a run took.
type Times struct {
	Begun       time.Time
	Load        time.Duration // until the model was ready
	Read, Write time.Duration // until the first token; from then on
}

// Begin opens the model, and waits for room.
func (s *Service) Begin(ctx context.Context, a *Ask) (_ *Run, err error) {
	a.Choices = max(a.Choices, 1)
	if err := a.check(); err != nil {
		return nil, err
	}
	r := &Run{ask: a, id: api.ID(ctx), Date: a.date(), Times: Times{Begun: time.Now()}}
	r.ctx = context.WithValue(ctx, billsKey{}, &r.bills)
	if a.Seed == nil {
		r.Seed = drawSeed()
	} else {
		r.Seed = *a.Seed
	}
	r.account = accountOf(ctx)
	if r.leave, err = r.account.Enter(ctx, max(1, len(a.Prompts))*a.Choices); err != nil {
		return nil, err
	}
	begun := false
	defer func() { // also if a template panics
		if !begun {
			r.Close()
		}
	}()
	if err = s.prepare(r); err != nil {
		return nil, err
	}
	begun = true
	return r, nil
}

func (s *Service) prepare(r *Run) (err error) {
	if r.form, err = r.ask.form(r.ctx); err != nil {
		return err
	}
	if r.Model, err = s.Open(r.ctx, r.ask); err != nil {
		return err
	}
	r.Times.Load = time.Since(r.Times.Begun)
	if r.Model.Replier == nil {
		return api.Invalid("model", "the model %s gives vectors, and no replies: ask it for embeddings", r.Model.Name)
	}
	prompts, err := r.Model.prompts(r.ctx, r.ask, r.Date)
	if err != nil {
		return err
	}
	for id := range r.ask.Sampling.Bias { // any that is wrong will do
		if int(id) >= r.Model.Tokenizer.Size() {
			return api.Invalid("logit_bias", "logit_bias names token %d: the model %s has %d", id, r.Model.Name, r.Model.Tokenizer.Size())
		}
	}
	for _, p := range prompts {
		if err := r.add(p); err != nil {
			return err
		}
	}
	if err := r.account.Reserve(r.Read + len(r.asks)); err != nil { // of each reply its next token
		return err
	}
	r.reserved.Store(int64(len(r.asks)))
	r.account.Count(r.Model.Name, r.Read, 0)
	return nil
}

// Open opens the model that is asked for. How long it stays ready is for owners to say: it takes memory from all others.
func (s *Service) Open(ctx context.Context, a *Ask) (*Model, error) {
	keep := a.Keep
	if !accountOf(ctx).Owner() {
		keep = nil
	}
	return s.Models.Open(ctx, a.Model, keep)
}

// add appends the replies to a prompt.
func (r *Run) add(prompt []int32) error {
	a, holds := r.ask, r.Model.Context
	if a.Context > 0 {
		holds = min(holds, a.Context)
	}
	switch {
	case len(prompt) == 0:
		return api.Invalid(a.Field, "the prompt has no tokens: there is nothing to reply to")
	case len(prompt) >= holds:
		return tooLong(a.Field, "the prompt has %d tokens, and the context of %s holds %d with the reply", len(prompt), r.Model.Name, holds)
	}
	most := holds - len(prompt)
	if a.MaxTokens > 0 {
		most = min(most, a.MaxTokens)
	}
	for range a.Choices {
		q := lm.Request{Prompt: prompt, MaxTokens: most, Ends: r.Model.Ends, Sampling: a.Sampling, Form: r.form, Seed: r.Seed + uint64(len(r.asks)), Owner: accountOf(r.ctx).Name()}
		if _, err := r.Model.Forms.Follow(&q); err != nil {
			return api.Invalid(a.formField(), "replies of %s cannot be bound to this form: %v", r.Model.Name, err)
		}
		if a.Likeliest != nil {
			q.Likeliest = max(1, *a.Likeliest) // a token names its own likelihood only with others'
		}
		r.asks = append(r.asks, q)
	}
	r.Read += len(prompt)
	return nil
}

// encoders bounds how many prompts become tokens at once: it is work that nobody has paid for yet.
var encoders = make(chan struct{}, runtime.GOMAXPROCS(0))

// toEncode waits until a request's texts may become tokens.
func toEncode(ctx context.Context) (done func(), err error) {
	select {
	case encoders <- struct{}{}:
		return func() { <-encoders }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// known returns tokens that a client has sent, if the model has them all.
func (m *Model) known(field string, tokens []int32) ([]int32, error) {
	for _, id := range tokens {
		if _, ok := m.Tokenizer.Token(id); !ok {
			return nil, api.Invalid(field, "%s has token %d, which the model %s does not have", field, id, m.Name)
		}
	}
	return tokens, nil
}

// maxToken is more bytes than a token has, of any tokenizer that people use.
const maxToken = 256

// encode returns the tokens of a text. What is too long in any case is refused before.
func (m *Model) encode(field, text string, special bool) ([]int32, error) {
	if len(text)/maxToken > m.Context {
		return nil, tooLong(field, "the text has more than %d tokens, and the context of %s holds %d", len(text)/maxToken, m.Name, m.Context)
	}
	tokens, err := m.Tokenizer.Encode(text, special)
	if err != nil {
		return nil, api.Invalid(field, "%s: %v", field, err)
	}
	return tokens, nil
}

// tooLong says of a field that it does not fit.
func tooLong(field, format string, args ...any) error {
	return &api.Fault{Status: http.StatusBadRequest, Code: "context_length_exceeded", Param: field, Message: fmt.Sprintf(format, args...) + ": send less"}
}

// prompts returns the tokens of what is asked.
func (m *Model) prompts(ctx context.Context, a *Ask, date time.Time) (all [][]int32, err error) {
	done, err := toEncode(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if a.Chat != nil {
		a.Chat.Date = date
		tokens, err := m.chat(a)
		return [][]int32{tokens}, err
	}
	for _, p := range a.Prompts {
		tokens, err := m.known(a.Field, p.Tokens)
		if err == nil && tokens == nil {
			tokens, err = m.encode(a.Field, p.Text, true)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, tokens)
	}
	return all, nil
}

// chat returns the tokens of a conversation. If its last word is the assistant's, the reply goes on with it.
func (m *Model) chat(a *Ask) ([]int32, error) {
	if m.Prompter == nil {
		return nil, api.Invalid("model", "the model %s has no chat template: ask it for completions", m.Name)
	}
	c := *a.Chat
	last := len(c.Messages) - 1
	c.Continue = last >= 0 && c.Messages[last].Role == "assistant" && len(c.Messages[last].Calls) == 0
	if c.Continue && c.Messages[last].Text == "" { // it has not begun
		c.Continue, c.Messages = false, c.Messages[:last]
	}
	if len(c.Messages) == 0 {
		return nil, api.Invalid(a.Field, "%s has no message to reply to", a.Field)
	}
	text, err := m.Prompter.Prompt(&c)
	if err != nil {
		return nil, api.Invalid(a.Field, "the chat template of %s refuses the messages: %v", m.Name, err)
	}
	return m.encode(a.Field, text, false)
}

// Count returns how many tokens the prompts of a request have.
func (s *Service) Count(ctx context.Context, a *Ask) (n int, err error) {
	a.Choices = 1
	if err := a.check(); err != nil {
		return 0, err
	}
	m, err := s.Open(ctx, a)
	if err != nil {
		return 0, err
	}
	prompts, err := m.prompts(ctx, a, a.date())
	for _, p := range prompts {
		n += len(p)
	}
	return n, err
}

// Find returns the listing of a model.
func (s *Service) Find(ctx context.Context, name string) (Listing, error) {
	all, err := s.Models.List(ctx)
	if err != nil {
		return Listing{}, err
	}
	for _, l := range all {
		if l.Name == name {
			return l, nil
		}
	}
	return Listing{}, Unknown(name)
}
