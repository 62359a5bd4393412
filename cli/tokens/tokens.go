// Package tokens is the verbs about tokenizers. Call [Command] for tally tokenizer.
//
// Invariants: those of package cli.
package tokens

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/format/tokenizer/learn"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
)

// Env is what verbs have of the command line.
type Env struct {
	Err  io.Writer                                     // for progress
	Show func(value any, text func(w io.Writer)) error // the result: as JSON, or as text
}

// Command returns the verb, which holds the others.
func Command(e *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "tokenizer", GroupID: "models", Short: "Make a tokenizer of texts",
		Example: "  tally tokenizer train book.txt --vocabulary 2048",
	}
	cmd.AddCommand(e.train())
	return cmd
}

// Made is what tally tokenizer train tells.
type Made struct {
	File       string `json:"file"`
	Vocabulary int    `json:"vocabulary"` // tokens
	Merges     int    `json:"merges"`
	Words      int    `json:"distinct_words"`
	Bytes      int64  `json:"bytes"` // of the texts
}

func (e *Env) train() *cobra.Command {
	o := learn.Options{Vocabulary: 8192, Frequency: 2}
	out := "tokenizer.json"
	cmd := &cobra.Command{
		Use: "train TEXT…", Short: "Learn byte-level BPE, as a tokenizer.json",
		Long: `Learns tokens of texts in UTF-8: byte-level BPE, cut into words by GPT-2's expression. Every byte
has a token, so that any text can be encoded. Merges follow those of Hugging Face's BpeTrainer, but for
two rare cases; its library reads the tokenizer.json. The same texts give the same file.

Give an order the file as problem.tokenizer, beside problem.text, or as problem.data.text.tokenizer.`,
		Example: `  tally tokenizer train book.txt --vocabulary 2048
  tally tokenizer train a.txt b.txt --special '<|endoftext|>' --out small.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("TEXT is missing: name the files to learn from")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := e.learn(cmd.Context(), args, o, out)
			if err != nil {
				return err
			}
			return e.Show(r, r.tell)
		},
	}
	f := cmd.Flags()
	f.Var(numbers.Within(&o.Vocabulary, learn.Bytes, learn.MaxVocabulary), "vocabulary", "tokens at most")
	f.StringArrayVar(&o.Special, "special", nil, "a token of no word, as <|endoftext|>; several times for several")
	f.Var(numbers.Within(&o.Frequency, 1, math.MaxInt64), "frequency", "how often two tokens must stand beside each other to become one")
	f.StringVar(&out, "out", out, "file to write, which is not there yet")
	return cmd
}

// learn reads texts and writes what they teach. It replaces no file.
func (e *Env) learn(ctx context.Context, texts []string, o learn.Options, out string) (*Made, error) {
	if _, err := os.Lstat(out); err == nil {
		return nil, taken(out)
	}
	w, r := &learn.Words{}, &Made{File: out}
	told := time.Now()
	tell := func(format string, args ...any) {
		if time.Since(told) > time.Second {
			told = time.Now()
			fmt.Fprintf(e.Err, format+"\n", args...)
		}
	}
	for _, name := range texts {
		f, size, err := bounded.Open(name)
		if err != nil {
			return nil, err
		}
		err = w.Read(ctx, f, func(done int64) {
			tell("reading %s: %d of %d MB, %d different words", name, done/1e6, size/1e6, w.Distinct())
		})
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		r.Bytes += size
	}
	o.Progress = func(tokens, of int) { tell("%d of %d tokens", tokens, of) }
	t, err := w.Train(ctx, o)
	if err != nil {
		return nil, err
	}
	r.Vocabulary, r.Merges, r.Words = len(t.Tokens), len(t.Merges), w.Distinct()
	err = replace.Create(out, t.Encoded())
	if errors.Is(err, fs.ErrExist) {
		return nil, taken(out)
	}
	return r, err
}

func taken(name string) error {
	return fmt.Errorf("%s is there already: remove it, or name another file with --out", name)
}

func (r *Made) tell(w io.Writer) {
	fmt.Fprintf(w, "%s: %s of %d different words in %.4g MB\n", r.File, numbers.Several(r.Vocabulary, "token"), r.Words, float64(r.Bytes)/1e6)
	fmt.Fprintf(w, "A model to train with it: tally model new gpt --set vocabulary=%d\n", r.Vocabulary)
}
