package work

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// DefaultParams are the rules of a new chain.
func DefaultParams() workv1.Params {
	p := wire.ParamsToProto(job.DefaultParams, wire.Sentences{Carelessness: defaultJail, Absence: defaultAbsence})
	p.RetentionMs = defaultRetention
	return p
}

// DefaultGenesis has no leases.
func DefaultGenesis() *workv1.GenesisState { return &workv1.GenesisState{Params: DefaultParams()} }

// ValidateGenesis checks a state before import.
func ValidateGenesis(g *workv1.GenesisState) error {
	if err := checkGenesisParams(g.Params); err != nil {
		return fmt.Errorf("work genesis: params: %w", err)
	}
	if err := module.CheckAuthority(g.Authority); err != nil {
		return fmt.Errorf("work genesis: %w", err)
	}
	var last canon.Hash
	for i, b := range g.Leases {
		id, l, err := readLease(b)
		if err == nil {
			err = l.Check()
		}
		if err == nil && i > 0 && bytes.Compare(last[:], id[:]) >= 0 {
			err = fmt.Errorf("lease %s is out of order", id)
		}
		if err != nil {
			return fmt.Errorf("work genesis: lease %d: %w", i, err)
		}
		last = id
	}
	for i, b := range g.Settlements {
		var s job.Settlement
		err := canon.Unmarshal(b, &s)
		if err == nil && i > 0 && bytes.Compare(last[:], s.Order[:]) >= 0 {
			err = fmt.Errorf("settlement of %s is out of order", s.Order)
		}
		if err != nil {
			return fmt.Errorf("work genesis: settlement %d: %w", i, err)
		}
		last = s.Order
	}
	return checkRecord(g.Record, g.Settlements, g.Pruned)
}

func readLease(b []byte) (canon.Hash, *job.Lease, error) {
	l := &job.Lease{}
	err := canon.Unmarshal(b, l)
	return l.Order.ID(), l, err
}

// InitGenesis stores a state.
func (k *Keeper) InitGenesis(ctx context.Context, g *workv1.GenesisState) error {
	if err := k.rules.Init(ctx, g.Params, g.Authority); err != nil {
		return err
	}
	for _, b := range g.Leases {
		id, l, err := readLease(b)
		if err != nil {
			return err
		}
		if err := k.leases.enter(ctx, id, l); err != nil {
			return err
		}
	}
	if err := k.record.enter(ctx, g.Record, g.Settlements, g.Pruned); err != nil {
		return err
	}
	return k.Invariant(ctx, nil)
}

// ExportGenesis is the inverse of InitGenesis.
func (k *Keeper) ExportGenesis(ctx context.Context) (*workv1.GenesisState, error) {
	params, err := k.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	g := &workv1.GenesisState{Params: params}
	if g.Authority, err = k.rules.Authority(ctx); err != nil {
		return nil, err
	}
	err = k.leases.each(ctx, func(_ canon.Hash, l *job.Lease) error {
		g.Leases = append(g.Leases, canon.Marshal(l))
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = k.record.settlements.Walk(ctx, nil, func(_, b []byte) (bool, error) {
		g.Settlements = append(g.Settlements, b)
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	if err := k.record.pruned(ctx, func(p workv1.PrunedLease) { g.Pruned = append(g.Pruned, p) }); err != nil {
		return nil, err
	}
	return g, k.record.leaves(ctx, func(leaf canon.Hash) error {
		g.Record = append(g.Record, leaf[:])
		return nil
	})
}
