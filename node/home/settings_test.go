package home

import (
	"bytes"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/node/states"
)

func full(t testing.TB) Settings {
	t.Helper()
	snapshots := uint64(0) // none, which is not the default
	s := Settings{
		Role: Validator, Name: "v", Chain: "c", Metrics: "127.0.0.1:0", Threads: 2, StoreGB: 3, Checkpoints: states.KeepAll, KeepEnded: time.Hour, MemoryGB: 5, Stake: 4,
		Validator: &ValidatorSettings{
			FeeBps: 5, MaxLeases: 6, Peers: []string{"a@127.0.0.1:7"}, Origins: []string{"https://a.example"},
			CommitTimeout: time.Second, EmptyInterval: time.Minute, KeepBlocks: 7, KeepStates: 8, SnapshotInterval: &snapshots,
		},
	}
	if err := s.complete("v"); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSettingsComeBack(t *testing.T) {
	provider := Settings{Role: Provider, Name: "p", Chain: "c", Node: node, Provider: &ProviderSettings{UnitPrice: 3, BytePrice: 4}}
	if err := provider.complete("p"); err != nil {
		t.Fatal(err)
	}
	for _, s := range []Settings{full(t), provider} {
		text, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseSettings(text)
		if err != nil {
			t.Fatal(err)
		}
		// No list is an empty list in YAML.
		if s.Announce = []string{}; !reflect.DeepEqual(back, s) {
			t.Fatalf("%+v\nbecame\n%+v", s, back)
		}
	}
}

// Whoever opens the file must see what each key means.
func TestEveryKeyIsExplained(t *testing.T) {
	var check func(t reflect.Type)
	check = func(of reflect.Type) {
		for i := range of.NumField() {
			f := of.Field(i)
			if f.Tag.Get("yaml") == "" || len(f.Tag.Get("doc")) < 10 {
				t.Errorf("%s.%s: no key or no comment", of.Name(), f.Name)
			}
			if f.Type.Kind() == reflect.Pointer {
				f.Type = f.Type.Elem()
			}
			if f.Type.Kind() == reflect.Struct {
				check(f.Type)
			}
		}
	}
	check(reflect.TypeFor[Settings]())
	s := full(t)
	text, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Id of the chain.\nchain: c\n", "  # Pause after a block. The same for all validators.\n  commit_timeout: 1s\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestSettingsRefuse(t *testing.T) {
	s := full(t)
	good, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, words string }{
		{"role: validator", "role: king", `"king" is none of`},
		{"role: validator", "role: provider", "provider: a provider has these"},
		{"role: validator", "rule: validator", `unknown key "rule"`},
		{"chain: c", "chain: c\nchain: d", "already defined"},
		{"chain: c", `chain: ""`, "chain"},
		{"name: v", "name: ../x", "name"},
		{"threads: 2", "threads: many", "line"},
		{"threads: 2", "threads: -1", "threads: -1"},
		{"threads: 2", "threads: 1e9", "threads"},
		{"store_gb: 3", "store_gb: 0", "store_gb"},
		{"checkpoints: keep", "checkpoints: some", "none of [keep thin derive]"},
		{"checkpoints: keep", "checkpoints: thin", "a validator keeps all"},
		{"keep_ended: 1h0m0s", "keep_ended: -1h", "not between 0 and"},
		{"keep_blocks: 7", "keep_blocks: 9999999999999", "at most"},
		{"memory_gb: 5", "memory_gb: -1", "memory_gb"},
		{"stake: 4", "stake: -4", "line"},
		{"stake: 4", "stake: lots", `stake: "lots" is not a whole number from 0 on`},
		{"fee_bps: 5", "fee_bps: 10001", "fee_bps"},
		{"max_leases: 6", "max_leases: 0", "max_leases"},
		{"metrics: 127.0.0.1:0", "metrics: here", "metrics"},
		{"commit_timeout: 1s", "commit_timeout: -1s", "negative"},
		{"commit_timeout: 1s", "commit_timeout: soon", "soon"},
		{"listen:", "listen: [tcp]\nlisten2:", `unknown key "listen2"`},
		{"listen:\n", "listen:\n  - /ip4/0.0.0.0/tcp/4001\n", "announce"},
		{"listen:\n", "listen:\n  - here\n", "listen"},
		{"name: v", "name: v\n---", "more follows the end"},
	} {
		if !strings.Contains(string(good), c.old) {
			t.Fatalf("nothing to replace: %s", c.old)
		}
		_, err := ParseSettings([]byte(strings.Replace(string(good), c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", c.new, err)
		}
	}
	for _, text := range []string{"", "# nothing\n", "[]", strings.Repeat("#", maxSettings+1)} {
		if _, err := ParseSettings([]byte(text)); err == nil {
			t.Errorf("%.20q was taken", text)
		}
	}
}

func TestAddressOfAnotherChain(t *testing.T) {
	s := Settings{Role: Provider, Chain: "c", Node: node, Provider: &ProviderSettings{Validator: "cosmos1qqqq"}}
	if err := s.complete("p"); err == nil || !strings.Contains(err.Error(), "provider.validator") {
		t.Fatal(err)
	}
	s.Provider.Validator = chaintest.Named("v").String()
	if err := s.complete("p"); err != nil {
		t.Fatal(err)
	}
}

func FuzzSettings(f *testing.F) {
	s := full(f)
	text, err := s.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("a: &a [*a, *a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseSettings(text)
		if err != nil {
			return
		}
		once, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseSettings(once)
		if err != nil {
			t.Fatalf("%v\n%s", err, once)
		}
		if twice, err := back.encode(); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%v\n%s\nbecame\n%s", err, once, twice)
		}
	})
}

// A fraction was cut off: half a gigabyte of memory became none, which stands for four.
func TestSettingsAreWholeNumbers(t *testing.T) {
	s := full(t)
	text, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"0.5", "1.9", "1e-4"} {
		bent := regexp.MustCompile(`(?m)^memory_gb: \d+`).ReplaceAll(text, []byte("memory_gb: "+value))
		if bytes.Equal(bent, text) {
			t.Fatalf("no memory_gb in %s", text)
		}
		if _, err := ParseSettings(bent); err == nil || !strings.Contains(err.Error(), value+" is no whole number") {
			t.Errorf("memory_gb: %s: %v", value, err)
		}
	}
}

// Further roles bring their settings with them, and take them along; what cannot be is refused.
func TestFurtherRoles(t *testing.T) {
	s := full(t)
	s.SetAlso([]Role{Provider, Challenger})
	if err := s.Check(); err != nil || s.Provider == nil || s.Provider.UnitPrice != UnitPrice || !s.Is(Challenger) {
		t.Fatalf("%+v: %v", s, err)
	}
	text, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := ParseSettings(text); err != nil || !reflect.DeepEqual(back.Roles(), []Role{Validator, Provider, Challenger}) {
		t.Fatalf("became %v: %v", back.Roles(), err)
	}
	s.SetAlso(nil)
	if err := s.Check(); err != nil || s.Provider != nil || s.Is(Provider) {
		t.Fatalf("%+v: %v", s, err)
	}
	for name, also := range map[string][]Role{
		"validator": {Validator}, "consumer": {Consumer}, "unknown": {"miner"}, "twice": {Provider, Provider},
	} {
		s.SetAlso(also)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), "also") {
			t.Errorf("%s: %v", name, err)
		}
	}
	consumer := Settings{Role: Consumer, Name: "c", Chain: "c", Node: node, Also: []Role{Provider}}
	if err := consumer.complete("c"); err == nil || !strings.Contains(err.Error(), "also") {
		t.Errorf("a consumer that provides: %v", err)
	}
}
