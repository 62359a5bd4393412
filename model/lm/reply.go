package lm

import (
	"context"
	"fmt"
	"iter"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/model/grammar"
)

// Request is what one reply follows from, with the model: nothing else decides its tokens.
type Request struct {
	Prompt    []int32
	Made      int     // so many of the prompt's last tokens are the reply's first: it goes on from there
	MaxTokens int     // tokens of the reply, at most
	Ends      []int32 // tokens that end a reply, and are its last
	Sampling  Sampling
	Form      *grammar.Automaton // what the reply's text is bound to: a token that does not go on with it is not drawn; nil: nothing
	Seed      uint64
	Owner     string // who asks; changes no token, but what was read for one owner is taken over for no other
	Likeliest int    // how many of the likeliest tokens each Token names; 0: not even its own likelihood

	Pages  bool            // the last Token has the root of pages; changes no token
	Enough <-chan struct{} // closed when no more tokens are wanted: one more comes, which is the last, with the reason Cut
}

// Check refuses what the model cannot reply to.
func (r *Request) Check(m *Model) error {
	switch {
	case len(r.Prompt) == 0:
		return fmt.Errorf("the prompt has no tokens")
	case len(r.Prompt) >= m.Context:
		return fmt.Errorf("the prompt has %d tokens, which leave no room for a reply in the context of %d: shorten it", len(r.Prompt), m.Context)
	case r.Made < 0 || r.Made >= len(r.Prompt):
		return fmt.Errorf("%d of %d tokens are the reply's: want at least one that is not", r.Made, len(r.Prompt))
	case r.MaxTokens < 1:
		return fmt.Errorf("a reply of at most %d tokens: want at least 1", r.MaxTokens)
	case len(r.Ends) > MaxEnds:
		return fmt.Errorf("%d tokens end the reply: want at most %d", len(r.Ends), MaxEnds)
	case r.Likeliest < 0 || r.Likeliest > MaxLikeliest:
		return fmt.Errorf("%d likeliest tokens: want 0 to %d", r.Likeliest, MaxLikeliest)
	}
	for _, ids := range [][]int32{r.Prompt, r.Ends} {
		for _, id := range ids {
			if id < 0 || int(id) >= m.Vocabulary {
				return fmt.Errorf("token %d: want 0 to %d", id, m.Vocabulary-1)
			}
		}
	}
	if err := r.Sampling.Check(m.Vocabulary); err != nil || r.Form == nil {
		return err
	}
	_, err := m.forms.Follow(r)
	return err
}

// Room is how many tokens prompt and reply have together at most.
func (r *Request) Room(m *Model) int {
	return len(r.Prompt) + min(r.MaxTokens, m.Context-len(r.Prompt))
}

// Sampling is how a token is drawn from logits. Its zero value takes the greatest logit.
type Sampling struct {
	Temperature float32 // logits are divided by it; 0: the greatest is taken
	TopK        int     // only so many of the greatest take part; 0: all
	TopP        float32 // only the greatest whose probabilities make up so much; 0 or 1: all
	MinP        float32 // only those at least so likely, beside the likeliest; 0: all
	Repeat      float32 // logits of tokens of prompt and reply are divided by it if positive, else multiplied; 0 or 1: nothing
	Presence    float32 // subtracted from logits of tokens of the reply
	Frequency   float32 // subtracted for each time that the token is in the reply
	Bias        map[int32]float32
}

// Token is a token of a reply.
type Token struct {
	ID        int32
	LogProb   float32     // the logarithm of its probability by the logits as they were
	Likeliest []Candidate // the likeliest, the greatest first
	Reason    Reason      // why no other follows
	Pages     canon.Hash  // of the last token, if they are wanted: root of the pages of all tokens before it
}

// Candidate is a token that could have been.
type Candidate struct {
	ID      int32
	LogProb float32
}

// Reason is why a reply is over. While it goes on it is empty.
type Reason string

const (
	Stop   Reason = "stop"   // its last token ends replies, or its form is complete
	Length Reason = "length" // it has as many tokens as it may have, or as the context holds
	Cut    Reason = "cut"    // nobody wants more
)

// Replier gives replies. The error is the last that it yields. Who stops listening, or whose context is cancelled, ends the work.
type Replier interface {
	Reply(ctx context.Context, r *Request) iter.Seq2[Token, error]
}
