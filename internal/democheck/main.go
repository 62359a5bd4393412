// Command democheck checks what two runs of the demo report: one in which
// everybody is honest, and one with a cheater in each order. It checks the files
// they made, too, and has the trained model reply again.
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
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// outcome is what is told of either order.
type outcome struct {
	Order      string            `json:"order"`
	Status     string            `json:"status"`
	Steps      int               `json:"steps"`
	Units      int               `json:"units"`
	Price      uint64            `json:"price_utally"`
	Deposit    uint64            `json:"deposit_utally"`
	Paid       map[string]uint64 `json:"paid"`
	Refund     uint64            `json:"refund_utally"`
	Burnt      uint64            `json:"burnt_utally"`
	Tax        uint64            `json:"tax_utally"`
	Slashed    uint64            `json:"slashed_utally"`
	SlashPaid  map[string]uint64 `json:"slash_paid"`
	EscrowLeft *uint64           `json:"escrow_left_utally"`
	Audits     struct {
		Drawn, Passed, Failed int
	} `json:"audits"`
	Forced    bool     `json:"forced"` // attempts were, so audits of them failed
	Dispute   *dispute `json:"dispute"`
	FinalRoot string   `json:"final_root"`
	TrustRoot string   `json:"trust_root"`
	Bundle    string   `json:"bundle"`
}

type dispute struct {
	Provider string `json:"provider"`
	Op       string `json:"op"`
	Fold     int    `json:"fold"`
	Moves    int    `json:"moves"`
	Loser    string `json:"loser"`
}

// report is what tally demo --json prints: of the training, and of the batch beside it.
type report struct {
	outcome
	LossFirst    float64 `json:"loss_first"`
	LossLast     float64 `json:"loss_last"`
	HeldOutFirst float64 `json:"heldout_loss_first"`
	HeldOutLast  float64 `json:"heldout_loss_last"`
	Safetensors  string  `json:"safetensors"`
	ONNX         string  `json:"onnx"`
	SupplyOK     bool    `json:"supply_ok"`
	Seconds      float64 `json:"seconds"`
	Batch        score   `json:"batch"`
	Served       *served `json:"served"`
}

// served is what is told of the trained model when it is served.
type served struct {
	Folder  string `json:"folder"`
	Prompt  string `json:"prompt"`
	Reply   string `json:"reply"`
	Seed    uint64 `json:"seed"`
	Tokens  int    `json:"tokens"`
	Price   uint64 `json:"price_utally"`
	Checks  uint64 `json:"check_utally"`
	By      string `json:"by"`
	Checker string `json:"checked_by"`
	Right   bool   `json:"right"`
	Receipt string `json:"receipt"`
}

// score is what is told of the batch.
type score struct {
	outcome
	Outputs map[string]string `json:"outputs"`
	Records int               `json:"records"`
	Loss    float64           `json:"loss"`
	Drilled uint64            `json:"drilled_micro_ut"`
}

// Bounds that a demo keeps.
const (
	maxHeldOut    = 3.0 // nats per character
	maxApart      = 1e-4
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
		problems("run with cheaters", append(faults(cheated), cheatedFaults(cheated)...)),
		sameRoot("training", &honest.outcome, &cheated.outcome),
		sameRoot("batch", &honest.Batch.outcome, &cheated.Batch.outcome),
	)
	if err != nil {
		return err
	}
	fmt.Printf("demo: %d units, held-out loss %.3f → %.3f, root %.8s with and without a cheater, who lost after %d moves; %.0f s and %.0f s\n",
		cheated.Units, cheated.HeldOutFirst, cheated.HeldOutLast, cheated.FinalRoot, cheated.Dispute.Moves, honest.Seconds, cheated.Seconds)
	fmt.Printf("served: %d tokens for %d utally, checked for %d, the same by tally run\n", cheated.Served.Tokens, cheated.Served.Price, cheated.Served.Checks)
	b := &cheated.Batch
	fmt.Printf("batch: %d units, %d records, loss %.3f, root %.8s with and without a cheater, who lost after %d moves\n", b.Units, b.Records, b.Loss, b.FinalRoot, b.Dispute.Moves)
	return nil
}

// sameRoot returns an error unless both runs gave the same.
func sameRoot(of string, honest, cheated *outcome) error {
	if honest.FinalRoot != cheated.FinalRoot {
		return fmt.Errorf("final roots of the %s differ: %s without a cheater, %s with one", of, honest.FinalRoot, cheated.FinalRoot)
	}
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

// complaints collects what is wrong.
type complaints []string

func (c *complaints) add(wrong bool, format string, args ...any) {
	if wrong {
		*c = append(*c, fmt.Sprintf(format, args...))
	}
}

// faults returns what is wrong with a report of any run.
func faults(r *report) (out complaints) {
	out.add(!(r.LossLast < r.LossFirst), "loss did not fall: %v → %v", r.LossFirst, r.LossLast)
	out.add(!(r.HeldOutLast < r.HeldOutFirst), "held-out loss did not fall: %v → %v", r.HeldOutFirst, r.HeldOutLast)
	out.add(!(r.HeldOutLast < maxHeldOut), "held-out loss %v is not below %v", r.HeldOutLast, maxHeldOut)
	out.add(!r.SupplyOK, "a ledger does not add up")
	// Both are of the untrained model on the same text: one by the consumer, one by the network.
	out.add(!(math.Abs(r.Batch.Loss-r.HeldOutFirst) < maxApart), "the batch gave a loss of %v, the consumer found %v", r.Batch.Loss, r.HeldOutFirst)
	out.add(r.Batch.Records == 0, "the batch had no records")
	out.add(r.Batch.Drilled == 0, "nothing of the batch counts as drilling")
	if s := r.Served; s == nil {
		out.add(true, "the trained model was not served")
	} else {
		out.add(!s.Right, "the reply of the trained model is wrong")
		out.add(s.By == "" || s.Checker == "" || s.By == s.Checker, "the reply is by %q and checked by %q", s.By, s.Checker)
		out.add(s.Tokens == 0 || s.Reply == "" || s.Price == 0 || s.Checks == 0, "a reply of %d tokens for %d utally, checked for %d: %q", s.Tokens, s.Price, s.Checks, s.Reply)
	}
	for _, o := range []*outcome{&r.outcome, &r.Batch.outcome} {
		out.add(o.Status != "settled", "status is %q", o.Status)
		out.add(o.Units == 0 || o.Steps < o.Units, "%d steps in %d units", o.Steps, o.Units)
		out.add(sum(o.Paid)+o.Refund+o.Burnt+o.Tax != o.Price+o.Deposit, "paid %d + refund %d + burnt %d + tax %d is not the price %d and the deposit %d", sum(o.Paid), o.Refund, o.Burnt, o.Tax, o.Price, o.Deposit)
		out.add(len(o.Paid) == 0, "nobody was paid")
		out.add(o.Burnt == 0, "nothing was burnt")
		out.add(sum(o.SlashPaid) != o.Slashed, "%d of %d slashed went somewhere", sum(o.SlashPaid), o.Slashed)
		out.add(o.EscrowLeft == nil || *o.EscrowLeft != 0, "escrow_left_utally is missing or not 0")
		out.add(o.Audits.Drawn == 0 || o.Audits.Passed == 0, "audits: %+v", o.Audits)
		out.add(len(o.FinalRoot) != 64, "final root %q", o.FinalRoot)
	}
	return out
}

func honestFaults(r *report) (out complaints) {
	for _, o := range []*outcome{&r.outcome, &r.Batch.outcome} {
		out.add(o.Dispute != nil, "there was a dispute")
		out.add(o.Slashed != 0 || o.Audits.Failed != 0 && !o.Forced, "%d utally slashed, %d audits failed", o.Slashed, o.Audits.Failed)
	}
	return out
}

func cheatedFaults(r *report) (out complaints) {
	for _, o := range []*outcome{&r.outcome, &r.Batch.outcome} {
		d := o.Dispute
		if d == nil {
			out.add(true, "no dispute")
			continue
		}
		out.add(d.Loser == "" || d.Loser != d.Provider, "the loser is %q, not the provider %q", d.Loser, d.Provider)
		out.add(d.Op != "MatMul" || d.Fold < 1, "the search ended at %s, fold block %d; the lie is in a MatMul, past the first", d.Op, d.Fold)
		out.add(d.Moves < 1 || d.Moves > maxMoves, "%d moves", d.Moves)
		out.add(o.Slashed == 0, "nobody was slashed")
	}
	return out
}

func problems(name string, list complaints) error {
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

// filesOf checks what both orders left.
func filesOf(tally string, r *report) error {
	return errors.Join(
		filesOfOrder(tally, &r.outcome, r.Safetensors, r.ONNX),
		filesOfOrder(tally, &r.Batch.outcome, slices.Collect(maps.Values(r.Batch.Outputs))...),
		filesOfReply(tally, r.Served),
	)
}

// filesOfReply checks that the trained model gives its reply again, and that the receipt is of it.
func filesOfReply(tally string, s *served) error {
	if s == nil {
		return nil // faults says so
	}
	out, err := exec.Command(tally, "run", s.Folder, s.Prompt, "--raw", "--seed", strconv.FormatUint(s.Seed, 10), "--max-tokens", strconv.Itoa(s.Tokens), "--json").Output()
	if err != nil {
		return fmt.Errorf("tally run %s: %w", s.Folder, err)
	}
	var again struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(out, &again); err != nil {
		return fmt.Errorf("tally run %s: %w", s.Folder, err)
	}
	if again.Text != s.Reply {
		return fmt.Errorf("the served model gave %q, tally run gives %q", s.Reply, again.Text)
	}
	if out, err := exec.Command(tally, "session", "verify", s.Receipt, "--model", s.Folder).CombinedOutput(); err != nil {
		return fmt.Errorf("%s is refused: %w\n%s", s.Receipt, err, out)
	}
	return nil
}

// filesOfOrder checks that files are there, and that the bundle is accepted, and refused after
// a bit of it has flipped.
func filesOfOrder(tally string, r *outcome, files ...string) error {
	for _, f := range files {
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
