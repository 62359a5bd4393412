// Command democheck checks what two runs of the demo report: one in which
// everybody is honest, and one with a cheater. It checks the files they made,
// too.
//
//	democheck TALLY HONEST.json CHEATED.json
//
// TALLY is the program that made them.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// report is what tally demo --json prints.
type report struct {
	Order        string            `json:"order"`
	Status       string            `json:"status"`
	Steps        int               `json:"steps"`
	Units        int               `json:"units"`
	LossFirst    float64           `json:"loss_first"`
	LossLast     float64           `json:"loss_last"`
	HeldOutFirst float64           `json:"heldout_loss_first"`
	HeldOutLast  float64           `json:"heldout_loss_last"`
	Price        uint64            `json:"price_utally"`
	Deposit      uint64            `json:"deposit_utally"`
	Paid         map[string]uint64 `json:"paid"`
	Refund       uint64            `json:"refund_utally"`
	Burnt        uint64            `json:"burnt_utally"`
	Slashed      uint64            `json:"slashed_utally"`
	SlashPaid    map[string]uint64 `json:"slash_paid"`
	EscrowLeft   *uint64           `json:"escrow_left_utally"`
	Audits       struct {
		Drawn, Passed, Failed int
	} `json:"audits"`
	Dispute *struct {
		Provider string `json:"provider"`
		Op       string `json:"op"`
		Fold     int    `json:"fold"`
		Moves    int    `json:"moves"`
		Loser    string `json:"loser"`
	} `json:"dispute"`
	FinalRoot   string  `json:"final_root"`
	TrustRoot   string  `json:"trust_root"`
	Bundle      string  `json:"bundle"`
	Safetensors string  `json:"safetensors"`
	ONNX        string  `json:"onnx"`
	SupplyOK    bool    `json:"supply_ok"`
	Seconds     float64 `json:"seconds"`
}

// Bounds that a demo keeps.
const (
	maxHeldOut    = 3.0 // nats per character
	maxMoves      = 40
	refusalWithin = 2 * time.Second
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: democheck TALLY HONEST.json CHEATED.json")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(tally, honestFile, cheatedFile string) error {
	honest, err := read(honestFile)
	if err != nil {
		return err
	}
	cheated, err := read(cheatedFile)
	if err != nil {
		return err
	}
	for _, r := range []*report{honest, cheated} {
		if err := filesOf(tally, r); err != nil {
			return fmt.Errorf("files of order %.8s: %w", r.Order, err)
		}
	}
	err = errors.Join(
		problems("honest run", append(faults(honest), honestFaults(honest)...)),
		problems("run with a cheater", append(faults(cheated), cheatedFaults(cheated)...)),
	)
	if honest.FinalRoot != cheated.FinalRoot {
		err = errors.Join(err, fmt.Errorf("final roots differ: %s without a cheater, %s with one", honest.FinalRoot, cheated.FinalRoot))
	}
	if err != nil {
		return err
	}
	fmt.Printf("demo: %d units, held-out loss %.3f → %.3f, root %.8s with and without a cheater, who lost after %d moves; %.0f s and %.0f s\n",
		cheated.Units, cheated.HeldOutFirst, cheated.HeldOutLast, cheated.FinalRoot, cheated.Dispute.Moves, honest.Seconds, cheated.Seconds)
	return nil
}

// read returns the report in a file, which must hold one JSON value and nothing
// else.
func read(file string) (*report, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &report{}
	d := json.NewDecoder(f)
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s goes on after the JSON value", file)
	}
	return r, nil
}

// faults returns what is wrong with a report of any run.
func faults(r *report) (out []string) {
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	bad(r.Status != "settled", "status is %q", r.Status)
	bad(r.Units == 0 || r.Steps < r.Units, "%d steps in %d units", r.Steps, r.Units)
	bad(!(r.LossLast < r.LossFirst), "loss did not fall: %v → %v", r.LossFirst, r.LossLast)
	bad(!(r.HeldOutLast < r.HeldOutFirst), "held-out loss did not fall: %v → %v", r.HeldOutFirst, r.HeldOutLast)
	bad(!(r.HeldOutLast < maxHeldOut), "held-out loss %v is not below %v", r.HeldOutLast, maxHeldOut)
	bad(sum(r.Paid)+r.Refund+r.Burnt != r.Price+r.Deposit, "paid %d + refund %d + burnt %d is not the price %d and the deposit %d", sum(r.Paid), r.Refund, r.Burnt, r.Price, r.Deposit)
	bad(len(r.Paid) == 0, "nobody was paid")
	bad(r.Burnt == 0, "nothing was burnt")
	bad(sum(r.SlashPaid) != r.Slashed, "%d of %d slashed went somewhere", sum(r.SlashPaid), r.Slashed)
	bad(r.EscrowLeft == nil || *r.EscrowLeft != 0, "escrow_left_utally is missing or not 0")
	bad(r.Audits.Drawn == 0 || r.Audits.Passed == 0, "audits: %+v", r.Audits)
	bad(!r.SupplyOK, "a ledger does not add up")
	bad(len(r.FinalRoot) != 64, "final root %q", r.FinalRoot)
	return out
}

func honestFaults(r *report) (out []string) {
	if r.Dispute != nil {
		out = append(out, "there was a dispute")
	}
	if r.Slashed != 0 || r.Audits.Failed != 0 {
		out = append(out, fmt.Sprintf("%d utally slashed, %d audits failed", r.Slashed, r.Audits.Failed))
	}
	return out
}

func cheatedFaults(r *report) (out []string) {
	d := r.Dispute
	if d == nil {
		return []string{"no dispute"}
	}
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	bad(d.Loser == "" || d.Loser != d.Provider, "the loser is %q, not the provider %q", d.Loser, d.Provider)
	bad(d.Op != "MatMul" || d.Fold < 1, "the search ended at %s, fold block %d; the lie is in a MatMul, past the first", d.Op, d.Fold)
	bad(d.Moves < 1 || d.Moves > maxMoves, "%d moves", d.Moves)
	bad(r.Slashed == 0, "nobody was slashed")
	return out
}

func problems(name string, list []string) error {
	if len(list) == 0 {
		return nil
	}
	text := name + ":"
	for _, p := range list {
		text += "\n  " + p
	}
	return errors.New(text)
}

func sum(shares map[string]uint64) (n uint64) {
	for _, a := range slices.Sorted(maps.Keys(shares)) {
		n += shares[a]
	}
	return n
}

// filesOf checks that the bundle is accepted, and refused after a bit of it
// has flipped.
func filesOf(tally string, r *report) error {
	for _, f := range []string{r.Safetensors, r.ONNX} {
		s, err := os.Stat(f)
		if err != nil {
			return err
		}
		if s.Size() == 0 {
			return fmt.Errorf("%s is empty", f)
		}
	}
	if out, err := verify(tally, r.Bundle, r.TrustRoot); err != nil {
		return fmt.Errorf("%s is refused: %w\n%s", r.Bundle, err, out)
	}
	content, err := os.ReadFile(r.Bundle)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "democheck")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	damaged := filepath.Join(dir, "damaged.bundle")
	for _, at := range []int{0, 9, len(content) / 3, len(content) / 2, len(content) - 1} {
		b := bytes.Clone(content)
		b[at] ^= 1 << (at % 8)
		if err := os.WriteFile(damaged, b, 0o600); err != nil {
			return err
		}
		begun := time.Now()
		if err := refused(tally, damaged, r.TrustRoot); err != nil {
			return fmt.Errorf("a bit flipped in byte %d of %d: %w", at, len(content), err)
		}
		if took := time.Since(begun); took > refusalWithin {
			return fmt.Errorf("a bit flipped in byte %d of %d: refused after %v only", at, len(content), took)
		}
	}
	if err := refused(tally, r.Bundle, strings.Repeat("5a", 32)); err != nil {
		return fmt.Errorf("another chain's trust root: %w", err)
	}
	return nil
}

// refused fails unless the program refuses a bundle.
func refused(tally, bundle, trust string) error {
	out, err := verify(tally, bundle, trust)
	if err == nil {
		return errors.New("the bundle is accepted")
	}
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

func verify(tally, bundle, trust string) ([]byte, error) {
	return exec.Command(tally, "verify", bundle, "--trust", trust, "--json").CombinedOutput()
}
