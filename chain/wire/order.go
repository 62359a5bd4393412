package wire

import (
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
)

// OrderToProto returns o as wallets show it and transactions carry it.
func OrderToProto(o *job.Order) marketv1.Order {
	p, c := &o.Problem, &o.Conditions
	out := marketv1.Order{
		ChainId: o.Chain, Consumer: o.Consumer, Nonce: o.Nonce, Project: o.Project,
		Contact: marketv1.Contact{PeerKey: o.Contact.Key, Addrs: o.Contact.Addrs},
		Problem: marketv1.Problem{
			Kind: p.Kind, Profile: p.Profile,
			StepRoot: p.Step[:], MergeRoot: p.Merge[:], StartRoot: p.Start[:], DataRoot: p.Data[:],
			Rounds: uint32(p.Rounds), Shards: uint32(p.Shards), Steps: uint32(p.Steps), Interval: uint32(p.Interval),
			Batch: uint32(p.Batch), Records: uint64(p.Records), Seed: p.Seed,
			StateBytes: p.StateBytes,
			StepFlops:  p.StepFLOPs, StepBytes: p.StepBytes, MergeFlops: p.MergeFLOPs, MergeBytes: p.MergeBytes,
			Recipe: p.Recipe, Files: list(p.Files, FileToProto),
		},
		Conditions: marketv1.Conditions{
			MaxPrice: c.MaxPrice, ExpiresMs: c.Expires, MinProviders: uint32(c.MinProviders), Validator: c.Validator,
			Auditors: uint32(c.Auditors), AuditSegments: uint32(c.AuditSegments),
			AuditFloor: uint32(c.AuditFloor), TopSegments: uint32(c.TopSegments), Custodians: uint32(c.Custodians), CodedBytes: c.CodedBytes,
			UnitTimeoutMs: c.UnitTimeout, UnitWindowMs: c.UnitWindow, WindowMs: c.Window, Speculate: uint32(c.Speculate), Credit: c.Credit, Auction: c.Auction, Replicas: uint32(c.Replicas),
			Needs: needsToProto(&c.Needs),
		},
	}
	if p.Parent != (job.Parent{}) {
		out.Problem.Parent, out.Problem.ParentRoot = p.Parent.Order.String(), p.Parent.Final[:]
	}
	return out
}

// OrderFromProto is the inverse of OrderToProto. The order it returns is
// unchecked.
func OrderFromProto(m *marketv1.Order) (job.Order, error) {
	p, c := &m.Problem, &m.Conditions
	o := job.Order{
		Chain: m.ChainId, Consumer: m.Consumer, Nonce: m.Nonce, Project: m.Project,
		Contact: job.Contact{Key: m.Contact.PeerKey, Addrs: m.Contact.Addrs},
		Problem: job.Problem{
			Kind: p.Kind, Profile: p.Profile,
			Rounds: int(p.Rounds), Shards: int(p.Shards), Steps: int(p.Steps), Interval: int(p.Interval),
			Batch: int(p.Batch), Seed: p.Seed,
			StateBytes: p.StateBytes,
			StepFLOPs:  p.StepFlops, StepBytes: p.StepBytes, MergeFLOPs: p.MergeFlops, MergeBytes: p.MergeBytes,
			Recipe: p.Recipe,
		},
		Conditions: job.Conditions{
			MaxPrice: c.MaxPrice, Expires: c.ExpiresMs, MinProviders: int(c.MinProviders), Validator: c.Validator,
			Auditors: int(c.Auditors), AuditSegments: int(c.AuditSegments),
			AuditFloor: int(c.AuditFloor), TopSegments: int(c.TopSegments), Custodians: int(c.Custodians), CodedBytes: c.CodedBytes,
			UnitTimeout: c.UnitTimeoutMs, UnitWindow: c.UnitWindowMs, Window: c.WindowMs, Speculate: int(c.Speculate), Credit: c.Credit, Auction: c.Auction, Replicas: int(c.Replicas),
		},
	}
	needs, err := needsFromProto(&c.Needs)
	if err != nil {
		return o, err
	}
	o.Conditions.Needs = needs
	if p.Records > maxRecords {
		return o, fmt.Errorf("%d records, the limit is %d", p.Records, uint64(maxRecords))
	}
	o.Problem.Records = int(p.Records)
	for _, root := range []struct {
		name string
		to   *canon.Hash
		from []byte
	}{
		{"step_root", &o.Problem.Step, p.StepRoot}, {"merge_root", &o.Problem.Merge, p.MergeRoot},
		{"start_root", &o.Problem.Start, p.StartRoot}, {"data_root", &o.Problem.Data, p.DataRoot},
	} {
		h, err := canon.HashOf(root.from)
		if err != nil {
			return o, fmt.Errorf("%s: %w", root.name, err)
		}
		*root.to = h
	}
	if (p.Parent == "") != (len(p.ParentRoot) == 0) {
		return o, errors.New("parent and parent_root belong together")
	}
	if p.Parent != "" {
		var err error
		if o.Problem.Parent.Order, err = canon.ParseHash(p.Parent); err != nil || o.Problem.Parent.Order.IsZero() {
			return o, fmt.Errorf("parent %.80q is no order", p.Parent)
		}
		if o.Problem.Parent.Final, err = canon.HashOf(p.ParentRoot); err != nil {
			return o, fmt.Errorf("parent_root: %w", err)
		}
	}
	if err := tooMany(len(p.Files), job.MaxFiles, "files"); err != nil {
		return o, err
	}
	o.Problem.Files = list(p.Files, FileFromProto)
	return o, nil
}

const maxRecords = 1 << 40

// FileToProto returns f as transactions carry it.
func FileToProto(f job.File) marketv1.File {
	return marketv1.File{Role: f.Role, Cid: f.CID, Size_: f.Size}
}

// FileFromProto is the inverse of FileToProto.
func FileFromProto(m marketv1.File) job.File {
	return job.File{Role: m.Role, CID: m.Cid, Size: m.Size_}
}
