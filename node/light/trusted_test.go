package light_test

import (
	cmttypes "github.com/cometbft/cometbft/types"

	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/internal/testkit/headers"
	"github.com/tally-network/tally/node/light"
)

func TestTrustedBlocks(t *testing.T) {
	home := t.TempDir()
	if _, err := light.Pinned(home, "tally-1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a home that pins nothing: %v", err)
	}
	if all, err := light.List(home); len(all) != 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	one, two := light.FromLightBlock(headers.New("tally-1", 4, 1, begin).Block(99)), light.FromLightBlock(headers.New("a.b_c-2", 4, 1, begin).Block(7))
	if one.NextValidators == one.Validators {
		t.Error("the set changes after block 99, and the trusted block does not say so")
	}
	for _, c := range []light.TrustedBlock{one, two, one} {
		if err := light.Pin(home, c); err != nil {
			t.Fatal(err)
		}
		if got, err := light.Pinned(home, c.Chain); err != nil || got != c {
			t.Errorf("%v, %v", got, err)
		}
	}
	if all, err := light.List(home); err != nil || len(all) != 2 || all[0] != two || all[1] != one {
		t.Errorf("%v, %v", all, err)
	}
	if err := one.CheckAge(begin.Add(15 * time.Hour)); err != nil {
		t.Error(err)
	}
	if err := one.CheckAge(begin.Add(17 * time.Hour)); !errors.Is(err, light.ErrExpired) || !strings.Contains(err.Error(), "tally trust pin") {
		t.Errorf("%v", err)
	}
}

// A file that somebody gave is read as a trusted block, or refused with what to do.
func TestFilesThatAreNoTrustedBlocks(t *testing.T) {
	good := light.FromLightBlock(headers.New("tally-1", 4, 1, begin).Block(7))
	b, err := json.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "block.json")
	read := func(text string) error {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := light.Read(file)
		return err
	}
	if err := read(string(b)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{"tally-1", "../tally-1"}, {"tally-1", ""}, {"tally-1", strings.Repeat("x", 51)}, {`"height":7`, `"height":0`}, {good.Header.String(), strings.Repeat("0", 64)},
		{good.Validators.String(), "ab"}, {"2030-01-01", "0001-01-01T00:00:00Z"}, {"{", "["}, {`"chain"`, `"chains"`}, {"}", strings.Repeat(" ", 5000) + "}"}, {"}", "}{}"}, {"}", "}\x1b"},
	} {
		if err := read(strings.ReplaceAll(string(b), change[0], change[1])); err == nil || len(err.Error()) > 400 {
			t.Errorf("%q for %q: %v", change[1], change[0], err)
		}
	}
	abroad := strings.Replace(string(b), "2030-01-01T00:00:42Z", "2030-01-01T02:00:42+02:00", 1)
	if err := read(abroad); err != nil || abroad == string(b) {
		t.Fatal(err)
	}
	if got, err := light.Read(file); err != nil || got != good {
		t.Errorf("the same moment elsewhere: %v, %v", got, err)
	}
	for _, chain := range []string{"", "..", "../x", "a/b", `a\b`, strings.Repeat("x", 51)} {
		if _, err := light.Pinned(filepath.Dir(file), chain); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("chain %q: %v", chain, err)
		}
		if err := light.Pin(filepath.Dir(file), light.TrustedBlock{Chain: chain}); err == nil {
			t.Errorf("chain %q is pinned", chain)
		}
	}
}

// pinsForEver names the home in which a process of this test pins until it is killed.
const pinsForEver = "TALLY_TEST_PINS"

// Whoever is killed while it pins leaves one trusted block or the other.
func TestKilledWhilePinning(t *testing.T) {
	c := headers.New("tally-1", 4, 1, begin)
	all := [2]light.TrustedBlock{light.FromLightBlock(c.Block(1)), light.FromLightBlock(c.Block(2))}
	if home := os.Getenv(pinsForEver); home != "" {
		for i := 0; ; i++ {
			if err := light.Pin(home, all[i%2]); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				_, _ = os.Stdout.WriteString("pinned\n")
			}
		}
	}
	home := t.TempDir()
	for i := range 8 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhilePinning$")
		cmd.Env = append(os.Environ(), pinsForEver+"="+home)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, err = bufio.NewReader(out).ReadString('\n')
		time.Sleep(time.Duration(i) * time.Millisecond) // somewhere in the middle
		if err := errors.Join(err, cmd.Process.Kill()); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		got, err := light.Pinned(home, "tally-1")
		if err != nil || got != all[0] && got != all[1] {
			t.Fatalf("%v, %v", got, err)
		}
		if list, err := light.List(home); err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
	}
}

// Evidence of two signatures still counts when nobody trusts the block any more.
func TestEvidenceOutlivesTrust(t *testing.T) {
	if age := cmttypes.DefaultEvidenceParams().MaxAgeDuration; age < 2*light.TrustingPeriod {
		t.Errorf("evidence counts for %s, and a block is trusted for %s", age, light.TrustingPeriod)
	}
}
