package evidence

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"

	cryptotypes "github.com/cosmos/cosmos-sdk/crypto/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/format/bundle"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/internal/scratch"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/light"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/store"
)

// Proof is a bundle all of whose hashes and signatures hold.
type Proof struct {
	Settlement job.Settlement
	Chain      string
	Signers    Trust              // hash of the validator set that signed for the settlement
	Anchor     light.TrustedBlock // that they signed
	By         string             // what that is trusted by, as Roots.Check says; "": nothing
	Lease      *job.Lease
	Job        *replay.Job

	bundle *bundle.Bundle
}

// Room is the memory in bytes that Check takes at most above four times the size of a bundle without its
// records: each other part is in memory at most four times at once. Records are mapped.
const Room = 256 << 20

// Limits on entries in bytes: what the chain takes as a transaction, and the
// digits of a number.
const (
	maxTx     = 256 << 10
	maxDigits = 20
	maxEntry  = store.MaxSize // of any other
)

// recordRoom is the memory in bytes that a record may take, besides twice its
// size: one that was settled takes less than twice.
const recordRoom = 64 << 20

// ErrUnchecked says that a bundle could not be executed here. That tells nothing about it.
var ErrUnchecked = errors.New("not checked here")

// Check reads a bundle and checks everything that can be checked without
// executing the work. The anchor comes first: unless the validator set that
// signed it is believed (Trust.Is, or Anybody), nothing else is decoded. The
// executor should be engine.Bounded: the order's programs are refused if it
// refuses them. It ends soon after ctx.
func Check(ctx context.Context, src io.ReaderAt, size int64, believed func(Trust) bool, exec engine.Executor) (*Proof, error) {
	return check(ctx, src, size, ofBundle(believed), exec)
}

func check(ctx context.Context, src io.ReaderAt, size int64, anchored func(*bundle.Bundle) (anchor, error), exec engine.Executor) (*Proof, error) {
	b, err := bundle.Open(stoppable{ctx, src}, size)
	if err != nil {
		return nil, err
	}
	p := &Proof{bundle: b}
	a, err := anchored(b)
	if err != nil {
		return nil, err
	}
	p.Settlement, p.Chain, p.Signers, p.Anchor = a.settlement, a.chain, a.signers, light.FromLightBlock(a.block)
	if err := p.checkRecord(); err != nil {
		return nil, err
	}
	if err := p.checkOrder(); err != nil {
		return nil, err
	}
	if err := p.checkReceipts(); err != nil {
		return nil, err
	}
	if err := p.checkStates(); err != nil {
		return nil, err
	}
	p.Job, err = replay.Load(ctx, &p.Lease.Order.Problem, replay.Files{Read: p.File, Part: p.part, Folder: scratch.TempDir()}, exec)
	if err == nil {
		err = p.Job.CheckRecords(ctx)
	}
	var large *engine.LargeError
	var unfit *replay.UnfitError
	switch {
	case errors.As(err, &large):
		return nil, fmt.Errorf("%w: nothing was executed, for %w", ErrUnchecked, large)
	case errors.As(err, &unfit):
		return nil, wrong("%v", err)
	case err != nil: // of this machine
		return nil, fmt.Errorf("%w: %w", ErrUnchecked, err)
	}
	return p, nil
}

// stoppable is a file that fails once ctx is done.
type stoppable struct {
	ctx context.Context
	src io.ReaderAt
}

// ReadAt implements io.ReaderAt.
func (s stoppable) ReadAt(b []byte, at int64) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.src.ReadAt(b, at)
}

func (p *Proof) read(name string) ([]byte, error) { return p.bundle.Read(name, maxEntry) }

// checkRecord checks the lease's record against its settlement, and that the
// bundle holds what the record calls for and nothing else.
func (p *Proof) checkRecord() error {
	raw, err := p.read(entryRecord)
	if err != nil {
		return err
	}
	if canon.Sum(canon.DomainRecord, raw) != p.Settlement.Record { // before anything of it is decoded
		return wrong("the record is not the one that was settled")
	}
	l := &job.Lease{}
	if err := canon.UnmarshalWithin(raw, l, 2*len(raw)+recordRoom); err != nil {
		return wrong("record: %v", err)
	}
	o := &l.Order
	if err := o.Check(); err != nil {
		return wrong("order: %v", err)
	}
	if len(l.Units) != o.Problem.Units() || len(l.Merges) != o.Problem.Rounds || l.Round > o.Problem.Rounds || len(l.Leads) == 0 {
		return wrong("the record has %d units and %d merges", len(l.Units), len(l.Merges))
	}
	if s := &p.Settlement; s.Order != o.ID() || s.Start != o.Problem.Start || s.Final != l.FinalRoot() {
		return wrong("the record is of another order than the settlement")
	}
	if l.Round == 0 {
		return wrong("no round was merged, so nothing was trained")
	}
	if o.Chain != p.Chain {
		return wrong("the order is for chain %q, the header of chain %q", o.Chain, p.Chain)
	}
	if err := l.Check(); err != nil {
		return wrong("record: %v", err)
	}
	p.Lease = l
	return p.checkEntries()
}

// checkEntries compares the entries with what the record calls for. States may
// be a million, so their names are made one by one.
func (p *Proof) checkEntries() error {
	roots := states(p.Lease)
	need := fixed(p.Lease)
	for _, e := range p.bundle.Entries() {
		for len(roots) > 0 && stateEntry(roots[0]) < e.Name {
			return wrong("entry %q is missing", stateEntry(roots[0]))
		}
		switch {
		case need[e.Name]:
			delete(need, e.Name)
		case len(roots) > 0 && e.Name == stateEntry(roots[0]):
			roots = roots[1:]
		default:
			return wrong("entry %q belongs to nothing", e.Name)
		}
	}
	for name := range need {
		return wrong("entry %q is missing", name)
	}
	if len(roots) > 0 {
		return wrong("entry %q is missing", stateEntry(roots[0]))
	}
	return nil
}

// checkOrder checks the consumer's signature of the order.
func (p *Proof) checkOrder() error {
	raw, err := p.bundle.Read(entryOrder, maxTx)
	if err != nil {
		return err
	}
	number, err := p.bundle.Read(entryNumber, maxDigits)
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil || strconv.FormatUint(n, 10) != string(number) {
		return wrong("account number %.20q", number)
	}
	enc, err := app.NewEncoding()
	if err != nil {
		return err
	}
	tx, err := enc.Tx.TxDecoder()(raw)
	if err != nil {
		return wrong("the order's transaction: %v", err)
	}
	for _, m := range tx.GetMsgs() { // others may have been posted with it
		m, ok := m.(*marketv1.MsgPostOrder)
		if !ok {
			continue
		}
		if o, err := wire.OrderFromProto(&m.Order); err == nil && o.ID() == p.Settlement.Order {
			return checkSignature(enc, raw, p.Chain, o.Consumer, n)
		}
	}
	return wrong("the transaction posts another order")
}

func checkSignature(enc app.Encoding, raw []byte, chain, consumer string, number uint64) error {
	var tx txtypes.TxRaw
	if err := strict(raw, &tx); err != nil {
		return wrong("the order's transaction: %v", err)
	}
	var auth txtypes.AuthInfo
	if err := enc.Codec.Unmarshal(tx.AuthInfoBytes, &auth); err != nil {
		return wrong("the order's transaction: %v", err)
	}
	if len(tx.Signatures) != 1 || len(auth.SignerInfos) != 1 {
		return wrong("the order's transaction has %d signatures", len(tx.Signatures))
	}
	var key cryptotypes.PubKey
	if err := enc.Registry.UnpackAny(auth.SignerInfos[0].PublicKey, &key); err != nil || key == nil {
		return wrong("the order's transaction names no key (%v)", err)
	}
	mode := auth.SignerInfos[0].ModeInfo.GetSingle()
	if mode == nil || mode.Mode != signing.SignMode_SIGN_MODE_DIRECT {
		return wrong("the order is not signed in direct mode")
	}
	doc := txtypes.SignDoc{BodyBytes: tx.BodyBytes, AuthInfoBytes: tx.AuthInfoBytes, ChainId: chain, AccountNumber: number}
	message, err := doc.Marshal()
	if err != nil {
		return err
	}
	if sdk.AccAddress(key.Address()).String() != consumer || !key.VerifySignature(message, tx.Signatures[0]) {
		return wrong("the order is not signed by its consumer %s", consumer)
	}
	return nil
}

// checkReceipts checks the providers' signatures, and that receipts and merges
// form one chain from the start state to the final root.
func (p *Proof) checkReceipts() error {
	l := p.Lease
	id := l.Order.ID()
	for i := range l.Units {
		u := &l.Units[i]
		if u.Receipt == nil {
			continue
		}
		r := u.Receipt
		if r.Order != id || r.Unit != i || r.Provider != u.Provider || len(r.Checkpoints) != l.Order.Problem.Segments()+1 || r.Checkpoints[0] != r.Start {
			return wrong("the receipt of unit %d is for other work", i)
		}
		party := partyOf(l, r.Provider)
		if party == nil || len(party.Key) != ed25519.PublicKeySize || !ed25519.Verify(party.Key, r.SignBytes(), u.Proof) {
			return wrong("the receipt of unit %d is not signed by %s", i, r.Provider)
		}
	}
	shards := l.Order.Problem.Shards
	for r, m := range l.Merges[:l.Round] {
		if len(m.Inputs) != shards {
			return wrong("round %d merges %d states", r, len(m.Inputs))
		}
		for s, in := range m.Inputs {
			if u := &l.Units[l.Unit(r, s)]; u.Receipt == nil || l.Order.Problem.End(u.Receipt) != in {
				return wrong("round %d does not merge what unit %d ended in", r, l.Unit(r, s))
			}
		}
		if !l.Order.Problem.Merges() && m.Root != canon.Root(m.Inputs) {
			return wrong("round %d does not end in the root over the ends of its units", r)
		}
	}
	return nil
}

func partyOf(l *job.Lease, account string) *job.Party {
	for i := range l.Providers {
		if l.Providers[i].Account == account {
			return &l.Providers[i]
		}
	}
	return nil
}

// checkStates checks every state against its root, and every file against the
// CID that the order names.
func (p *Proof) checkStates() error {
	for _, f := range p.Lease.Order.Problem.Files {
		if err := p.checkFile(f); err != nil {
			return err
		}
	}
	for _, root := range states(p.Lease) {
		if _, err := p.state(root); err != nil {
			return wrong("%v", err)
		}
	}
	return nil
}

// checkFile checks a file of the order, without holding it.
func (p *Proof) checkFile(f job.File) error {
	want, err := blobs.RefOf(f)
	if err != nil {
		return err
	}
	in, err := p.open(f)
	if err != nil {
		return err
	}
	got, err := store.ListBlocks(in)
	if err == nil && got.Ref != want {
		err = wrong("file %q is not the one that the order names", f.Role)
	}
	return err
}

// File returns a file of the order.
func (p *Proof) File(f job.File) ([]byte, error) { return p.read(fileEntry(f.Role)) }

// open returns what reads a file of the order.
func (p *Proof) open(f job.File) (*io.SectionReader, error) {
	return p.bundle.Section(fileEntry(f.Role))
}

// part returns what reads n bytes of a file of the order, from byte at on.
func (p *Proof) part(_ context.Context, f job.File, at, n int64) (io.Reader, error) {
	in, err := p.open(f)
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(in, at, n), nil
}

// state returns the state with the given root.
func (p *Proof) state(root canon.Hash) (*graph.State, error) {
	if root == p.Lease.Order.Problem.Start {
		return p.Job.Start, nil
	}
	b, err := p.read(stateEntry(root))
	if err != nil {
		return nil, err
	}
	s, err := replay.ReadState(b, root, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, fmt.Errorf("state %s: %w", root.Short(), err)
	}
	return s, nil
}
