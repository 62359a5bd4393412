package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/cputime"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/node/role"
	roles "github.com/tally-network/tally/node/runner"
)

// The batches that are measured: records of some words, by an encoder of MiniLM's size.
const (
	batchRecords = 10_000
	batchRun     = 32 // records of a run
	batchAudit   = 0.05
	sentence     = 16  // words
	passage      = 128 // words, of which MiniLM saw no more when it was trained
)

// miniLM is an encoder of MiniLM's size for records of so many words.
func miniLM(words int) encoder {
	return encoder{vocab: 30_522, words: words, width: 384, layers: 6, heads: 12}
}

// batches measures batches on a devnet beside the engine alone. What an order costs besides, such as
// its files for everybody who keeps or computes, is the same for short records and long ones.
func batches(ctx context.Context, o Options) (rows []Row, err error) {
	n := batchRecords
	if o.Records > 0 {
		n = o.Records
	}
	for _, words := range []int{sentence, passage} {
		more, err := batchBeside(ctx, o.Tell, miniLM(words), n)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// spent is what some work took.
type spent struct{ wall, cpu float64 } // seconds

// since measures what was spent since it was called.
func since() func() spent {
	begun, used := time.Now(), cputime.Used()
	return func() spent { return spent{time.Since(begun).Seconds(), (cputime.Used() - used).Seconds()} }
}

func batchBeside(ctx context.Context, tell func(string, ...any), of encoder, records int) ([]Row, error) {
	data := of.records(records)
	model := replay.Dataset{Model: of.graph(batchRun), Records: data, Batch: batchRun}
	spec := consume.BatchSpec{Conditions: consume.Default().Conditions}
	c := &spec.Conditions
	c.MaxPrice, c.UnitTimeout = 10_000_000_000, consume.Duration(time.Hour)
	c.Assurance.Audit = &consume.SpecAudit{Auditors: 1, Rate: batchAudit}
	c.UnitWindow, c.Window = consume.Duration(3*time.Second), consume.Duration(20*time.Second)
	d, err := consume.FromDataset(ctx, spec, model, cpu.New(0))
	if err != nil {
		return nil, err
	}
	tell("the engine alone: %d records of %d words, %d a run", records, of.words, batchRun)
	want, alone, err := playAll(ctx, d)
	if err != nil {
		return nil, err
	}
	tell("a devnet, of which challengers rest: what they look at again is not the batch's")
	net, err := onDevnet(ctx, tell, spec, model, want)
	if err != nil {
		return nil, err
	}
	rate := float64(records)
	return []Row{
		row(fmt.Sprintf("batch of %d words a record, engine alone", of.words), "records/s", rate/alone.wall),
		row("on a devnet, from its files' being there to its last unit's acceptance", "records/s", rate/net.wall),
		row("time of that over the engine's", "×", net.wall/alone.wall).atMost(1.25),
		row("processors' time of that over the engine's", "×", net.cpu/alone.cpu).atMost(1.25),
	}, nil
}

// playAll computes all units of a draft, on all processors, and returns the root over their ends.
func playAll(ctx context.Context, d *consume.Draft) (canon.Hash, spent, error) {
	var ends []canon.Hash
	took := since()
	for unit := range d.Problem.Units() {
		var points []canon.Hash
		if _, err := d.Job.UnitOf(&d.Problem, unit).Play(ctx, d.Job.Start, 0, d.Problem.Steps, func(_ int, s *graph.State) error {
			h, err := s.Root()
			points = append(points, h)
			return err
		}); err != nil {
			return canon.Hash{}, spent{}, err
		}
		ends = append(ends, canon.Root(points))
	}
	return canon.Root(ends), took(), nil
}

// onDevnet has the batch computed by a network, whose result must be the one that is wanted.
func onDevnet(ctx context.Context, tell func(string, ...any), spec consume.BatchSpec, of replay.Dataset, want canon.Hash) (took spent, err error) {
	dir, err := os.MkdirTemp("", "tally-bench-")
	if err != nil {
		return took, err
	}
	defer os.RemoveAll(dir)
	registered := make(chan struct{})
	n, err := devnet.Start(ctx, devnet.Config{Dir: dir, Providers: 2, Threads: max(1, runtime.GOMAXPROCS(0)/2), Run: func(ctx context.Context, h *home.Home, env *role.Env) error {
		if h.Settings.Role != home.Challenger {
			return roles.Run(ctx, h, env)
		}
		awake, rest := context.WithCancel(ctx)
		go func() {
			defer rest()
			select {
			case <-registered:
			case <-ctx.Done():
			}
		}()
		err := roles.Run(awake, h, env)
		<-ctx.Done()
		return err
	}})
	if err != nil {
		return took, err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	if err := n.Ready(ctx); err != nil {
		return took, err
	}
	close(registered)
	env := n.Consumer.Env
	d, err := consume.FromDataset(ctx, spec, of, env.Jobs.Exec)
	if err != nil {
		return took, err
	}
	o, err := d.Order(consume.BuyerOf(env))
	if err != nil {
		return took, err
	}
	if err := consume.Keep(env, &o, d.Body()); err != nil {
		return took, err
	}
	serving, served := context.WithCancel(ctx)
	defer served()
	go func() { _ = consume.Serve(serving, env) }()
	id, err := consume.Post(ctx, env, &o)
	if err != nil {
		return took, err
	}
	var end func() spent
	told := ""
	last, err := consume.Follow(ctx, env, id, func(p consume.Progress) bool {
		if now := p.String(); now != told {
			told = now
			tell("%s", now)
		}
		if p.HandedOver && end == nil {
			end = since()
		}
		return p.Lease != nil && p.Lease.Round > 0
	})
	switch {
	case err != nil:
		return took, err
	case last.Lease.Phase == job.Settled && last.Lease.Round == 0, last.Lease.FinalRoot() != want:
		return took, fmt.Errorf("the network gave %v, the engine alone %v (%s)", last.Lease.FinalRoot(), want, last.Lease.Reason)
	}
	return end(), nil
}

// encoder is the shape of a text encoder: a transformer that reads all words at once, whose
// mean is normalised.
type encoder struct{ vocab, words, width, layers, heads int }

// records are n sentences, of several lengths.
func (e encoder) records(n int) *graph.State {
	ids := tensor.Must(tensor.New(tensor.Int64, tensor.Shape{n, e.words}))
	mask := tensor.Must(tensor.New(tensor.Int64, tensor.Shape{n, e.words}))
	for i := range ids.Len() {
		ids.Set(i, tensor.Word(uint64(i)*2654435761>>8%uint64(e.vocab)))
		if i%e.words < 3+i/e.words%(e.words-2) {
			mask.Set(i, 1)
		}
	}
	s := &graph.State{Tensors: []*tensor.Tensor{ids, mask}}
	for i, name := range []string{"input_ids", "mask"} {
		s.Slots = append(s.Slots, graph.Slot{Name: name, Type: tensor.Int64, Shape: s.Tensors[i].Shape})
	}
	return s
}

// graph maps tokens and a mask of so many records to an embedding of each.
func (e encoder) graph(batch int) *graph.Graph {
	b := graph.NewBuilder("encoder")
	tokens := tensor.Shape{batch, e.words}
	ids, mask := b.Input("input_ids", tensor.Int64, tokens), b.Input("mask", tensor.Int64, tokens)
	weight := func(rows, columns int) string {
		t := normal(tensor.Float32, tensor.Shape{rows, columns})
		for i, x := range tensor.Of[float32](t) {
			tensor.Of[float32](t)[i] = x / 20
		}
		return b.Init("w", t)
	}
	vector := func(n int, x float32) string {
		t := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{n}))
		for i := range n {
			t.Set(i, tensor.F32(x))
		}
		return b.Init("v", t)
	}
	linear := func(x string, in, out int) string {
		return b.Op("Add", b.Op("MatMul", x, weight(in, out)), vector(out, 0))
	}
	norm := func(x string) string {
		return b.With(graph.Int("axis", -1)).Op("LayerNormalization", x, vector(e.width, 1), vector(e.width, 0))
	}
	seen := b.With(graph.Int("to", 1)).Op("Cast", mask)
	unseen := b.Op("Mul", b.Op("Sub", seen, b.Scalar(1)), b.Scalar(1e9)) // 0, or −10⁹
	unseen = b.Op("Reshape", unseen, b.Ints(batch, 1, 1, e.words))
	x := norm(b.Op("Add", b.Op("Gather", weight(e.vocab, e.width), ids), weight(e.words, e.width)))
	for range e.layers {
		heads := func(order ...int) string {
			y := b.Op("Reshape", linear(x, e.width, e.width), b.Ints(batch, e.words, e.heads, e.width/e.heads))
			return b.With(graph.Ints("perm", order...)).Op("Transpose", y)
		}
		scores := b.Op("Mul", b.Op("MatMul", heads(0, 2, 1, 3), heads(0, 2, 3, 1)), b.Scalar(0.18))
		y := b.Op("MatMul", b.With(graph.Int("axis", -1)).Op("Softmax", b.Op("Add", scores, unseen)), heads(0, 2, 1, 3))
		y = b.Op("Reshape", b.With(graph.Ints("perm", 0, 2, 1, 3)).Op("Transpose", y), b.Ints(batch, e.words, e.width))
		x = norm(b.Op("Add", x, linear(y, e.width, e.width)))
		x = norm(b.Op("Add", x, linear(b.Op("Gelu", linear(x, e.width, 4*e.width)), 4*e.width, e.width)))
	}
	share := b.Op("Reshape", seen, b.Ints(batch, 1, e.words))
	mean := b.Op("Reshape", b.Op("MatMul", share, x), b.Ints(batch, e.width)) // normalised, it need not be divided
	out := tensor.Shape{batch, e.width}
	b.Output(b.With(graph.Int("axis", 1), graph.Int("p", 2)).As("embedding").Op("LpNormalization", mean), tensor.Float32, out)
	return b.Graph()
}
