// Package worktest plays orders on a chain under test: it posts them, and does
// by real transactions what lead, providers, custodians, auditors and disputing
// parties would do.
//
//	p := worktest.Begin(t, chaintest.New(t, worktest.Network()...), worktest.Order())
//	p.Compute(0, "p0")     // assigned, received, attested, audited
//	p.FinishRound()        // the rest of the round, and its merge
//
// States are names made of hashes (Fabricated) or those of a small real training
// (Training), with which disputes can be played to their end.
package worktest

import (
	"time"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/power"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// Tally is one tally in utally.
const Tally = 1_000_000

// Purse is what consumer and challenger own at genesis, in utally.
const Purse = 5_000 * Tally

// Times of the orders and rules here.
const (
	UnitTimeout = 60 * time.Second
	UnitWindow  = 10 * time.Second
	Window      = 30 * time.Second
	LeadTimeout = 5 * time.Minute
	Expiry      = 2 * time.Minute
)

// People of the network, by their part in it.
var (
	Validators = []string{"v0", "v1", "v2", "v3"}
	Providers  = []string{"p0", "p1", "p2"} // under v0
	Rivals     = []string{"q0", "q1"}       // under v1, dearer
	Reserve    = []string{"v4", "v5"}       // validators that only some networks have
	Consumer   = chaintest.Named("consumer")
	Challenger = chaintest.Named("challenger")
)

// Network describes a chain with these people.
func Network(more ...chaintest.Option) []chaintest.Option {
	options := []chaintest.Option{chaintest.Fund(Purse, Consumer.Name, Challenger.Name)}
	for _, v := range Validators {
		options = append(options, chaintest.Validator(v, 10_000*Tally))
	}
	for i, p := range Providers {
		options = append(options, chaintest.Provider(p, "v0", 1_000*Tally, uint64(1000+100*i)))
	}
	for _, q := range Rivals {
		options = append(options, chaintest.Provider(q, "v1", 1_000*Tally, 2000))
	}
	options = append(options, Rules(func(*job.Params) {}))
	return append(options, more...)
}

// Rules changes the rules for leases.
func Rules(bend func(*job.Params)) chaintest.Option {
	return func(g *app.Genesis) {
		p := job.DefaultParams.WithoutForced()
		p.LeadTimeout = LeadTimeout.Milliseconds()
		bend(&p)
		g.Work = wire.ParamsToProto(p, wire.Sentences{Carelessness: time.Hour.Milliseconds(), Absence: time.Hour.Milliseconds()})
	}
}

// Order returns an order of two rounds of two units, whose programs and states
// are mere names.
func Order() job.Order {
	name := func(s string) canon.Hash { return canon.Sum(canon.Domain(s)) }
	return job.Order{
		Chain: chaintest.ChainID, Consumer: Consumer.String(), Nonce: 1,
		Contact: job.Contact{Key: Consumer.PeerKey(), Addrs: []string{"/ip4/127.0.0.1/tcp/4001"}},
		Problem: job.Problem{
			Kind: "training", Profile: "fp32", Step: name("step"), Merge: name("merge"), Start: name("start"), Data: name("data"),
			Rounds: 2, Shards: 2, Steps: 6, Interval: 2, Batch: 4, Records: 100, Seed: 7,
			StepFLOPs: 5e9, StepBytes: 1e9, MergeFLOPs: 1e6, MergeBytes: 1e6,
			Files: []job.File{{Role: "model", CID: "bafymodel", Size: 10}},
		},
		Conditions: job.Conditions{
			MaxPrice: 10 * Tally, Expires: Expiry.Milliseconds(), MinProviders: 2, Auditors: 1, AuditSegments: 1, Custodians: 3,
			UnitTimeout: UnitTimeout.Milliseconds(), UnitWindow: UnitWindow.Milliseconds(), Window: Window.Milliseconds(),
		},
	}
}

// Task is an order of a project of drilling: two units of two runs, which comes to 1 ut.
func Task(project uint64) job.Order {
	o := Order()
	o.Project = project
	p := &o.Problem
	p.Kind, p.Merge, p.Data, p.Seed, p.MergeFLOPs, p.MergeBytes = job.Batch, canon.Hash{}, canon.Hash{}, 0, 0, 0
	p.Rounds, p.Shards, p.Steps, p.Interval, p.Batch, p.Records = 1, 2, 2, 1, 1, 4
	p.StepFLOPs = power.UT / 4
	o.Conditions.Credit, o.Conditions.MaxPrice, o.Conditions.Window = true, 10*Tally, 2*Window.Milliseconds()
	return o
}

// Auctioned is an order of auctions: units of 10 · 10⁹ operations each, which move nothing.
func Auctioned(nonce uint64, units int, price uint64) job.Order {
	o := Order()
	o.Nonce = nonce
	p, c := &o.Problem, &o.Conditions
	*p = job.Problem{
		Kind: job.Batch, Profile: "fp32", Step: p.Step, Start: p.Start, Rounds: 1, Shards: units, Steps: 2, Interval: 1,
		Batch: 1, Records: 2 * units, StepFLOPs: 5e9, Files: p.Files,
	}
	c.Auction, c.MinProviders, c.MaxPrice, c.Expires = true, 1, price, (10 * time.Minute).Milliseconds()
	return o
}
