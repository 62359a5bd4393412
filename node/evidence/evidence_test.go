package evidence_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/bundle"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/evidence"
	"github.com/tally-network/tally/node/plausibility"
)

// made is a bundle of an order that a network settled.
type made struct {
	bytes []byte
	trust evidence.Trust
	lease *job.Lease
}

// settled runs a network until it has settled so many orders, and collects
// their bundles.
func settled(t testing.TB, orders int) (out []made) {
	t.Helper()
	n := nettest.Start(t, nettest.Options{})
	for range orders {
		out = append(out, collect(t, n, n.Post(nil)))
	}
	return out
}

// collect waits until an order is settled, and collects its bundle.
func collect(t testing.TB, n *nettest.Network, order canon.Hash) made {
	t.Helper()
	l := n.Lease(order, "settlement", func(l *job.Lease) bool { return l.Phase == job.Settled })
	name := filepath.Join(t.TempDir(), "proof.bundle")
	done := 0
	trust, err := evidence.Collect(t.Context(), n.Consumer.Env, l, name, func(now, all int) {
		if now != done+1 || now > all {
			t.Errorf("progress %d of %d after %d", now, all, done)
		}
		done = now
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return made{b, trust, l}
}

// Orders that one home posts together are messages of one transaction. Nobody could check their bundles.
func TestOrdersOfOneTransaction(t *testing.T) {
	n := nettest.Start(t, nettest.Options{})
	var msgs []sdk.Msg
	var ids []canon.Hash
	for range 2 {
		o := n.Order()
		m, err := consume.Message(n.Consumer.Env, &o)
		if err != nil {
			t.Fatal(err)
		}
		msgs, ids = append(msgs, m), append(ids, o.ID())
	}
	if err := n.Consumer.Env.Send(t.Context(), msgs...); err != nil {
		t.Fatal(err)
	}
	n.Serve()
	var txs [][]byte
	for _, id := range ids {
		m := collect(t, n, id)
		p, err := check(m.bytes, m.trust)
		if err != nil || p.Settlement.Order != id {
			t.Fatalf("%v is not proved: %v", id.Short(), err)
		}
		in, err := bundle.Open(bytes.NewReader(m.bytes), int64(len(m.bytes)))
		if err != nil {
			t.Fatal(err)
		}
		tx, err := in.Read("order/tx", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		txs = append(txs, tx)
	}
	if !bytes.Equal(txs[0], txs[1]) {
		t.Fatal("they were posted by two transactions")
	}
}

func check(b []byte, trusted ...evidence.Trust) (*evidence.Proof, error) {
	named := func(t evidence.Trust) bool { return slices.Contains(trusted, t) }
	return evidence.Check(context.Background(), bytes.NewReader(b), int64(len(b)), named, cpu.New(1))
}

// forge writes a bundle anew with other contents; nil takes an entry out.
func forge(t *testing.T, b []byte, change map[string]func([]byte) []byte) []byte {
	t.Helper()
	in, err := bundle.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var contents []bundle.Content
	for _, e := range in.Entries() {
		content, err := in.Read(e.Name, e.Size)
		if err != nil {
			t.Fatal(err)
		}
		if f := change[e.Name]; f != nil {
			content = f(content)
		}
		delete(change, e.Name)
		if content != nil {
			contents = append(contents, bundle.Bytes(e.Name, content))
		}
	}
	for name, f := range change {
		contents = append(contents, bundle.Bytes(name, f(nil)))
	}
	slices.SortFunc(contents, func(a, b bundle.Content) int { return strings.Compare(a.Name, b.Name) })
	var out bytes.Buffer
	if err := bundle.Write(&out, contents); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A bundle that is anchored anew, after another order was settled, proves the same.
func TestRenew(t *testing.T) {
	n := nettest.Start(t, nettest.Options{})
	settle := func() *job.Lease {
		return n.Lease(n.Post(nil), "settlement", func(l *job.Lease) bool { return l.Phase == job.Settled })
	}
	l := settle()
	name := filepath.Join(t.TempDir(), "proof.bundle")
	if _, err := evidence.Collect(t.Context(), n.Consumer.Env, l, name, nil); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	settle()
	trust, err := evidence.Renew(t.Context(), n.Consumer.Env.Chain, name, name, &evidence.Roots{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := check(after, trust)
	if err != nil || p.Settlement.Order != l.Order.ID() {
		t.Fatalf("the renewed bundle: %v", err)
	}
	old, err := bundle.Open(bytes.NewReader(before), int64(len(before)))
	if err != nil {
		t.Fatal(err)
	}
	in, err := bundle.Open(bytes.NewReader(after), int64(len(after)))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range in.Entries() {
		anchor := strings.HasPrefix(e.Name, "anchor/") && e.Name != "anchor/settlement"
		if was := old.Entries()[i]; was.Name != e.Name || (was.Sum == e.Sum) == anchor {
			t.Errorf("%s was %s, the same: %v", e.Name, was.Name, was.Sum == e.Sum)
		}
	}
	// What another chain has not settled, it cannot anchor.
	strange := nettest.Start(t, nettest.Options{})
	strange.Settle(strange.Post(nil))
	if _, err := evidence.Renew(t.Context(), strange.Consumer.Env.Chain, name, name, &evidence.Roots{Named: evidence.Anybody}); err == nil {
		t.Error("another chain anchored the bundle")
	}
	if b, err := os.ReadFile(name); err != nil || !bytes.Equal(b, after) {
		t.Errorf("a renewal that failed changed the bundle: %v", err)
	}
}

// TestBundles shows what a bundle proves, and that no other bundle does.
func TestBundles(t *testing.T) {
	two := settled(t, 2)
	good, other := two[0], two[1]
	strange := settled(t, 1)[0] // of a chain with other validators

	p, err := check(good.bytes, good.trust)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("whole", func(t *testing.T) { whole(t, p, good) })
	t.Run("flipped bits", func(t *testing.T) {
		bad := bytes.Clone(good.bytes)
		for range 200 {
			at, bit := rand.IntN(len(bad)), byte(1)<<rand.IntN(8)
			bad[at] ^= bit
			if _, err := check(bad, good.trust); !errors.Is(err, bundle.ErrDamaged) {
				t.Fatalf("byte %d, bit %08b: %v", at, bit, err)
			}
			bad[at] ^= bit
		}
	})
	t.Run("forged", func(t *testing.T) { forged(t, good, other, strange) })
	t.Run("signatures", func(t *testing.T) { signatures(t, good.lease) })
}

func whole(t *testing.T, p *evidence.Proof, m made) {
	problem := &m.lease.Order.Problem
	claims := p.Claims()
	if want := problem.Units()*problem.Segments() + problem.Rounds; len(claims) != want {
		t.Fatalf("%d claims, want %d", len(claims), want)
	}
	for _, x := range claims {
		if err := p.Execute(t.Context(), x); err != nil {
			t.Error(err)
		}
	}
	final, err := p.Final()
	if err != nil {
		t.Fatal(err)
	}
	if root, err := final.Root(); err != nil || root != m.lease.FinalRoot() {
		t.Errorf("the final state has root %v (%v)", root, err)
	}
	points := 1 + problem.Rounds*problem.Segments() // of the first shard
	report, err := p.Plausibility(t.Context(), cpu.New(1))
	if points < plausibility.Least {
		if err == nil || !strings.Contains(err.Error(), "too few") {
			t.Errorf("%d checkpoints were judged: %v", points, err)
		}
	} else if err != nil || len(report.Steps) != points || len(report.Rules) != 6 {
		t.Errorf("%d checkpoints: %+v, %v", points, report, err)
	}
	drawn := map[evidence.Claim]bool{}
	for range 64 {
		some := p.Draw(2)
		if len(some) != 3 || some[0].Merge || some[1].Merge || !some[2].Merge || some[0] == some[1] {
			t.Fatalf("drawn: %v", some)
		}
		for _, x := range some {
			drawn[x] = true
		}
	}
	if len(drawn) != len(claims) {
		t.Errorf("%d of %d claims were ever drawn", len(drawn), len(claims))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Execute(ctx, claims[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func forged(t *testing.T, good, other, strange made) {
	entry := func(m made, name string) func([]byte) []byte {
		in, err := bundle.Open(bytes.NewReader(m.bytes), int64(len(m.bytes)))
		if err != nil {
			t.Fatal(err)
		}
		b, err := in.Read(name, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		return func([]byte) []byte { return b }
	}
	flip := func(b []byte) []byte {
		b = bytes.Clone(b)
		b[len(b)/2] ^= 1
		return b
	}
	longer := func(b []byte) []byte { return append(bytes.Clone(b), 0) }
	gone := func([]byte) []byte { return nil }
	state := "state/" + good.lease.FinalRoot().String()
	type changes = map[string]func([]byte) []byte
	all := changes{} // the other order's whole bundle, but for the anchor
	in, err := bundle.Open(bytes.NewReader(other.bytes), int64(len(other.bytes)))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range in.Entries() {
		if !strings.HasPrefix(e.Name, "anchor/") {
			all[e.Name] = entry(other, e.Name)
		}
	}
	for name, c := range map[string]struct {
		change changes
		want   string
	}{
		"nothing":                {nil, ""},
		"block flipped":          {changes{"anchor/block": flip}, "block"},
		"block longer":           {changes{"anchor/block": longer}, "block"},
		"block of another":       {changes{"anchor/block": entry(other, "anchor/block")}, "is not in the state of block"},
		"accumulator flipped":    {changes{"anchor/accumulator": flip}, ""},
		"accumulator of another": {changes{"anchor/accumulator": entry(other, "anchor/accumulator")}, "is not in the state"},
		"position of another":    {changes{"anchor/position": func([]byte) []byte { return canon.Marshal(&canon.Position{Index: 7}) }}, "is not among"},
		"position longer":        {changes{"anchor/position": longer}, "position"},
		"block of other chain":   {changes{"anchor/block": entry(strange, "anchor/block")}, "signed by validator set"},
		"proof flipped":          {changes{"anchor/proof": flip}, "proof"},
		"proof of another":       {changes{"anchor/proof": entry(other, "anchor/proof")}, "is not in the state"},
		"settlement of another":  {changes{"anchor/settlement": entry(other, "anchor/settlement")}, "is not among"},
		"settlement flipped":     {changes{"anchor/settlement": flip}, ""},
		"record of another":      {changes{"record": entry(other, "record")}, "not the one that was settled"},
		"record flipped":         {changes{"record": flip}, "record"},
		"record longer":          {changes{"record": longer}, "record"},
		"order of another":       {changes{"order/tx": entry(other, "order/tx")}, "posts another order"},
		"order longer":           {changes{"order/tx": longer}, "transaction"},
		"account number":         {changes{"order/account": func([]byte) []byte { return []byte("999") }}, "not signed by its consumer"},
		"account number padded":  {changes{"order/account": func(b []byte) []byte { return append([]byte("0"), b...) }}, "account number"},
		"model flipped":          {changes{"file/model": flip}, "not the one that the order names"},
		"data gone":              {changes{"file/data": gone}, "is missing"},
		"state flipped":          {changes{state: flip}, "state"},
		"state gone":             {changes{state: gone}, "is missing"},
		"state of another root":  {changes{"state/" + canon.Sum(canon.DomainOrder, []byte("other")).String(): func([]byte) []byte { return []byte("x") }}, "belongs to nothing"},
		"all but the anchor":     {all, "not the one that was settled"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := check(forge(t, good.bytes, c.change), good.trust, other.trust) // the set may have changed between them
			if name == "nothing" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if _, err := check(strange.bytes, good.trust); err == nil || !strings.Contains(err.Error(), "signed by validator set") {
		t.Errorf("a whole bundle of another chain: %v", err)
	}
	if _, err := check(strange.bytes, strange.trust); err != nil {
		t.Errorf("a bundle under its own trust root: %v", err)
	}
}

// signatures forges records that no chain would have settled.
func signatures(t *testing.T, l *job.Lease) {
	if err := evidence.Signed(l); err != nil {
		t.Fatal(err)
	}
	copied := func() *job.Lease {
		c := &job.Lease{}
		if err := canon.Unmarshal(canon.Marshal(l), c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, forge := range map[string]func(*job.Lease){
		"receipt of other work":  func(l *job.Lease) { l.Units[0].Receipt.Unit = 1 },
		"receipt of another":     func(l *job.Lease) { l.Units[0].Receipt.Provider = "tally1other" },
		"another end":            func(l *job.Lease) { l.Units[0].Receipt.Checkpoints[1][0] ^= 1 },
		"another start":          func(l *job.Lease) { l.Units[0].Receipt.Start[0] ^= 1 },
		"fewer checkpoints":      func(l *job.Lease) { l.Units[0].Receipt.Checkpoints = l.Units[0].Receipt.Checkpoints[:2] },
		"no signature":           func(l *job.Lease) { l.Units[0].Proof = nil },
		"another signature":      func(l *job.Lease) { l.Units[0].Proof = l.Units[1].Proof },
		"no receipt":             func(l *job.Lease) { l.Units[0].Receipt = nil },
		"merge of something":     func(l *job.Lease) { l.Merges[0].Inputs[0][0] ^= 1 },
		"merge of fewer":         func(l *job.Lease) { l.Merges[0].Inputs = l.Merges[0].Inputs[:1] },
		"receipt of nobody":      func(l *job.Lease) { l.Providers = nil },
		"provider without a key": func(l *job.Lease) { l.Providers[0].Key = nil; l.Providers[1].Key = nil },
	} {
		c := copied()
		forge(c)
		if err := evidence.Signed(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestTrustFiles(t *testing.T) {
	dir := t.TempDir()
	want := []evidence.Trust{evidence.Trust(canon.Sum(canon.DomainOrder)), {1}}
	if err := evidence.WriteTrust(dir, "a-chain", want...); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "trust.json")
	if got, err := evidence.ReadTrust(file); err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v, %v", got, err)
	}
	for text, says := range map[string]string{"{": file, `{"validator_sets":["12"]}`: "trust root", "{}": "no validator_sets", strings.Repeat(" ", 1<<20) + "{}": file} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := evidence.ReadTrust(file); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func TestValidatorSetsThatAHomeHasSeen(t *testing.T) {
	home, seen := filepath.Join(t.TempDir(), "home"), evidence.Trust(canon.Sum(canon.DomainOrder))
	if evidence.Seen(home, seen) {
		t.Fatal("seen before there is a home")
	}
	for range 2 {
		if err := evidence.Remember(home, seen); err != nil {
			t.Fatal(err)
		}
	}
	if !evidence.Seen(home, seen) || evidence.Seen(home, evidence.Trust{}) {
		t.Fatal("not what was remembered")
	}
}

func BenchmarkCheck(b *testing.B) {
	m := settled(b, 1)[0]
	b.SetBytes(int64(len(m.bytes)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := check(m.bytes, m.trust); err != nil {
			b.Fatal(err)
		}
	}
}
