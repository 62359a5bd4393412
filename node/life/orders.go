package life

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/model/zoo"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/demo"
	"github.com/tally-network/tally/node/replay"
)

// kind is a kind of order that people post.
type kind struct {
	name   string
	weight int // how often it is drawn, beside the others
	batch  bool
	terms  func(*consume.SpecConditions)
	leaves time.Duration // after which the buyer has thought better of it; 0: never
}

// kinds are all of them. No weight is so small that an hour has none.
var kinds = []kind{
	{name: "training", weight: 4},
	{name: "batch", weight: 4, batch: true},
	{name: "compared", weight: 3, batch: true, terms: func(c *consume.SpecConditions) {
		c.Providers, c.Assurance.Replicas = 2, 2
	}},
	{name: "auctioned", weight: 3, batch: true, terms: func(c *consume.SpecConditions) { c.Auction = true }},
	{name: "cancelled", weight: 1, batch: true, leaves: 2 * time.Second, terms: func(c *consume.SpecConditions) { c.MaxPrice = 1 }},
	{name: "too cheap", weight: 1, batch: true, terms: func(c *consume.SpecConditions) {
		c.MaxPrice, c.Expires = 1, consume.Duration(15*time.Second)
	}},
}

// drilling is the kind of order that a partner posts.
var drilling = kind{name: "drilling", batch: true, terms: func(c *consume.SpecConditions) {
	c.Providers, c.Assurance.Replicas, c.Credit = 2, 2, true
}}

// drawn returns a kind, each as often as its weight says.
func drawn(r *rand.Rand) *kind {
	all := 0
	for i := range kinds {
		all += kinds[i].weight
	}
	at := r.IntN(all)
	for i := range kinds {
		if at -= kinds[i].weight; at < 0 {
			return &kinds[i]
		}
	}
	return &kinds[0]
}

// The model of all orders: so small that a hundred of them are no load.
var model = zoo.GPT{Vocab: 24, Context: 16, Width: 16, Layers: 1, Heads: 2, Seed: 3}

const (
	batchSize = 8
	sentence  = "a stick is cut in two and each side keeps its half of the tally. "
)

// conditions are terms that one can wait for.
func conditions() consume.SpecConditions {
	c := consume.Default().Conditions
	c.MaxPrice, c.Custodians, c.Expires = 100*tally, 1, consume.Duration(2*time.Minute)
	c.UnitTimeout, c.UnitWindow, c.Window = consume.Duration(30*time.Second), consume.Duration(time.Second), consume.Duration(3*time.Second)
	return c
}

// draft makes an order of a kind; number tells it from all others.
func (k *kind) draft(ctx context.Context, number uint64, r *rand.Rand, project uint64, exec engine.Executor) (*consume.Draft, error) {
	c := conditions()
	if k.terms != nil {
		k.terms(&c)
	}
	if !k.batch {
		s := consume.Default()
		s.Conditions = c
		p := &s.Problem
		p.Rounds, p.Shards, p.Steps, p.Interval, p.Batch, p.Seed = 1+r.IntN(3), 1+r.IntN(3), 4, 2, batchSize, number
		p.Optimizer.Warmup = 2
		g, err := model.Graph(batchSize)
		if err != nil {
			return nil, err
		}
		return consume.FromParts(ctx, s, consume.Origin{Model: g}, strings.Repeat(sentence, 24), exec)
	}
	forward, err := model.Graph(batchSize)
	if err != nil {
		return nil, err
	}
	records, err := texts(batchSize*(2+r.IntN(14)), r)
	if err != nil {
		return nil, err
	}
	s := consume.BatchSpec{Name: fmt.Sprintf("life %d", number), Project: project, Problem: consume.BatchProblem{Steps: 2}, Conditions: c}
	return consume.FromDataset(ctx, s, replay.Dataset{Model: demo.Scorer(forward), Records: records, Batch: batchSize}, exec)
}

// texts returns n records of what a scorer takes.
func texts(n int, r *rand.Rand) (*graph.State, error) {
	s := &graph.State{}
	for _, name := range []string{"next", "tokens"} { // by name
		t, err := tensor.New(tensor.Int32, tensor.Shape{n, model.Context})
		if err != nil {
			return nil, err
		}
		ids := tensor.Of[int32](t)
		for i := range ids {
			ids[i] = int32(r.IntN(model.Vocab))
		}
		s.Slots = append(s.Slots, graph.Slot{Name: name, Type: t.Type, Shape: t.Shape})
		s.Tensors = append(s.Tensors, t)
	}
	return s, nil
}
