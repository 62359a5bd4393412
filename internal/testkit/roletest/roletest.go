// Package roletest gives tests of roles and of their rooms an Env that is alone: with a
// real store, executor and host, a ledger to ask and nobody else.
//
// Begin with [New] and [Lease]. [Alone] makes the role's peer everybody whom the lease
// names; [Unit], [Put] and [Receive] give the lease receipts of work that was done.
//
// Invariant: what is computed is real; only the chain is not.
package roletest

import (
	"crypto/ed25519"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/internal/testkit/ledger"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/seals"
	"github.com/tally-network/tally/node/states"
	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

// Me is the account of the role that is tested.
const Me = "me"

// New returns the Env of an account that has a store and an executor, and the ledger that
// it asks. It has no host, and can send nothing.
func New(t testing.TB, account string) (*role.Env, *ledger.Ledger) {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(dir+"/store", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	n := ledger.Start(t)
	vrf := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	return role.New(role.Parts{
		Name: "test", Dir: dir, Seals: seals.In(dir), Chain: n.Client, Account: &client.Account{Address: account}, Store: s, Exec: cpu.New(1),
		Keys: role.Keys{Peer: vrf, VRF: vrf}, Threads: 1, Log: slog.New(slog.DiscardHandler),
	}), n
}

// Lease returns a lease of two rounds whose files are in the Env's store.
func Lease(t testing.TB, env *role.Env) (*job.Lease, *replay.Job) {
	t.Helper()
	b := graph.NewBuilder("bigram")
	tokens := b.Input("tokens", tensor.Int32, tensor.Shape{2, 4})
	b.Output(b.Op("Gather", b.Init("table", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{8, 8}))), tokens), tensor.Float32, tensor.Shape{2, 4, 8})
	data := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{12, 5}))
	for i := range data.Len() {
		data.Set(i, tensor.Word(uint32(i+1)*2654435761>>29)) // scattered, so that no two shards are alike
	}
	recipe := train.Recipe{Loss: "next-token-cross-entropy", Optimizer: "sgd", Rate: train.Rate{LearningRate: 0.5}, Batch: 2}
	j, err := replay.New(t.Context(), replay.Inputs{Model: b.Graph(), Recipe: recipe, Data: data}, 2, env.Jobs.Exec)
	if err != nil {
		t.Fatal(err)
	}
	l := &job.Lease{Line: job.Line{Leads: []job.Leader{{Account: "lead"}}}, Units: make([]job.Unit, 4), Merges: make([]job.Merge, 2)}
	p := &l.Order.Problem
	p.Rounds, p.Steps, p.Interval = 2, 2, 1
	if err := j.Bind(p); err != nil {
		t.Fatal(err)
	}
	model, err := onnx.Write(j.Model)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		role  string
		bytes []byte
	}{{replay.RoleModel, model}, {replay.RoleData, canon.Encode(data.Encode)}} {
		ref, err := env.Store.PutBytes("files", f.bytes)
		if err != nil {
			t.Fatal(err)
		}
		p.Files = append(p.Files, blobs.File(f.role, ref))
	}
	Lend(t, env, l)
	return l, j
}

// Lend keeps what a test has put for a lease, as if its parties had handed it over.
func Lend(t testing.TB, env *role.Env, l *job.Lease) {
	t.Helper()
	id := l.Order.ID()
	for from, to := range map[string]string{"files": blobs.Pin(id), "state": blobs.Pin(id), "list": blobs.ListPin(id)} {
		put, err := filepath.Glob(filepath.Join(string(env.Notes), "store", "pins", from, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range put {
			ref, err := store.ParseRef(filepath.Base(name))
			if err == nil {
				err = env.Store.Pin(to, ref)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Unit computes a unit of the first round: its states after each step, and all roots.
func Unit(t testing.TB, j *replay.Job, l *job.Lease, i int) (all []*graph.State, roots []canon.Hash) {
	t.Helper()
	roots = []canon.Hash{l.Order.Problem.Start}
	_, err := j.UnitOf(&l.Order.Problem, i).Play(t.Context(), j.Start, 0, l.Order.Problem.Steps, func(_ int, s *graph.State) error {
		root, err := s.Root()
		if err != nil {
			return err
		}
		roots = append(roots, root)
		return canon.Decode(canon.Encode(s.Encode), func(d *canon.Decoder) { all = append(all, graph.DecodeState(d)) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, roots
}

// Receive gives a unit a receipt whose checkpoints are the given files.
func Receive(t testing.TB, env *role.Env, l *job.Lease, i int, roots []canon.Hash, files ...job.File) {
	t.Helper()
	ref, err := env.Store.PutBytes("list", canon.Marshal(&states.CheckpointList{States: files}))
	if err != nil {
		t.Fatal(err)
	}
	l.Units[i] = job.Unit{Status: job.Received, Provider: "p", Receipt: &job.Receipt{Unit: i, Provider: "p", Checkpoints: roots, Data: blobs.File("checkpoints", ref)}}
	Lend(t, env, l)
}

// Put stores a state where other roles would look for it.
func Put(t testing.TB, env *role.Env, s *graph.State) job.File {
	t.Helper()
	ref, err := env.Store.PutBytes("state", canon.Encode(s.Encode))
	if err != nil {
		t.Fatal(err)
	}
	return blobs.File("state", ref)
}

// Alone gives an Env a host that is everybody whom the lease names, so that it can ask
// nobody else; and so are the accounts that are given.
func Alone(t testing.TB, env *role.Env, n *ledger.Ledger, l *job.Lease, accounts ...string) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := p2p.New(p2p.Options{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	env.Host, env.Blobs.Host, env.Peers.Host = h, h, h
	l.Order.Contact.Key = public
	for _, account := range append([]string{"lead", "p"}, accounts...) {
		n.Keys[account] = public
	}
	Lend(t, env, l)
}
