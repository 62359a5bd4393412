// Package speak is the verbs that are about language models: run, serve, gateway, session, pull, ps, rm, model, demo chat. Call [Commands].
//
// Invariants: those of package cli.
package speak

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
)

// Env is what verbs have of the command line.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	JSON     *bool
	Show     func(value any, text func(w io.Writer)) error // the result: as JSON, or as text
	Logger   func(w io.Writer) (*slog.Logger, error)
	Terminal func(w io.Writer) bool
	Home     *string
	Consumer func(f *pflag.FlagSet) OpenConsumer
	AlsoRuns string // annotation of a command that holds others, and does something by itself
}

// OpenConsumer opens the home of a consumer, and the network where flags say that it is. The caller closes the home.
type OpenConsumer func(ctx context.Context) (*home.Home, *role.Env, error)

// Commands returns the verbs.
func Commands(e *Env) []*cobra.Command {
	return []*cobra.Command{e.run(), e.gateway(), e.pull(), e.ps(), e.rm(), e.model(), e.session()}
}

// threads is the flag of how many threads compute.
func threads(cmd *cobra.Command, n *int) {
	cmd.Flags().Var(numbers.Within(n, 0, 1<<10), "threads", fmt.Sprintf("threads that compute (default: all, here %d)", runtime.GOMAXPROCS(0)))
}

func executor(threads int) engine.Executor { return cpu.New(threads) }

// named wants an argument for each name, and lets more follow.
func named(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return fmt.Errorf("%s is missing", names[len(args)])
		}
		return nil
	}
}
