package replies

import (
	"context"
	"fmt"
	"time"

	"github.com/tally-network/tally/model/lm"
)

// Speculation says how tokens are drafted, which a step then reads together with the token before them. A token that is drawn as it was drafted costs no
// step of its own. Nobody's reply depends on it. The zero value drafts nothing.
type Speculation struct {
	Ngram bool      // what followed the longest end of the sequence when it occurred before
	Model *lm.Model // what a smaller model with the same tokens would draw; asked where n-grams have nothing

	always bool // drafts are made whether or not they are worth it
}

// vocabularyDiffers is how many rows of padding the vocabularies of two models with the same tokens may differ by, as in llama.cpp.
const vocabularyDiffers = 128

// Check refuses a model that cannot draft for m.
func (x Speculation) Check(m *lm.Model) error {
	d := x.Model
	if d == nil {
		return nil
	}
	if by := d.Vocabulary - m.Vocabulary; by < -vocabularyDiffers || by > vocabularyDiffers {
		return fmt.Errorf("the draft model has %d tokens, the model %d: take one of the same family, with the same tokenizer", d.Vocabulary, m.Vocabulary)
	}
	return nil
}

// maxDraft is how many tokens are drafted at once: with the one before they are as many as attention takes without a program.
const maxDraft = 7

// widths are the numbers of tokens that are drafted: with the one before them they fill a stage.
var widths = []int{1, 3, maxDraft}

// drafting is what is drafted for one reply, and how well that went.
type drafting struct {
	ngram, model odds
	drafts       []int32 // that the next step reads
	by           *odds   // who has drafted them
}

// take returns the drafts, which are none then.
func (d *drafting) take() (drafts []int32) {
	drafts, d.drafts = d.drafts, nil
	return drafts
}

// learn is told how many of so many drafts were drawn.
func (d *drafting) learn(drafts, drawn int) {
	if drafts > 0 {
		d.by.learn(min(drawn+1, drafts), max(0, min(drawn, drafts)))
	}
}

// odds are those that a draft is drawn if those before it were.
type odds struct{ hits, tries float64 }

// How fast odds are forgotten: by each time that they are tried, so that ten count, and by each that they are not worth it, so that they are tried again
// after some dozens of tokens.
const (
	forgetTried   = 0.9
	forgetUntried = 0.99
)

func (o *odds) learn(tries, hits int) {
	o.tries, o.hits = forgetTried*o.tries+float64(tries), forgetTried*o.hits+float64(hits)
}

// estimate is the mean of the odds, a half before anything is known.
func (o *odds) estimate() float64 { return (o.hits + 1) / (o.tries + 2) }

// width returns how many tokens to draft, most at most, if each costs as much time as price tokens do. It is 0 if none is worth it.
func (o *odds) width(price float64, most int) (width int) {
	best, each := 0.0, o.estimate()
	for _, n := range widths {
		n = min(n, most)
		gain, all := 0.0, 1.0
		for range n {
			all *= each
			gain += all
		}
		if gain -= price * float64(n); gain > best {
			best, width = gain, n
		}
	}
	if width == 0 {
		o.tries, o.hits = forgetUntried*o.tries, forgetUntried*o.hits
	}
	return width
}

// speculate adds drafts to the parts of a step. Steps that read prompts have none: arithmetic bounds them, and not reading weights.
func (s *Server) speculate(ctx context.Context, parts []lm.Part, of []*reply) error {
	if x := s.options.Speculative; !x.Ngram && x.Model == nil || readsPrompts(of) {
		return nil
	}
	room, price, byModel := lm.MaxRows-len(of), s.price(len(of), 0), 0.0
	if s.drafter != nil {
		byModel = s.price(len(of), s.drafter.takes(len(of)))
	}
	var asked []draftOf
	for _, p := range of {
		most := min(maxDraft, room, p.request.Room(s.model)-1-len(p.tokens), cap(p.out)-len(p.out)-1)
		if most < 1 {
			continue
		}
		n := 0
		if s.options.Speculative.Ngram {
			n = s.draftByNgram(p, price, most)
		}
		if n == 0 && s.drafter.follows(p, most) {
			if n = p.drafting.model.width(byModel, most); n > 0 {
				asked = append(asked, draftOf{p, n})
			}
		}
		room -= n
	}
	if len(asked) > 0 {
		if err := s.drafter.draft(ctx, asked); err != nil {
			if ctx.Err() != nil {
				return err
			}
			s.drafter.failed = true // replies go on without it
			for _, x := range asked {
				x.drafting.drafts = nil
			}
		}
	}
	for i, p := range of {
		if n := len(p.drafting.drafts); n > 0 {
			parts[i].Tokens, parts[i].Logits = append(parts[i].Tokens[:1:1], p.drafting.drafts...), 1+n
		}
	}
	return nil
}

// price is that of the pace, and nothing where drafts are always made.
func (s *Server) price(replies int, drafting float64) float64 {
	if s.options.Speculative.always {
		return 0
	}
	return s.pace.price(replies, drafting)
}

// draftByNgram drafts what followed before, and returns how many tokens those are.
func (s *Server) draftByNgram(p *reply, price float64, most int) int {
	at := lookUp(p.tokens)
	if at < 0 {
		return 0
	}
	n := p.drafting.ngram.width(price, most)
	if n > 0 {
		p.drafting.by, p.drafting.drafts = &p.drafting.ngram, follow(p.tokens, at, n)
	}
	return n
}

// readsPrompts reports whether some of the replies read more than their last token.
func readsPrompts(of []*reply) bool {
	for _, p := range of {
		if len(p.tokens)-p.sequence.own.Len() > 1 {
			return true
		}
	}
	return false
}

// pace is what steps have taken lately: sums over steps, the last of which weigh most.
type pace struct {
	weight, rows, seconds, squares, products float64
	known                                    [lm.MaxRows + 1]bool // numbers of rows that there was a step of, which had it prepared
}

// forgetStep is what a step weighs when another one has come: about fifty count.
const forgetStep = 0.98

// surprise bounds what one step tells, as a multiple of the mean: the machine may have stood still.
const surprise = 4

// add takes a step of so many rows into account, but for the first.
func (p *pace) add(rows int, took time.Duration) {
	if !p.known[rows] {
		p.known[rows] = true
		return
	}
	n, t := float64(rows), took.Seconds()
	if p.weight > 0 {
		t = min(t, surprise*max(1, n*p.weight/p.rows)*p.seconds/p.weight)
	}
	p.weight = forgetStep*p.weight + 1
	p.rows = forgetStep*p.rows + n
	p.seconds = forgetStep*p.seconds + t
	p.squares = forgetStep*p.squares + n*n
	p.products = forgetStep*p.products + n*t
}

// untold is what a row takes of a step of one row and nothing else, before steps have told: as a Xeon takes of 135M weights of four bits
// (19 ms for one row, 37 for eight).
const untold = 0.125

// line returns what a step takes, and each row besides, in seconds: the line through all steps, and through one that is guessed.
func (p *pace) line() (step, row float64) {
	if p.weight == 0 {
		return 1 - untold, untold
	}
	n, t := p.rows/p.weight, p.seconds/p.weight
	spread := p.squares/p.weight - n*n
	together := p.products/p.weight - n*t
	guess := untold * t / (1 + untold*(n-1))
	row = max(0, min((together+guess)/(spread+1), t/n))
	return t - row*n, row
}

// price returns what a draft takes, beside what a token does in a step where so many replies get one each. Drafting it takes so many seconds; below 0: as
// long as reading it.
func (p *pace) price(replies int, drafting float64) float64 {
	step, row := p.line()
	if drafting < 0 || drafting > 0 && p.weight == 0 {
		drafting = row
	}
	n := float64(replies)
	return (row + drafting) * n / (step + row*n)
}
