package adversary

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Where everybody is honest, or hostile people only lie, are silent or withhold what
// they have, honest people lose nothing and all ends well.
func TestHonestPeopleLoseNothing(t *testing.T) {
	all := newWorlds(t)
	blocks := []Block{{Wait: 2000, Times: 200}}
	for name, hostile := range map[string]map[string]Habit{
		"nobody":               {},
		"a liar":               {"p0": {Lie: true}},
		"a blind auditor":      {"v2": {Lie: true}},
		"a silent provider":    {"p0": {Skip: []string{"*"}}},
		"a silent lead":        {"v0": {Skip: []string{"*"}}},
		"a provider withholds": {"p1": {Withhold: true}},
	} {
		for kind, w := range all {
			t.Run(fmt.Sprintf("%s/%s", kind, name), func(t *testing.T) {
				f, n := w.Play(Script{World: kind, Orders: []string{"consumer", "buyer"}, Hostile: hostile, Blocks: blocks})
				if f != nil {
					t.Fatal(f)
				}
				if n < 50 {
					t.Fatalf("only %d messages", n)
				}
			})
		}
	}
}

// Scripts that once showed something show nothing any more.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 && os.Getenv("TALLY_SCRIPT") == "" {
		t.Skip("no script is kept yet; TALLY_SCRIPT=FILE plays one")
	}
	all := newWorlds(t)
	if file := os.Getenv("TALLY_SCRIPT"); file != "" { // one, with all that happens in it
		files = []string{file}
		for _, w := range all {
			w.Trace = t.Logf
		}
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			if f, _ := all[s.World].Play(s); f != nil {
				t.Fatalf("%v\nit was found when this showed: %s", f, s.Found)
			}
		})
	}
}

// A short search: make adversary goes on for longer.
func TestAdversary(t *testing.T) {
	seeds, limit := 16, time.Duration(0)
	if text := os.Getenv("TALLY_ADVERSARY"); text != "" {
		var err error
		if limit, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	first, _ := strconv.ParseUint(os.Getenv("TALLY_SEED"), 10, 64)
	all := newWorlds(t)
	for _, w := range all {
		w.Costs = limit > 0
	}
	begun, txs, seed := time.Now(), 0, first
	seen := map[string]bool{}
	for ; seed < first+uint64(seeds) || time.Since(begun) < limit; seed++ {
		w := all.of(seed)
		f, n := w.Attack(seed)
		if txs += n; f == nil || seen[Class(f)] {
			continue
		}
		seen[Class(f)] = true
		at := time.Since(begun)
		t.Logf("seed %d, %.1f s, %d messages: %v", seed, at.Seconds(), txs, f)
		s := w.Shrink(f)
		t.Logf("%d messages of hostile people are left:\n%s", s.Size(), s.Text())
		if dir := os.Getenv("TALLY_SCRIPTS"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-%s.json", seed, f.Kind)), s.Text(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Errorf("seed %d: %v", seed, f)
	}
	if limit == 0 && first == 0 { // what these histories are for
		for _, what := range missing(all) {
			t.Errorf("no history has %s", what)
		}
	}
	t.Logf("%d histories of %d messages in %.1f s: %.0f a second", seed-first, txs, time.Since(begun).Seconds(), float64(txs)/time.Since(begun).Seconds())
}
