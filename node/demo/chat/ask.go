package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/node/hire"
)

// Bounds of a question.
const (
	maxTokens = 48
	maxAnswer = 1 << 20 // bytes of the gateway's answer
)

// asked is what the gateway is asked.
type asked struct {
	Model     string    `json:"model"`
	Messages  []message `json:"messages"`
	MaxTokens int       `json:"max_tokens"`
	Seed      int       `json:"seed"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// said is what the gateway answers, as far as it is shown.
type said struct {
	Choices []struct {
		Message message `json:"message"`
	} `json:"choices"`
	Tally struct {
		Bills []struct {
			Provider string `json:"provider"`
			Receipt  string `json:"receipt"`
			Tokens   int    `json:"tokens"`
			Price    uint64 `json:"price_utally"`
		} `json:"bills"`
	} `json:"tally"`
}

// ask asks a question by HTTP, and waits until all parts of the reply are checked.
func (d *demo) ask(ctx context.Context, i int, question string) (*Answer, error) {
	body, err := json.Marshal(asked{d.o.Name, []message{{"user", question}}, maxTokens, i + 1})
	if err != nil {
		return nil, err
	}
	url := d.report.URL + "/v1/chat/completions"
	curl := fmt.Sprintf("curl %s -d '%s'", url, body)
	if i == 0 {
		d.report.Curl = curl
		d.say("$ %s", curl)
	} else {
		d.say("$ curl …, \"content\": %q", question)
	}
	begun := time.Now()
	s, err := post(ctx, url, body)
	if err != nil {
		return nil, fmt.Errorf("ask %q: %w", question, err)
	}
	a := &Answer{Question: question, Reply: s.Choices[0].Message.Content, Seconds: time.Since(begun).Seconds()}
	d.say("  %s", strings.ReplaceAll(strings.TrimSpace(a.Reply), "\n", "\n  "))
	for _, b := range s.Tally.Bills {
		part := Part{Provider: d.report.Name(b.Provider), Receipt: b.Receipt, Tokens: b.Tokens, Price: b.Price}
		r, err := d.checked(ctx, b.Receipt)
		if err != nil {
			return nil, err
		}
		part.CheckedBy, part.Wrong = d.report.Name(r.Check.By), r.Check.Wrong
		part.Right = r.Check.Right()
		a.Parts = append(a.Parts, part)
		d.say("  → %s made %d tokens for %d utally, in %.1f s; receipt %.12s…", part.Provider, part.Tokens, part.Price, a.Seconds, part.Receipt)
		d.say("  → %s", verdict(&part, r.Check.Error))
		if !part.Right && r.Check.Error == "" {
			d.blame()
			if err := d.watch(ctx, r); err != nil {
				return nil, fmt.Errorf("the dispute about receipt %s: %w", b.Receipt, err)
			}
		}
	}
	d.say("")
	return a, nil
}

func verdict(p *Part, failed string) string {
	switch {
	case failed != "":
		return "not checked: " + failed
	case p.Right:
		return "checked by " + p.CheckedBy + ", which has re-executed it: right"
	case p.Wrong >= 0:
		return fmt.Sprintf("checked by both others, of whom %s has decided: WRONG, token %d is not what the request gives", p.CheckedBy, p.Wrong)
	}
	return "checked by " + p.CheckedBy + ": WRONG, other pages were signed for than the reply has"
}

// post sends a question.
func post(ctx context.Context, url string, body []byte) (*said, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the gateway answers %s: %.500s", r.Status, text)
	}
	var s said
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("the gateway's answer: %w", err)
	}
	if len(s.Choices) != 1 || len(s.Tally.Bills) == 0 {
		return nil, fmt.Errorf("the gateway's answer has no reply, or no bill: %.500s", text)
	}
	return &s, nil
}

// checked waits until a receipt has its check.
func (d *demo) checked(ctx context.Context, id string) (*hire.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	h, err := canon.ParseHash(id)
	if err != nil {
		return nil, fmt.Errorf("the gateway names receipt %.80q: %w", id, err)
	}
	return d.consumer.Checked(ctx, h)
}

// blame tells who was found to cheat.
func (d *demo) blame() {
	for account, b := range d.consumer.Blamed() { // at most one: the others are honest
		if d.report.blames(account) {
			continue
		}
		d.report.Blamed = append(d.report.Blamed, Blamed{Account: account, Name: d.report.Name(account), Why: b.Why})
		d.say("  → %s is caught, and is not asked any more. It is paid no more than it was ahead", d.report.Name(account))
	}
}
