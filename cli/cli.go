// Package cli is the command line of tally: one file for each verb.
//
// Invariants, to which every verb keeps:
//   - With --json it writes exactly one JSON value to standard output, an error
//     too: {"error": …, "hint": …}. Progress goes to standard error then.
//   - An error ends with what to do next (hint.go).
//   - Exit codes: 0 done, 1 failed, 2 called wrongly, 3 nothing anchors what was
//     verified, 4 what was to be verified needs more memory than it may take,
//     130 interrupted.
//   - It ends within seconds after Ctrl-C, and leaves nothing half done.
//
// Call [Run]; it is all of the program.
package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/cosmos/cosmos-sdk/client/flags"
	"github.com/cosmos/cosmos-sdk/version"

	"github.com/tally-network/tally/cli/data"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/cli/speak"
	"github.com/tally-network/tally/cli/tokens"
	"github.com/tally-network/tally/node/evidence"
)

// Exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitUnanchored  = 3
	exitUnchecked   = 4
	exitInterrupted = 130
)

// env is one run of the command line.
type env struct {
	in       io.Reader
	out, err io.Writer

	json    bool
	home    string
	level   string // of logs
	started bool   // arguments were right, the verb runs
	printed bool   // the one JSON value is out
}

// Run runs the command line and returns the exit code.
func Run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	e := &env{in: in, out: out, err: errOut}
	root := e.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	e.json = e.json || slices.Contains(args, "--json") // flags before it may be wrong
	code := exitFailed
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		code = exitInterrupted
		err = errors.New("interrupted")
	case errors.Is(err, errUnanchored):
		code = exitUnanchored
	case errors.Is(err, evidence.ErrUnchecked):
		code = exitUnchecked
	case !e.started:
		code = exitUsage
	}
	e.fail(err, code == exitUsage)
	return code
}

func (e *env) root() *cobra.Command {
	version.AppName, version.Name = "tally", "tally" // what the SDK's own texts call the program
	root := &cobra.Command{
		Use:   "tally",
		Short: "Buy and sell AI computation that can be checked",
		Long: `Tally is a network where people buy and sell AI computation that can be checked.

See all of it at work on this machine:    tally demo
Have a model trained:                     tally train order.yaml --wait
Have a model applied to many records:     tally batch order.yaml --wait
Check that it was trained right:          tally verify proof.bundle
Sell the computation of an idle machine:  tally provide
Serve a language model to strangers:      tally serve MODEL
Talk to a language model:                 tally run model.gguf`,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := numbers.Check(cmd.Flags()); err != nil {
				return err
			}
			e.started = true
			return e.prepare(cmd)
		},
	}
	b := readBuild()
	root.Version = b.Version + " " + b.Commit
	root.SetVersionTemplate("tally {{.Version}}\n")
	root.SetIn(e.in)
	root.SetOut(e.out)
	root.SetErr(e.err)
	p := root.PersistentFlags()
	p.BoolVar(&e.json, "json", false, "print one JSON value, and nothing else, on standard output")
	p.StringVar(&e.home, flags.FlagHome, defaultHome(), "directory of keys, settings and data (TALLY_HOME sets the default)")
	p.StringVar(&e.level, "log", "warn", "least level of log lines on standard error: debug, info, warn or error")
	root.AddGroup(
		&cobra.Group{ID: "orders", Title: "Buying computation:"},
		&cobra.Group{ID: "models", Title: "Models:"},
		&cobra.Group{ID: "network", Title: "The network:"},
		&cobra.Group{ID: "chain", Title: "Accounts and the chain:"},
		&cobra.Group{ID: "other", Title: "Other:"},
	)
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	speaking := &speak.Env{In: e.in, Out: e.out, Err: e.err, JSON: &e.json, Show: e.show, Logger: e.logger, Terminal: terminal, AlsoRuns: alsoRuns, Home: &e.home, Consumer: consumer(e)}
	demo := e.demo()
	demo.AddCommand(speaking.ChatDemo())
	root.AddCommand(
		e.train(), e.batch(), drill(e), e.order(), (&reader{e: e}).cost(), e.verify(), trust(e),
		demo, e.devnet(), genesis(e), e.validator(), e.provide(), e.watch(), (&reader{e: e}).powerOf(), (&reader{e: e}).seats(), (&reader{e: e}).policyOf(), (&reader{e: e}).market(), (&reader{e: e}).clusters(),
		e.keys(), e.tx(), e.query(),
		e.runONNX(), e.conform(), e.sim(), e.bench(), e.version(),
	)
	root.AddCommand(speak.Commands(speaking)...)
	root.AddCommand(serveModels(e, speaking), data.Command(e.show, &e.home), tokens.Command(&tokens.Env{Err: e.err, Show: e.show}))
	group(root)
	return root
}

// group lets commands that only hold others show their help, and refuse arguments that are none of them.
func group(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		group(sub)
	}
	if !cmd.HasSubCommands() || cmd.Annotations[alsoRuns] != "" {
		return
	}
	cmd.DisableFlagParsing = false
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = unknown
	cmd.SetFlagErrorFunc(func(of *cobra.Command, err error) error { // -y of what was misspelt is no flag of the group
		if of == cmd {
			err = cmp.Or(unknown(cmd, cmd.Flags().Args()), err)
		}
		return err
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// unknown says of an argument of a command that only holds others which these are.
func unknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q.", args[0], cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += " Did you mean " + strings.Join(near, " or ") + "?"
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return fmt.Errorf("%s There are %s", text, strings.Join(names, ", "))
}

func defaultHome() string {
	if dir := os.Getenv("TALLY_HOME"); dir != "" {
		return dir
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return ".tally"
	}
	return filepath.Join(dir, ".tally")
}

// show writes a verb's result: as JSON, or as text.
func (e *env) show(value any, text func(w io.Writer)) error {
	if !e.json {
		text(e.out)
		return nil
	}
	e.printed = true
	enc := json.NewEncoder(e.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}

// fail writes an error and its hint.
func (e *env) fail(err error, usage bool) {
	text, next := plain(err), hint(err, usage)
	if e.json && !e.printed {
		_ = e.show(struct {
			Error string `json:"error"`
			Hint  string `json:"hint,omitempty"`
		}{text, next}, nil)
		return
	}
	fmt.Fprintln(e.err, "error:", text)
	if next != "" {
		fmt.Fprintln(e.err, "hint: ", next)
	}
}

// progress is where lines for a watching person go.
func (e *env) progress() io.Writer {
	if e.json {
		return e.err
	}
	return e.out
}

// terminal reports whether w is one.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// logger returns what writes log lines of the chosen level to w.
func (e *env) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(e.level)); err != nil {
		return nil, fmt.Errorf("--log %q is none of debug, info, warn, error", e.level)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), nil
}
