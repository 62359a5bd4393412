package bench

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtcrypto "github.com/cometbft/cometbft/proto/tendermint/crypto"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmtversion "github.com/cometbft/cometbft/proto/tendermint/version"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/cometbft/cometbft/version"
	dbm "github.com/cosmos/cosmos-db"

	"cosmossdk.io/log/v2"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	"github.com/cosmos/cosmos-sdk/store/v2/rootmulti"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"

	"github.com/tally-network/tally/chain/wire"
	workmod "github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/bundle"
	"github.com/tally-network/tally/format/onnx"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/model/zoo"
	"github.com/tally-network/tally/node/evidence"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/store"
)

// forger makes proof bundles as an attacker would who has no chain to sign for
// it: of a chain of its own, whose only validator, consumer and provider it is.
// All its signatures and proofs are right, so that what is hostile is read.
type forger struct {
	validator cmted25519.PrivKey
	consumer  *secp256k1.PrivKey
	provider  ed25519.PrivateKey
	random    *rand.Rand

	job   *replay.Job
	model *graph.Graph
	whole *forgery // honest but for its chain
}

// forgery is a bundle in the making.
type forgery struct {
	lease      job.Lease
	entries    map[string][]byte // what is there stays, the rest is made
	settlement []byte            // if not the lease's
}

const forgedChain = "forged"

// newForger trains one step of a tiny model, and makes an order of it.
func newForger(ctx context.Context, seed uint64) (*forger, error) {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	f := &forger{
		validator: cmted25519.GenPrivKeyFromSecret(key[:]), consumer: secp256k1.GenPrivKeyFromSecret(key[:]), provider: ed25519.NewKeyFromSeed(key[:]),
		random: rand.New(rand.NewChaCha8(key)),
	}
	gpt := zoo.GPT{Vocab: 4, Context: 4, Width: 4, Layers: 1, Heads: 1, Seed: 1}
	model, err := gpt.Graph(2)
	if err != nil {
		return nil, err
	}
	file, err := onnx.Write(model)
	if err != nil {
		return nil, err
	}
	if f.model, err = onnx.Read(bytes.NewReader(file), int64(len(file)), onnx.Options{}); err != nil {
		return nil, err
	}
	data := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{4, 5}))
	recipe := train.Recipe{Loss: "next-token-cross-entropy", Optimizer: "sgd", Rate: train.Rate{LearningRate: 0.01}, Batch: 2}
	if f.job, err = replay.New(ctx, replay.Inputs{Model: f.model, Recipe: recipe, Data: data}, 1, cpu.New(1)); err != nil {
		return nil, err
	}
	f.whole = &forgery{entries: map[string][]byte{"order/account": []byte("0")}}
	o := &f.whole.lease.Order
	*o = job.Order{
		Chain: forgedChain, Consumer: sdk.AccAddress(f.consumer.PubKey().Address()).String(), Contact: job.Contact{Key: key[:]},
		Problem: job.Problem{Rounds: 1, Steps: 1, Interval: 1},
		Conditions: job.Conditions{
			MaxPrice: 1_000_000_000, Expires: 600_000, MinProviders: 1, Custodians: 1, UnitTimeout: 3_600_000, UnitWindow: 600_000, Window: 600_000,
		},
	}
	if err := f.job.Bind(&o.Problem); err != nil {
		return nil, err
	}
	f.whole.file(replay.RoleModel, file)
	f.whole.file(replay.RoleData, canon.Encode(data.Encode))
	return f, f.finish(ctx)
}

// file adds a file of the order.
func (y *forgery) file(role string, b []byte) {
	p := &y.lease.Order.Problem
	p.Files = slices.DeleteFunc(slices.Clone(p.Files), func(f job.File) bool { return f.Role == role })
	ref := store.RefOf(b)
	p.Files = append(p.Files, job.File{Role: role, CID: ref.CID.String(), Size: uint64(ref.Size)})
	y.entries["file/"+role] = b
}

// finish computes the only unit and writes the lease as it would have ended.
func (f *forger) finish(ctx context.Context) error {
	l := &f.whole.lease
	end, err := f.job.UnitOf(&l.Order.Problem, 0).Play(ctx, f.job.Start, 0, 1, nil)
	if err != nil {
		return err
	}
	merged, err := f.job.MergeStates(ctx, []*graph.State{end})
	if err != nil {
		return err
	}
	var roots [2]canon.Hash
	for i, s := range []*graph.State{end, merged} {
		if roots[i], err = s.Root(); err != nil {
			return err
		}
		f.whole.entries["state/"+roots[i].String()] = canon.Encode(s.Encode)
	}
	l.Params, l.Phase, l.Round = job.DefaultParams.WithoutForced(), job.Settled, 1
	l.Count.Begun, l.Files.Said = true, job.Had
	l.Leads = []job.Leader{{Account: "lead"}}
	l.Providers = []job.Party{{Account: "provider", Key: f.provider.Public().(ed25519.PublicKey)}}
	l.Units = []job.Unit{{Status: job.Accepted, Provider: "provider", Receipt: &job.Receipt{
		Order: l.Order.ID(), Provider: "provider", Start: l.Order.Problem.Start, Checkpoints: []canon.Hash{l.Order.Problem.Start, roots[0]},
	}, Attested: []job.Attestation{{Custodian: "custodian"}}}}
	l.Merges = []job.Merge{{By: "lead", Root: roots[1], Inputs: []canon.Hash{roots[0]}}}
	return nil
}

// copied returns a forgery that can be changed: lists of the lease are shared
// until they are replaced.
func (f *forger) copied() *forgery {
	y := &forgery{lease: f.whole.lease, entries: map[string][]byte{}}
	for name, b := range f.whole.entries {
		y.entries[name] = b
	}
	y.lease.Units = slices.Clone(y.lease.Units)
	r := *y.lease.Units[0].Receipt
	y.lease.Units[0].Receipt = &r
	y.lease.Merges = slices.Clone(y.lease.Merges)
	return y
}

// bundle signs and anchors what is not there yet, and writes the file.
func (f *forger) bundle(y *forgery) ([]byte, error) {
	l := &y.lease
	id := l.Order.ID()
	for i := range l.Units {
		if r := l.Units[i].Receipt; r != nil {
			r.Order = id
			l.Units[i].Proof = ed25519.Sign(f.provider, r.SignBytes())
		}
	}
	put := func(name string, make func() ([]byte, error)) (err error) {
		if y.entries[name] == nil {
			y.entries[name], err = make()
		}
		return err
	}
	if err := put("record", func() ([]byte, error) { return l.Record(), nil }); err != nil {
		return nil, err
	}
	if y.settlement == nil {
		s := job.Settlement{Order: id, Start: l.Order.Problem.Start, Final: l.FinalRoot(), Record: canon.Sum(canon.DomainRecord, y.entries["record"])}
		y.settlement = canon.Marshal(&s)
	}
	if err := put("anchor/settlement", func() ([]byte, error) { return y.settlement, nil }); err != nil {
		return nil, err
	}
	if err := put("anchor/position", func() ([]byte, error) { return canon.Marshal(&canon.Position{}), nil }); err != nil {
		return nil, err
	}
	var all canon.Accumulator
	all.Append(wire.SettlementLeaf(y.settlement))
	accumulator := canon.Marshal(&all)
	if err := put("anchor/accumulator", func() ([]byte, error) { return accumulator, nil }); err != nil {
		return nil, err
	}
	proof, app, err := anchored(accumulator)
	if err != nil {
		return nil, err
	}
	if err := put("anchor/proof", func() ([]byte, error) { return proof, nil }); err != nil {
		return nil, err
	}
	if err := put("anchor/block", func() ([]byte, error) { return f.block(app) }); err != nil {
		return nil, err
	}
	if err := put("order/tx", func() ([]byte, error) { return f.posted(&l.Order, nil) }); err != nil {
		return nil, err
	}
	return container(y.entries)
}

func container(entries map[string][]byte) ([]byte, error) {
	var all []bundle.Content
	for name, b := range entries {
		all = append(all, bundle.Bytes(name, b))
	}
	slices.SortFunc(all, func(a, b bundle.Content) int { return strings.Compare(a.Name, b.Name) })
	var out bytes.Buffer
	err := bundle.Write(&out, all)
	return out.Bytes(), err
}

// anchored puts a record of settlements into a state like a chain's, and proves it.
func anchored(accumulator []byte) (proof, app []byte, err error) {
	s := rootmulti.NewStore(dbm.NewMemDB(), log.NewNopLogger())
	key := storetypes.NewKVStoreKey(workmod.Name)
	s.MountStoreWithDB(key, storetypes.StoreTypeIAVL, nil)
	if err := s.LoadLatestVersion(); err != nil {
		return nil, nil, err
	}
	s.GetKVStore(key).Set(wire.AccumulatorKey(), accumulator)
	id := s.Commit()
	r, err := s.Query(&storetypes.RequestQuery{Path: "/" + workmod.Name + "/key", Data: wire.AccumulatorKey(), Height: id.Version, Prove: true})
	if err != nil {
		return nil, nil, err
	}
	proof, err = (&cmtcrypto.ProofOps{Ops: r.ProofOps.Ops}).Marshal()
	return proof, id.Hash, err
}

// block is a block of the forger's chain that commits to a state.
func (f *forger) block(app []byte) ([]byte, error) {
	set := cmttypes.NewValidatorSet([]*cmttypes.Validator{cmttypes.NewValidator(f.validator.PubKey(), 1)})
	at := time.Unix(1_700_000_000, 0).UTC()
	h := &cmttypes.Header{
		Version: cmtversion.Consensus{Block: version.BlockProtocol}, ChainID: forgedChain, Height: 2, Time: at,
		ValidatorsHash: set.Hash(), NextValidatorsHash: set.Hash(), AppHash: app, ProposerAddress: f.validator.PubKey().Address(),
	}
	id := cmttypes.BlockID{Hash: h.Hash(), PartSetHeader: cmttypes.PartSetHeader{Total: 1, Hash: h.Hash()}}
	vote := cmttypes.Vote{Type: cmtproto.PrecommitType, Height: 2, BlockID: id, Timestamp: at, ValidatorAddress: f.validator.PubKey().Address()}
	signature, err := f.validator.Sign(cmttypes.VoteSignBytes(forgedChain, vote.ToProto()))
	if err != nil {
		return nil, err
	}
	vote.Signature = signature
	commit := &cmttypes.Commit{Height: 2, BlockID: id, Signatures: []cmttypes.CommitSig{vote.CommitSig()}}
	m, err := (&cmttypes.LightBlock{SignedHeader: &cmttypes.SignedHeader{Header: h, Commit: commit}, ValidatorSet: set}).ToProto()
	if err != nil {
		return nil, err
	}
	return m.Marshal()
}

// posted is the signed transaction that posts an order, with more messages.
func (f *forger) posted(o *job.Order, more []*codectypes.Any) ([]byte, error) {
	message, err := codectypes.NewAnyWithValue(&marketv1.MsgPostOrder{Order: wire.OrderToProto(o)})
	if err != nil {
		return nil, err
	}
	key, err := codectypes.NewAnyWithValue(f.consumer.PubKey())
	if err != nil {
		return nil, err
	}
	body, err := (&txtypes.TxBody{Messages: append([]*codectypes.Any{message}, more...)}).Marshal()
	if err != nil {
		return nil, err
	}
	direct := &txtypes.ModeInfo{Sum: &txtypes.ModeInfo_Single_{Single: &txtypes.ModeInfo_Single{Mode: signing.SignMode_SIGN_MODE_DIRECT}}}
	auth, err := (&txtypes.AuthInfo{SignerInfos: []*txtypes.SignerInfo{{PublicKey: key, ModeInfo: direct}}, Fee: &txtypes.Fee{}}).Marshal()
	if err != nil {
		return nil, err
	}
	doc, err := (&txtypes.SignDoc{BodyBytes: body, AuthInfoBytes: auth, ChainId: o.Chain}).Marshal()
	if err != nil {
		return nil, err
	}
	signature, err := f.consumer.Sign(doc)
	if err != nil {
		return nil, err
	}
	return (&txtypes.TxRaw{BodyBytes: body, AuthInfoBytes: auth, Signatures: [][]byte{signature}}).Marshal()
}

// craft makes a bundle of about so many bytes that is hostile in one way, and
// says in which.
func (f *forger) craft(kind, size int) (b []byte, name string, err error) {
	h := hostile[kind%len(hostile)]
	y := f.copied()
	if err := h.change(f, y, size); err != nil {
		return nil, h.name, fmt.Errorf("craft %s: %w", h.name, err)
	}
	b, err = f.bundle(y)
	return b, h.name, err
}

// entries reads all of a bundle.
func entries(b []byte) (map[string][]byte, error) {
	in, err := bundle.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, e := range in.Entries() {
		if out[e.Name], err = in.Read(e.Name, e.Size); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Stopped is like SelfMade, of an order of eight rounds that stopped after the first.
func Stopped(ctx context.Context, reason string) ([]byte, error) {
	f, err := newForger(ctx, 1)
	if err != nil {
		return nil, err
	}
	y := f.copied()
	y.lease.Order.Problem.Rounds = 8
	y.lease.Reason = reason
	y.lease.Units = slices.Concat(y.lease.Units, make([]job.Unit, 7))
	y.lease.Merges = slices.Concat(y.lease.Merges, make([]job.Merge, 7))
	for i := range y.lease.Units[1:] {
		y.lease.Units[1+i].Status = job.Open
	}
	y.lease.Recount()
	return f.bundle(y)
}

// SelfMade returns a bundle that holds in every way, of a chain that nobody but its
// maker knows, and the hash of its validator set.
func SelfMade(ctx context.Context) ([]byte, evidence.Trust, error) {
	f, err := newForger(ctx, 1)
	if err != nil {
		return nil, evidence.Trust{}, err
	}
	set := cmttypes.NewValidatorSet([]*cmttypes.Validator{cmttypes.NewValidator(f.validator.PubKey(), 1)})
	b, err := f.bundle(f.copied())
	return b, evidence.Trust(set.Hash()), err
}
