package work

import (
	"context"
	"errors"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// Gas beside that of reading and writing, in the measure of the SDK: 1000 for a
// signature of a transaction.
const (
	gasSignature = 1_000 // ed25519, of a peer key
	gasVRF       = 3_000
)

// maxAssignments bounds the units of one message.
const maxAssignments = 256

type msgServer struct{ *Keeper }

// applyByID parses an order's id and applies an event to its lease.
func (s msgServer) applyByID(ctx context.Context, order string, e job.Event) error {
	id, err := orderID(order)
	if err != nil {
		return err
	}
	_, err = s.apply(ctx, id, e)
	return err
}

func orderID(text string) (canon.Hash, error) {
	id, err := canon.ParseHash(text)
	if err != nil {
		return id, errorsmod.Wrapf(ErrMalformed, "order: %s", err)
	}
	return id, nil
}

func (s msgServer) Assign(ctx context.Context, m *workv1.MsgAssign) (*workv1.MsgAssignResponse, error) {
	if len(m.Units) > maxAssignments {
		return nil, errorsmod.Wrapf(ErrMalformed, "%d units: assign at most %d at a time", len(m.Units), maxAssignments)
	}
	e := job.Assign{By: m.Lead}
	for _, u := range m.Units {
		if u.Provider == "" { // its replicas are drawn
			e.Units = append(e.Units, job.Assignment{Unit: int(u.Unit), Attempt: int(u.Attempt), Signature: u.Signature})
			continue
		}
		peer, err := s.active(ctx, u.Provider)
		if err != nil {
			return nil, err
		}
		module.Charge(ctx, gasSignature, "acceptance")
		e.Units = append(e.Units, job.Assignment{
			Unit: int(u.Unit), Attempt: int(u.Attempt), Signature: u.Signature, Standing: s.standing(ctx, peer),
		})
	}
	id, err := orderID(m.Order)
	if err != nil {
		return nil, err
	}
	before, err := s.before(ctx, id, e)
	if err != nil {
		return nil, err
	}
	if e.Waiting, err = s.waiting(ctx, &before.Lease); err != nil {
		return nil, err
	}
	_, err = s.applyLoaded(ctx, id, before, e)
	return &workv1.MsgAssignResponse{}, err
}

// waiting returns who waits for a unit of a lease and is active.
func (s msgServer) waiting(ctx context.Context, l *job.Lease) (out []job.Standing, err error) {
	for _, w := range l.Queue {
		if peer, err := s.active(ctx, w.Provider); err == nil {
			out = append(out, s.standing(ctx, peer))
		} else if !errors.Is(err, ErrInactive) && !errors.Is(err, provider.ErrNotRegistered) {
			return nil, err
		}
	}
	return out, nil
}

// standing returns what an active peer brings. Whose means cannot be looked up has none.
func (s msgServer) standing(ctx context.Context, p providerv1.Peer) job.Standing {
	out := job.Standing{Provider: p.Account, Record: p.Record, Staked: p.Stake - p.Reserved, Since: max(p.AbleSince, p.JailedUntil)}
	if account, err := address.Parse(p.Account); err == nil {
		if means, err := s.stakes.Means(ctx, account); err == nil {
			out.Free = means
		}
	}
	return out
}

// active returns a peer that may get new work.
func (s msgServer) active(ctx context.Context, text string) (peer providerv1.Peer, err error) {
	account, err := address.Parse(text)
	if err != nil {
		return peer, errorsmod.Wrap(ErrMalformed, err.Error())
	}
	if peer, err = s.stakes.Get(ctx, account); err != nil {
		return peer, err
	}
	active, err := s.stakes.Active(ctx, peer)
	if err == nil && !active {
		err = errorsmod.Wrap(ErrInactive, text)
	}
	return peer, err
}

func (s msgServer) Ready(ctx context.Context, m *workv1.MsgReady) (*workv1.MsgReadyResponse, error) {
	if !m.Withdraw {
		if _, err := s.active(ctx, m.Provider); err != nil {
			return nil, err
		}
	}
	return &workv1.MsgReadyResponse{}, s.applyByID(ctx, m.Order, job.Ready{Provider: m.Provider, Withdraw: m.Withdraw})
}

func (s msgServer) Submit(ctx context.Context, m *workv1.MsgSubmit) (*workv1.MsgSubmitResponse, error) {
	r, err := wire.ReceiptFromProto(&m.Receipt)
	if err != nil {
		return nil, errorsmod.Wrap(ErrMalformed, err.Error())
	}
	if r.Provider != m.Provider {
		return nil, errorsmod.Wrapf(ErrSigner, "receipt of %s, sent by %s", r.Provider, m.Provider)
	}
	module.Charge(ctx, gasSignature, "receipt")
	return &workv1.MsgSubmitResponse{}, s.applyByID(ctx, m.Receipt.Order, job.Submit{Receipt: r, Signature: m.Signature})
}

// Commit fixes what a replica will show of a unit.
func (s msgServer) Commit(ctx context.Context, m *workv1.MsgCommit) (*workv1.MsgCommitResponse, error) {
	hash, err := canon.HashOf(m.Hash)
	if err != nil {
		return nil, errorsmod.Wrapf(ErrMalformed, "hash: %s", err)
	}
	e := job.Commit{By: m.Provider, Unit: int(m.Unit), Attempt: int(m.Attempt), Hash: hash}
	return &workv1.MsgCommitResponse{}, s.applyByID(ctx, m.Order, e)
}

// Reveal opens what a replica has committed to.
func (s msgServer) Reveal(ctx context.Context, m *workv1.MsgReveal) (*workv1.MsgRevealResponse, error) {
	e, err := wire.RevealFromProto(m)
	if err != nil {
		return nil, errorsmod.Wrap(ErrMalformed, err.Error())
	}
	if e.Receipt.Provider != m.Provider {
		return nil, errorsmod.Wrapf(ErrSigner, "result of %s, sent by %s", e.Receipt.Provider, m.Provider)
	}
	module.Charge(ctx, gasSignature, "receipt")
	return &workv1.MsgRevealResponse{}, s.applyByID(ctx, m.Receipt.Order, e)
}

func (s msgServer) Report(ctx context.Context, m *workv1.MsgReport) (*workv1.MsgReportResponse, error) {
	id, err := orderID(m.Order)
	if err != nil {
		return nil, err
	}
	digest, err := canon.HashOf(m.Digest)
	if err != nil {
		return nil, errorsmod.Wrapf(ErrMalformed, "digest: %s", err)
	}
	if len(m.Top) > job.MaxSegments {
		return nil, errorsmod.Wrapf(ErrMalformed, "%d segments, a unit has at most %d", len(m.Top), job.MaxSegments)
	}
	e := job.Report{By: m.Auditor, Unit: int(m.Unit), Attempt: int(m.Attempt), Digest: digest, Pass: m.Pass}
	for _, segment := range m.Top {
		e.Top = append(e.Top, int(segment))
	}
	before, err := s.before(ctx, id, e)
	if err != nil {
		return nil, err
	}
	receipt, key, err := audited(&before.Lease, e.Unit, m.Auditor)
	if err != nil {
		return nil, err
	}
	module.Charge(ctx, gasVRF, "vrf")
	output, err := vrf.Verify(key, proof.AuditInput(receipt, m.Auditor), m.Proof)
	if err != nil {
		return nil, errorsmod.Wrap(ErrProof, err.Error())
	}
	e.Output = output[:]
	_, err = s.applyLoaded(ctx, id, before, e)
	return &workv1.MsgReportResponse{}, err
}

// audited returns the receipt of a unit, and the VRF key that an auditor had
// when the lease began.
func audited(l *job.Lease, unit int, auditor string) (receipt canon.Hash, key []byte, err error) {
	if unit >= len(l.Units) || l.Units[unit].Receipt == nil {
		return receipt, nil, errorsmod.Wrapf(ErrRefused, "unit %d has no receipt to audit", unit)
	}
	for _, p := range l.Auditors {
		if p.Account == auditor {
			return l.Units[unit].Receipt.ID(), p.VRF, nil
		}
	}
	return receipt, nil, errorsmod.Wrapf(ErrRefused, "%s is not an auditor of this lease", auditor)
}

func (s msgServer) Merge(ctx context.Context, m *workv1.MsgMerge) (*workv1.MsgMergeResponse, error) {
	root, err := canon.HashOf(m.Root)
	if err != nil {
		return nil, errorsmod.Wrapf(ErrMalformed, "root: %s", err)
	}
	id, err := orderID(m.Order)
	if err != nil {
		return nil, err
	}
	l, err := s.load(ctx, id, skeleton)
	if err != nil {
		return nil, err
	}
	e := job.PostMerge{By: m.Lead, Round: int(m.Round), Root: root, Data: wire.FileFromProto(m.Data)}
	if err := e.Check(&l.Lease); err != nil {
		return nil, errorsmod.Wrap(ErrRefused, err.Error())
	}
	ctx = bulk(ctx, &l.Order.Problem)
	if err := s.leases.readPart(ctx, id, l, l.Touched(e, module.Now(ctx))); err != nil {
		return nil, err
	}
	_, err = s.applyLoaded(ctx, id, l, e)
	return &workv1.MsgMergeResponse{}, err
}

func (s msgServer) TakeLead(ctx context.Context, m *workv1.MsgTakeLead) (*workv1.MsgTakeLeadResponse, error) {
	if _, err := s.active(ctx, m.Validator); err != nil {
		return nil, err
	}
	id, err := orderID(m.Order)
	if err != nil {
		return nil, err
	}
	e := job.TakeLead{By: m.Validator}
	before, err := s.before(ctx, id, e)
	if err != nil {
		return nil, err
	}
	if e.Waiting, err = s.waiting(ctx, &before.Lease); err != nil {
		return nil, err
	}
	_, err = s.applyLoaded(ctx, id, before, e)
	return &workv1.MsgTakeLeadResponse{}, err
}

func (s msgServer) Decline(ctx context.Context, m *workv1.MsgDecline) (*workv1.MsgDeclineResponse, error) {
	return &workv1.MsgDeclineResponse{}, s.applyByID(ctx, m.Order, job.Decline{By: m.Lead, Reason: m.Reason})
}

func (s msgServer) Halt(ctx context.Context, m *workv1.MsgHalt) (*workv1.MsgHaltResponse, error) {
	o, err := wire.OpeningFromProto(&m.Opening)
	if err != nil {
		return nil, errorsmod.Wrapf(ErrMalformed, "opening: %s", err)
	}
	return &workv1.MsgHaltResponse{}, s.applyByID(ctx, m.Order, job.Halt{Opening: o, Loss: m.Loss})
}

func (s msgServer) Stop(ctx context.Context, m *workv1.MsgStop) (*workv1.MsgStopResponse, error) {
	return &workv1.MsgStopResponse{}, s.applyByID(ctx, m.Order, job.Stop{By: m.Consumer})
}
