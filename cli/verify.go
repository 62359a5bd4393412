package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/node/evidence"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/plausibility"
)

// trustVariable names the trust root where --trust does not.
const trustVariable = "TALLY_TRUST"

// verified is what tally verify tells.
type verified struct {
	Bundle    string   `json:"bundle"`
	Order     string   `json:"order"`
	Chain     string   `json:"chain"`
	Trust     string   `json:"trust_root"`
	TrustFrom string   `json:"trust_from"`
	Parent    string   `json:"parent,omitempty"` // settled order that this one continues
	FinalRoot string   `json:"final_root"`
	Verified  bool     `json:"verified"`
	Segments  counted  `json:"segments"`
	Merges    counted  `json:"merges"`
	Executed  []string `json:"executed"`
	Seconds   float64  `json:"seconds"`

	Plausibility *plausibility.Report `json:"plausibility,omitempty"`
}

// counted says how many of all were executed.
type counted struct {
	Executed int `json:"executed"`
	All      int `json:"all"`
}

func (e *env) verify() *cobra.Command {
	v := verifier{segments: 4}
	cmd := &cobra.Command{
		Use: "verify BUNDLE", GroupID: "orders",
		Short: "Check a proof of training, without a network",
		Long: `Checks a proof bundle. First every hash and signature: that validators whom you
trust signed the settlement, that the record is the settled one, that order and
receipts are signed, and that every state has the root that was claimed. Then it
executes some segments and a merge again, picked at random, or with --full
everything that the trained model rests on.

--plausibility also looks at the checkpoints with the six rules of proof of
training, and --plots draws them. That is a filter for people, never evidence:
invented checkpoints can pass all six.

Trust is in a validator set, by its hash: --trust names it, or TALLY_TRUST, or
else the file trust.json beside the bundle, which is as good as the place it came
from.`,
		Example: `  tally verify proof.bundle --trust 5B1F…
  tally verify proof.bundle --full --json
  tally verify proof.bundle --plausibility --plots training.svg`,
		Args: arguments("verify BUNDLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			v.e, v.name = e, args[0]
			return v.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&v.full, "full", false, "execute everything again")
	f.Var(within(&v.segments, 0, 1_000_000), "segments", "segments to execute again")
	f.BoolVar(&v.plausible, "plausibility", false, "judge the checkpoints by the six rules of proof of training")
	f.StringVar(&v.plots, "plots", "", "SVG file to draw loss, distances and changes in")
	f.StringVar(&v.trust, "trust", "", "validator set to trust: its hash, of 64 digits, or else a file that notes it")
	f.Var(within(&v.threads, 0, home.MaxThreads), "threads", "threads that compute (default one per processor)")
	return cmd
}

type verifier struct {
	e        *env
	name     string // of the bundle
	full     bool
	segments int
	trust    string
	threads  int

	plausible bool
	plots     string // SVG file
}

func (v *verifier) run(ctx context.Context) error {
	begun := time.Now()
	trust, from, err := v.trusted()
	if err != nil {
		return err
	}
	file, size, err := openFile(v.name)
	if err != nil {
		return err
	}
	defer file.Close()
	p, err := evidence.Check(file, size, trust, cpu.New(v.threads))
	if err != nil {
		return err
	}
	tell := v.e.progress()
	l := p.Lease
	fmt.Fprintf(tell, "order %s on %s, settled: all hashes and signatures hold\n", l.Order.ID().Short(), p.Chain)
	r := verified{
		Bundle: v.name, Order: l.Order.ID().String(), Chain: p.Chain, Trust: trust.String(), TrustFrom: from, Parent: given(l.Order.Problem.Parent), FinalRoot: l.FinalRoot().String(),
		Executed: []string{},
	}
	pieces := p.Pieces()
	for _, x := range pieces {
		r.count(x).All++
	}
	if !v.full {
		pieces = p.Draw(v.segments)
	}
	told := begun
	for i, x := range pieces {
		if err := p.Execute(ctx, x); err != nil {
			return err
		}
		r.count(x).Executed++
		r.Executed = append(r.Executed, x.String())
		if last := i == len(pieces)-1; last || time.Since(told) > pause {
			told = time.Now()
			fmt.Fprintf(tell, "%d of %d executed again, the last %v: equal\n", i+1, len(pieces), x)
		}
	}
	if r.Plausibility, err = v.judge(ctx, p); err != nil {
		return err
	}
	r.Verified, r.Seconds = true, float64(time.Since(begun).Milliseconds())/1000
	return v.e.show(r, func(w io.Writer) { r.tell(w) })
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
	r, err := p.Plausibility(ctx, cpu.New(v.threads))
	if err != nil || v.plots == "" {
		return r, err
	}
	var svg bytes.Buffer
	if err := r.SVG(&svg); err != nil {
		return nil, err
	}
	return r, os.WriteFile(v.plots, svg.Bytes(), 0o644)
}

func (r *verified) count(x evidence.Piece) *counted {
	if x.Merge {
		return &r.Merges
	}
	return &r.Segments
}

func (r *verified) tell(w io.Writer) {
	fmt.Fprintf(w, "%s proves the model with state %s\n", r.Bundle, r.FinalRoot)
	fmt.Fprintf(w, "  executed  %d of %d segments, %d of %d merges, in %.1f s\n", r.Segments.Executed, r.Segments.All, r.Merges.Executed, r.Merges.All, r.Seconds)
	if r.Parent != "" {
		fmt.Fprintf(w, "  continues order %s, whose bundle proves what came before\n", r.Parent)
	}
	if r.Plausibility != nil {
		r.Plausibility.Tell(w)
	}
	fmt.Fprintf(w, "  trust     validator set %s, from %s\n", r.Trust, r.TrustFrom)
}

// trusted returns the trust root and where it was named.
func (v *verifier) trusted() (t evidence.Trust, from string, err error) {
	text, from := v.trust, "--trust"
	if text == "" {
		text, from = os.Getenv(trustVariable), trustVariable
	}
	if text == "" {
		file := evidence.TrustBeside(v.name)
		if t, err = evidence.ReadTrust(file); errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("no trust root: %s is missing", file)
		}
		return t, file, err
	}
	if _, err := canon.ParseHash(text); err == nil { // never a file, whatever lies here
		t, err = evidence.ParseTrust(text)
		return t, from, err
	}
	if t, err = evidence.ReadTrust(text); errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("trust root %.80q is neither a hash of 64 hexadecimal digits nor a file", text)
	}
	return t, text, err
}
