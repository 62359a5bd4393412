package cli

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/bench"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/node/evidence"
	"github.com/tally-network/tally/node/light"
)

// Who is shown a proof of one round of eight must see that first.
func TestVerifyTellsOfStoppedOrders(t *testing.T) {
	b, err := bench.Stopped(t.Context(), "declined: \x1b[2Jall is well")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "proof.bundle")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, out, errOut := run("verify", file, "--full")
	_, rest, _ := strings.Cut(out, "\n") // the first line is about trust
	if strings.Count(out, "STOPPED EARLY: 1 of 8 rounds") != 1 || strings.Index(rest, "STOPPED EARLY") > strings.Index(rest, "executed") || strings.Contains(out, "\x1b") {
		t.Errorf("%s%s", out, errOut)
	}
	_, out, _ = run("verify", file, "--json")
	var r verified
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Complete || r.Rounds != (rounds{1, 8}) || !strings.HasPrefix(r.Reason, "declined") {
		t.Errorf("%+v", r)
	}
	whole, _, err := bench.SelfMade(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, out, _ := run("verify", file); strings.Contains(out, "STOPPED") {
		t.Error(out)
	}
}

// TestSelfMadeChainIsNotAnchored verifies a bundle that holds in every way, of a
// chain that its maker invented, with a trust.json beside it that says so.
func TestSelfMadeChainIsNotAnchored(t *testing.T) {
	dir := t.TempDir()
	b, signers, err := bench.SelfMade(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "proof.bundle")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := evidence.WriteTrust(dir, "forged", signers); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	code, out, errOut := run("verify", file, "--home", home)
	if code != exitUnanchored || !strings.HasPrefix(out, "NOT ANCHORED: ") || strings.Contains(out, "proves the model") || !strings.Contains(errOut, "--trust HASH") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	tell := func(args ...string) (code int, r verified) {
		code, out, _ := run(append([]string{"verify", file, "--home", home, "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return code, r
	}
	_, r := tell()
	if code, r := tell(); code != exitUnanchored || r.Anchored || r.Verified || r.Trust != signers.String() {
		t.Errorf("exit %d, %+v", code, r)
	}
	if code, r := tell("--trust", signers.String()); code != 0 || !r.Anchored || !r.Verified {
		t.Errorf("by its hash: exit %d, %+v", code, r)
	}
	if code, r := tell("--trust", filepath.Join(dir, "trust.json")); code != 0 || !r.Anchored {
		t.Errorf("by a file that was named: exit %d, %+v", code, r)
	}
	if err := evidence.Remember(home, signers); err != nil {
		t.Fatal(err)
	}
	if code, r := tell(); code != 0 || !r.Anchored || !r.Verified || r.TrustFrom != home {
		t.Errorf("seen by the home's node: exit %d, %+v", code, r)
	}
	pins := filepath.Join(dir, "pins")
	pin := light.TrustedBlock{Chain: r.Chain, Height: 1 << 20, Header: canon.Sum("header"), Validators: canon.Hash(signers), NextValidators: canon.Sum("next"), Time: time.Now()}
	if err := light.Pin(pins, pin); err != nil {
		t.Fatal(err)
	}
	if code, r := tell("--home", pins); code != 0 || !r.Anchored || !strings.Contains(r.TrustFrom, "pinned in "+pins) {
		t.Errorf("signed by the set of a pinned block: exit %d, %+v", code, r)
	}
	pin.Time = pin.Time.Add(-light.TrustingPeriod)
	if err := light.Pin(pins, pin); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := run("verify", file, "--home", pins); code != exitUnanchored || !strings.HasPrefix(out, "NOT ANCHORED: ") {
		t.Errorf("pinned too long ago: exit %d, %s", code, out)
	}
	if code, _, errOut := run("verify", file, "--home", pins, "--refresh"); code != exitFailed || !strings.Contains(errOut, "there is no node to ask") {
		t.Errorf("nobody to ask: exit %d, %s", code, errOut)
	}
	_, out, _ = run("verify", file, "--home", home, "--segments", "0")
	if strings.Contains(out, "proves") || !strings.Contains(out, "no segment was executed again") {
		t.Errorf("nothing was executed: %s", out)
	}
	code, _, errOut = run("verify", file, "--trust", strings.Repeat("0", 64))
	if code != exitFailed || !strings.Contains(errOut, "signed by validator set") {
		t.Errorf("another set: exit %d, %s", code, errOut)
	}
}

// A machine with too little memory was told in the words of a forgery, and few checkpoints
// kept the verdict from who asked for plausibility.
func TestVerifyTellsWhatItCannot(t *testing.T) {
	b, _, err := bench.SelfMade(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "proof.bundle")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	v := verifier{e: &env{home: t.TempDir(), out: io.Discard, err: io.Discard}, name: file} // its program fits into the one MB that --memory-mb takes
	err = v.run(t.Context())
	if !errors.Is(err, evidence.ErrUnchecked) || strings.Contains(err.Error(), "proves nothing") || !strings.Contains(hint(err, false), "--memory-mb") {
		t.Errorf("%v", err)
	}
	code, out, errOut := run("verify", file, "--plausibility")
	if code != exitUnanchored || !strings.Contains(out, "plausible cannot tell") || !strings.Contains(out, "executed") {
		t.Errorf("exit %d: %s%s", code, out, errOut)
	}
}
