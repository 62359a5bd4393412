package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/interrupt"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/consume/split"
	"github.com/tally-network/tally/node/evidence"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/light"
	"github.com/tally-network/tally/node/plausibility"
	"github.com/tally-network/tally/node/replay"
)

// trustVariable names the trust root where --trust does not.
const trustVariable = "TALLY_TRUST"

// verified is what tally verify tells.
type verified struct {
	Bundle    string `json:"bundle"`
	Order     string `json:"order"`
	Chain     string `json:"chain"`
	Anchored  bool   `json:"anchored"`   // to a validator set that somebody trusts
	Trust     string `json:"trust_root"` // that set, or else the one that the bundle itself names
	TrustFrom string `json:"trust_from,omitempty"`
	Block     int64  `json:"anchor_block"` // that they signed
	replay.Continued
	FinalRoot string `json:"final_root"`
	Verified  bool   `json:"verified"`         // all that was checked holds, and it is anchored
	Complete  bool   `json:"complete"`         // what was ordered was done
	Reason    string `json:"reason,omitempty"` // why not
	Rounds    rounds `json:"rounds"`
	executed
	replay.Rating

	Plausibility *plausibility.Report `json:"plausibility,omitempty"`
	Unjudged     string               `json:"plausibility_unknown,omitempty"` // why there is no report, though one was asked for

	what string // that the bundle is about
}

// rounds says how many of those that were ordered the model is made of.
type rounds struct {
	Merged  int `json:"merged"`
	Ordered int `json:"ordered"`
}

// executed says what was computed again.
type executed struct {
	Segments counted  `json:"segments"`
	Merges   counted  `json:"merges"`
	Executed []string `json:"executed"`
	Seconds  float64  `json:"seconds"`
	Unscored string   `json:"unscored,omitempty"` // why there are no metrics, though the order names held-out records
}

// counted says how many of all were executed.
type counted struct {
	Executed int `json:"executed"`
	All      int `json:"all"`
}

func (e *env) verify() *cobra.Command {
	v := verifier{node: reader{e: e}, segments: 4, memory: defaultMemoryMB}
	cmd := &cobra.Command{
		Use: "verify BUNDLE", GroupID: "orders",
		Short: "Check a proof of training, of a batch or of one of its records, without a network",
		Long: `Checks a proof bundle. First every hash and signature: that validators whom you
trust signed the settlement, that the record is the settled one, that order and
receipts are signed, and that every state has the root that was claimed. Then it
executes some segments and a merge again, picked at random, or with --full
everything that the trained model rests on. Where the order stopped early it says
so first: the model is then that of the rounds that were done.

BUNDLE may be the folder that a delivery made. Of an order that was split each part's
bundle is checked, and --json prints a list.

Of a file that tally order extract wrote it checks the same, and prints the record that
the file is about: who trusts the validators need not trust who shows it.

--plausibility also looks at the checkpoints with the six rules of proof of
training, and --plots draws them. That is a filter for people, never evidence:
invented checkpoints can pass all six. With fewer than 8 checkpoints they cannot
tell, and nothing is drawn.

Trust is in a validator set, by its hash: --trust names it, or TALLY_TRUST, or
else the home's own node showed it when the order was followed from there, or the
home has pinned a block of it (tally trust pin). Without any of these nothing anchors the
bundle: whoever made it may have invented the chain too. It is checked all the same, the
first line says so, and it exits with 3. Who made it wrote a file trust.json beside it, too.

--refresh asks a node for the newest block, follows to it from what you trust, and
checks the bundle by it. So a bundle of any age needs no trust in validators that are
long gone. The bundle stays as it is; tally order renew rewrites it.

What is executed takes the memory that the order's programs need. Above --memory-mb
nothing is executed: that tells nothing about the bundle, and exits with 4.`,
		Example: `  tally verify proof.bundle --trust 5B1F…
  tally verify proof.bundle --trust order-3f09/trust.json --full --json
  tally verify proof.bundle --refresh --home tally-devnet/consumer
  tally verify proof.bundle --trust 5B1F… --plausibility --plots training.svg`,
		Args: arguments("verify BUNDLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			v.e, v.name = e, args[0]
			if v.refresh {
				return v.node.asks(func(ctx context.Context, _ []string) error { return v.run(ctx) })(cmd, args)
			}
			return v.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&v.full, "full", false, "execute everything again")
	f.Var(numbers.Within(&v.segments, 0, 1_000_000), "segments", "segments to execute again")
	f.BoolVar(&v.plausible, "plausibility", false, "judge the checkpoints by the six rules of proof of training")
	f.StringVar(&v.plots, "plots", "", "SVG file to draw loss, distances and changes in")
	f.StringVar(&v.trust, "trust", "", "validator set to trust: its hash, of 64 digits, or else a file that notes it")
	f.BoolVar(&v.refresh, "refresh", false, "ask a node for the newest block, and check by it")
	v.node.flags(f)
	f.Var(numbers.Within(&v.threads, 0, home.MaxThreads), "threads", "threads that compute (default one per processor)")
	f.Var(numbers.Within(&v.memory, 1, maxMemoryMB), "memory-mb", "refuse orders whose programs need more memory than this")
	return cmd
}

type verifier struct {
	e        *env
	name     string // of the bundle
	full     bool
	segments int
	trust    string
	threads  int
	memory   uint64 // MiB that a program may take

	plausible bool
	plots     string // SVG file

	refresh bool
	node    reader
	roots   *evidence.Roots
	fresh   *evidence.Fresh // nil: the bundle's own anchor counts
}

func (v *verifier) run(ctx context.Context) (err error) {
	if v.roots, err = v.trusted(); err != nil {
		return err
	}
	names, err := split.BundlesOf(v.name)
	if err != nil {
		return err
	}
	all := make([]*verified, len(names))
	for i, name := range names {
		v.name = name
		if all[i], err = v.one(ctx); err != nil {
			return err
		}
		if all[i] == nil { // a record, which is told of already
			return nil
		}
	}
	if len(all) == 1 {
		err = v.e.show(all[0], all[0].tell)
	} else {
		err = v.e.show(all, func(w io.Writer) {
			for _, r := range all {
				r.tell(w)
			}
		})
	}
	if err == nil && slices.ContainsFunc(all, func(r *verified) bool { return !r.Anchored }) {
		return errUnanchored
	}
	return err
}

// one checks a bundle. Of a record it tells, and returns nothing.
func (v *verifier) one(ctx context.Context) (*verified, error) {
	begun := time.Now()
	file, size, err := bounded.Open(v.name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if v.refresh {
		if v.fresh, err = v.roots.Refresh(ctx, v.node.role.Chain, file, size); err != nil {
			return nil, err
		}
	}
	if evidence.IsExtract(file, size) {
		return nil, v.record(ctx, file, size)
	}
	p, err := interrupt.Run(ctx, func() (*evidence.Proof, error) { return v.check(ctx, file, size) })
	if err != nil {
		return nil, err
	}
	tell, l := v.e.progress(), p.Lease
	if p.By == "" {
		fmt.Fprintln(tell, unanchored)
		if v.refresh {
			fmt.Fprintln(tell, "--refresh asked nobody: it follows a chain from what you trust, and there is nothing.")
		}
	}
	fmt.Fprintf(tell, "order %s on %s, settled: all hashes and signatures hold\n", l.Order.ID().Short(), p.Chain)
	r := verified{
		Bundle: v.name, Order: l.Order.ID().String(), Chain: p.Chain, Anchored: p.By != "", Trust: p.Signers.String(), TrustFrom: p.By, Block: p.Anchor.Height, Continued: replay.ContinuedOf(&l.Order.Problem), FinalRoot: l.FinalRoot().String(),
		executed: executed{Executed: []string{}}, Complete: l.Reason == "", Reason: l.Reason, Rounds: rounds{l.Round, l.Order.Problem.Rounds},
	}
	r.what = "the model with state " + r.FinalRoot
	if l.Order.Problem.Kind == job.Batch {
		r.what = fmt.Sprintf("the results of %d records with root %s", l.Order.Problem.Records, r.FinalRoot)
	}
	if !r.Complete {
		fmt.Fprintln(tell, r.incomplete())
	}
	claims := p.Claims()
	for _, x := range claims {
		r.count(x).All++
	}
	if !v.full {
		claims = p.Draw(v.segments)
	}
	told := begun
	for i, x := range claims {
		if err := p.Execute(ctx, x); err != nil {
			return nil, err
		}
		r.count(x).Executed++
		r.Executed = append(r.Executed, x.String())
		if last := i == len(claims)-1; last || time.Since(told) > 2*time.Second {
			told = time.Now()
			fmt.Fprintf(tell, "%d of %d executed again, the last %v: equal\n", i+1, len(claims), x)
		}
	}
	if r.Rating, err = p.Rating(ctx, v.executor()); replay.Unscored(err) {
		r.Unscored = err.Error()
	} else if err != nil {
		return nil, err
	}
	if r.Plausibility, err = v.judge(ctx, p); errors.Is(err, plausibility.ErrFew) {
		r.Unjudged = err.Error()
	} else if err != nil {
		return nil, err
	}
	r.Verified, r.Seconds = r.Anchored, float64(time.Since(begun).Milliseconds())/1000
	return &r, nil
}

// unanchored is the first line about a bundle whose validators nobody named.
const unanchored = "NOT ANCHORED: nobody that you trust signed this; whoever made the bundle may have invented its chain. Name the validator set that you trust with --trust HASH, or pin a block with tally trust pin."

// errUnanchored ends a verification that found nothing wrong and proves nothing.
var errUnanchored = errors.New("nothing anchors the bundle: it holds in itself, and proves nothing before you name whom you trust")

// program is the memory in bytes that the program itself takes, of which the collector
// does not know: 60 to 90 MB of its pages are mapped when it verifies.
const program = 96 << 20

// check checks all but the execution, in bounded memory.
func (v *verifier) check(ctx context.Context, file io.ReaderAt, size int64) (*evidence.Proof, error) {
	// What was thrown away is collected before it counts.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(4*size + evidence.Room - program))
	return v.roots.Check(ctx, v.fresh, file, size, v.executor())
}

// executor refuses programs that need more memory than it may take.
func (v *verifier) executor() engine.Executor {
	return engine.Bounded(cpu.New(v.threads), v.memory<<20)
}

// given returns a hash as text, "" if it is zero.
func given(h canon.Hash) string {
	if h.IsZero() {
		return ""
	}
	return h.String()
}

// judge returns the report of the six rules, if it is asked for.
func (v *verifier) judge(ctx context.Context, p *evidence.Proof) (*plausibility.Report, error) {
	if !v.plausible && v.plots == "" {
		return nil, nil
	}
	r, err := p.Plausibility(ctx, v.executor())
	if err != nil || v.plots == "" {
		return r, err
	}
	var svg bytes.Buffer
	if err := r.SVG(&svg); err != nil {
		return nil, err
	}
	return r, os.WriteFile(v.plots, svg.Bytes(), 0o644)
}

func (r *verified) count(x evidence.Claim) *counted {
	if x.Merge {
		return &r.Merges
	}
	return &r.Segments
}

// incomplete says that a lease stopped early. The reason may be a stranger's words.
func (r *verified) incomplete() string {
	return fmt.Sprintf("STOPPED EARLY: %d of %d rounds were done (%.200q); this is not all that was ordered.", r.Rounds.Merged, r.Rounds.Ordered, r.Reason)
}

func (r *verified) tell(w io.Writer) {
	switch {
	case r.Anchored && r.Segments.Executed == 0:
		fmt.Fprintf(w, "%s shows that its chain settled %s; no segment was executed again\n", r.Bundle, r.what)
	case r.Anchored:
		fmt.Fprintf(w, "%s proves %s\n", r.Bundle, r.what)
	default:
		fmt.Fprintf(w, "%s is consistent about %s, and proves nothing\n", r.Bundle, r.what)
	}
	fmt.Fprintf(w, "  executed  %d of %d segments, %d of %d merges, in %.1f s\n", r.Segments.Executed, r.Segments.All, r.Merges.Executed, r.Merges.All, r.Seconds)
	if r.Unscored != "" {
		fmt.Fprintf(w, "  held out  not scored here: %s\n", r.Unscored)
	}
	if len(r.Metrics) > 0 {
		fmt.Fprintf(w, "  held out  %s, after round %d of %d\n", r.Metrics, r.Round, r.Rounds.Merged)
	}
	rate(w, &r.Rating)
	if r.Parent != "" {
		fmt.Fprintf(w, "  continues %v\n            The bundle of that order proves what came before.\n", r.Continued)
	}
	if r.Unjudged != "" {
		fmt.Fprintf(w, "  plausible cannot tell: %s\n", r.Unjudged)
	}
	if r.Plausibility != nil {
		r.Plausibility.Tell(w)
	}
	fmt.Fprintf(w, "  trust     validator set %s, from %s\n", r.Trust, cmp.Or(r.TrustFrom, "the bundle itself: not anchored"))
}

// trusted returns what the user trusts: the set that a flag or a variable names, or else what the home knows.
func (v *verifier) trusted() (*evidence.Roots, error) {
	text, by := v.trust, "--trust"
	if text == "" {
		text, by = os.Getenv(trustVariable), trustVariable
	}
	return evidence.NewRoots(v.e.home, text, by, light.Progress(v.e.err))
}
