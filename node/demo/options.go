package demo

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/format/text"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/role"
)

// Options say what the demo does.
type Options struct {
	Dir     string // holds network and results
	Data    string // text file to train on; empty: the demo's own
	Cheat   Cheat  // what one provider does
	Threads int    // of each role that computes; 0: the devnet's default
	Log     *slog.Logger

	Line  func(string) // one line about something that happened; may be nil
	Board func(Board)  // how everything stands, after every change; may be nil
	// Inspect sees the leases of the orders on every block, as the consumer does; may be
	// nil. It is called for both at once.
	Inspect func(ctx context.Context, env *role.Env, l *job.Lease) error
}

// corpus is original prose, so that the demo needs nothing from elsewhere.
//
//go:embed corpus.txt
var corpus string

// maxData bounds the text in bytes.
const maxData = 64 << 20

func (o *Options) text() (string, error) {
	if o.Data == "" {
		return corpus, nil
	}
	f, _, err := bounded.Open(o.Data)
	if err != nil {
		return "", fmt.Errorf("training text: %w", err)
	}
	defer f.Close()
	s, err := text.Read(f, maxData)
	if err != nil {
		return "", fmt.Errorf("training text %s: %w", o.Data, err)
	}
	return s, nil
}

// seed of the model and of the batch order; the final root depends on it.
const seed = 7

// trainingSteps are the steps of a unit.
const trainingSteps = 16

// spec is the training order that the demo posts. Its windows are short: who watches a
// demo does not want to wait, and the challenger runs beside it. It does with
// one provider less than there are: who was convicted takes no orders for a
// while.
func spec() consume.Spec {
	s := consume.Default()
	s.Name = "demo"
	p, c := &s.Problem, &s.Conditions
	p.Rounds, p.Shards, p.Steps, p.Interval, p.Batch, p.Seed = 8, 4, trainingSteps, 8, 8, seed
	c.MaxPrice, c.Providers, c.Custodians = 5_000_000, 3, 3
	c.Expires = consume.Duration(time.Minute)
	c.UnitTimeout, c.UnitWindow, c.Window = consume.Duration(2*time.Minute), consume.Duration(3*time.Second), consume.Duration(20*time.Second)
	return s
}

// prompt is what the trained model continues: the first line of the text.
func prompt(body string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(body), "\n")
	if r := []rune(line); len(r) > maxPrompt {
		line = string(r[:maxPrompt])
	}
	return line + "\n\n"
}

const maxPrompt = 60 // characters
