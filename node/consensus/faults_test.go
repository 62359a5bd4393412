package consensus_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	cmtdb "github.com/cometbft/cometbft-db"
	abci "github.com/cometbft/cometbft/abci/types"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/x/policy"
	"github.com/tally-network/tally/chain/x/seats"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/node/consensus"
)

const (
	recoveryTimeout = 30 * time.Second // within which a network goes on after healing
	maxGap          = time.Second      // what a pause counts
	faulty          = 6                // the node with faults of its own: 7 of 28 votes
)

// faults are the faults of a node. It has those that are set.
type faults struct {
	skew      atomic.Int64 // of its clock, in ns
	contrary  atomic.Bool  // it finds every proposal wrong
	proofless atomic.Bool  // it leaves the proof of the beacon's value out of its proposals
	spoilt    atomic.Int64 // height of the last such proposal
	full      atomic.Bool  // its disk
}

// inject gives a node its faults.
func (v *faults) inject(c *consensus.Config) {
	c.SignBy(func(pv cmttypes.PrivValidator) cmttypes.PrivValidator { return skewed{pv, v} })
	c.AnswerBy(func(a abci.Application) abci.Application { return faultyApp{a, v} })
	c.StoreBy(func(db cmtdb.DB) cmtdb.DB { return fullDisk{db, v} })
}

// skewed signs by a clock that goes wrong.
type skewed struct {
	cmttypes.PrivValidator
	v *faults
}

// SignVote implements cmttypes.PrivValidator.
func (s skewed) SignVote(chainID string, vote *cmtproto.Vote) error {
	vote.Timestamp = vote.Timestamp.Add(time.Duration(s.v.skew.Load()))
	return s.PrivValidator.SignVote(chainID, vote)
}

// faultyApp judges and makes proposals as no honest node does.
type faultyApp struct {
	abci.Application
	v *faults
}

// ProcessProposal implements abci.Application.
func (p faultyApp) ProcessProposal(ctx context.Context, r *abci.RequestProcessProposal) (*abci.ResponseProcessProposal, error) {
	if p.v.contrary.Load() {
		return &abci.ResponseProcessProposal{Status: abci.ResponseProcessProposal_REJECT}, nil
	}
	if p.v.proofless.Load() { // it likes what it proposes itself
		return &abci.ResponseProcessProposal{Status: abci.ResponseProcessProposal_ACCEPT}, nil
	}
	return p.Application.ProcessProposal(ctx, r)
}

// PrepareProposal implements abci.Application.
func (p faultyApp) PrepareProposal(ctx context.Context, r *abci.RequestPrepareProposal) (*abci.ResponsePrepareProposal, error) {
	made, err := p.Application.PrepareProposal(ctx, r)
	if err == nil && p.v.proofless.Load() && len(made.Txs) > 0 {
		made.Txs = made.Txs[1:]
		p.v.spoilt.Store(r.Height)
	}
	return made, err
}

// fullDisk is a database on a disk that may be full.
type fullDisk struct {
	cmtdb.DB
	v *faults
}

func (s fullDisk) room() error {
	if s.v.full.Load() {
		return &os.PathError{Op: "write", Path: "000001.log", Err: syscall.ENOSPC}
	}
	return nil
}

// Set implements cmtdb.DB.
func (s fullDisk) Set(k, v []byte) error {
	if err := s.room(); err != nil {
		return err
	}
	return s.DB.Set(k, v)
}

// SetSync implements cmtdb.DB.
func (s fullDisk) SetSync(k, v []byte) error {
	if err := s.room(); err != nil {
		return err
	}
	return s.DB.SetSync(k, v)
}

// NewBatch implements cmtdb.DB.
func (s fullDisk) NewBatch() cmtdb.Batch { return fullDiskBatch{s.DB.NewBatch(), s} }

type fullDiskBatch struct {
	cmtdb.Batch
	s fullDisk
}

// Write implements cmtdb.Batch.
func (b fullDiskBatch) Write() error {
	if err := b.s.room(); err != nil {
		return err
	}
	return b.Batch.Write()
}

// WriteSync implements cmtdb.Batch.
func (b fullDiskBatch) WriteSync() error {
	if err := b.s.room(); err != nil {
		return err
	}
	return b.Batch.WriteSync()
}

// faultNetwork is a network of seven validators with 1 to 7 votes, to which things happen.
type faultNetwork struct {
	*network
	*testing.T
	wires  wires
	faulty *faults
}

func newFaultNetwork(t *testing.T) *faultNetwork {
	h := &faultNetwork{T: t, faulty: &faults{}, network: newNetwork(t, t.TempDir(), faulty+1, func(g *app.Genesis) {
		g.Block.MaxGapMs = maxGap.Milliseconds()
		g.Epoch, g.Seats.Params, g.Policy = 6, seats.DefaultParams(), policy.DefaultParams()
		for i := range g.Validators {
			g.Validators[i].Votes, g.Validators[i].Bond = int64(i+1), 100_000*tally
		}
	})}
	for i := range h.configs {
		h.configs[i].CommitTimeout = 20 * time.Millisecond
	}
	h.wires = h.lay(t)
	h.faulty.inject(&h.configs[faulty])
	h.start(t)
	h.waitHeight(t, 2)
	return h
}

// down stops nodes, as a kill does but for what they hold in memory.
func (h *faultNetwork) down(nodes ...int) {
	h.Helper()
	for _, i := range nodes {
		if err := h.nodes[i].Stop(); err != nil {
			h.Error(err)
		}
		h.nodes[i] = nil
	}
}

// up starts the nodes that do not run.
func (h *faultNetwork) up() {
	h.Helper()
	for i, n := range h.nodes {
		if n != nil {
			continue
		}
		n, err := consensus.Start(context.Background(), h.configs[i])
		if err != nil {
			h.Fatal(err)
		}
		h.nodes[i] = n
	}
}

// height returns that of the highest of nodes.
func (h *faultNetwork) height(nodes ...int) (top int64) {
	for _, i := range nodes {
		top = max(top, h.nodes[i].Height())
	}
	return top
}

// running returns the nodes that run, but some.
func (h *faultNetwork) running(but ...int) (out []int) {
	for i, n := range h.nodes {
		if n != nil && !slices.Contains(but, i) {
			out = append(out, i)
		}
	}
	return out
}

// goesOn waits until nodes have three blocks more than any of them has now.
func (h *faultNetwork) goesOn(nodes ...int) {
	h.Helper()
	want := h.height(nodes...) + 3
	for _, i := range nodes {
		within(h.T, recoveryTimeout, "new blocks", func() bool { return h.nodes[i].Height() >= want })
	}
}

// halts waits until nodes have made no block for longer than a pause counts.
func (h *faultNetwork) halts(nodes ...int) {
	h.Helper()
	within(h.T, recoveryTimeout, "halt", func() bool {
		for _, i := range nodes {
			if s, err := h.nodes[i].Client().Status(h.Context()); err != nil || time.Since(s.SyncInfo.LatestBlockTime) < 4*maxGap {
				return false
			}
		}
		return true
	})
}

// block returns a block of a node.
func (h *faultNetwork) block(node int, height int64) *cmttypes.Block {
	h.Helper()
	b, err := h.nodes[node].Client().Block(h.Context(), &height)
	if err != nil || b.Block == nil {
		h.Fatalf("block %d of node %d: %v", height, node, err)
	}
	return b.Block
}

// agrees compares all blocks of all nodes from a height on. A block names the app's state after the one before.
func (h *faultNetwork) agrees(from int64) {
	h.Helper()
	nodes := h.running()
	for _, i := range nodes[1:] {
		for height := from; height <= min(h.nodes[nodes[0]].Height(), h.nodes[i].Height()); height++ {
			if a, b := h.block(nodes[0], height), h.block(i, height); a.Hash().String() != b.Hash().String() {
				h.Fatalf("height %d: node %d has %v, and node %d has %v", height, nodes[0], a, i, b)
			}
		}
	}
}

// clocks checks that protocol time has lost what pauses were longer than may count, and nothing else.
func (h *faultNetwork) clocks() (lost int64) {
	h.Helper()
	now, err := blockv1.NewQueryClient(dial(h.T, h.nodes[0])).Now(h.Context(), &blockv1.QueryNowRequest{})
	if err != nil {
		h.Fatal(err)
	}
	before := h.block(0, 1).Time
	for height := int64(2); height <= now.Height; height++ {
		at := h.block(0, height).Time
		if !at.After(before) {
			h.Fatalf("time runs backwards at height %d", height)
		}
		lost += max(0, at.UnixMilli()-before.UnixMilli()-maxGap.Milliseconds())
		before = at
	}
	if now.LostMs != lost || now.TimeMs != before.UnixMilli()-lost {
		h.Fatalf("at height %d %d ms do not count, want %d", now.Height, now.LostMs, lost)
	}
	return lost
}

// transferUntil sends transferUntil by a node until done is reached: an idle chain draws nothing, and needs no proof.
func (h *faultNetwork) transferUntil(node int, what string, done func() bool) {
	h.Helper()
	within(h.T, 2*recoveryTimeout, what, func() bool {
		tx := transfer(h.T, h.nodes[node], chaintest.ChainID, alice, bob, 1)
		_, _ = h.nodes[node].Client().BroadcastTxSync(h.Context(), tx) // the one before may wait still
		height := h.nodes[node].Height()
		within(h.T, recoveryTimeout, "block", func() bool { return h.nodes[node].Height() > height })
		return done()
	})
}

// Whatever happens to a network, no two nodes have different blocks, and it goes on soon after it is mended.
func TestNetworkRecoversFromFaults(t *testing.T) {
	h := newFaultNetwork(t)
	few, many := []int{1, faulty}, []int{1, faulty, 0} // 9 and 10 of 28 votes: less and more than a third
	for _, fault := range []struct {
		name  string
		harm  func(h *faultNetwork)
		mend  func(h *faultNetwork)
		after func(h *faultNetwork)
	}{
		{"less than a third is down", func(h *faultNetwork) { h.down(few...); h.goesOn(h.running()...) }, (*faultNetwork).up, nil},
		{"more than a third is down", func(h *faultNetwork) { h.down(many...); h.halts(h.running()...) }, (*faultNetwork).up, func(h *faultNetwork) {
			if lost := h.clocks(); lost < 2*maxGap.Milliseconds() {
				h.Errorf("a halt took %d ms from no clock", lost)
			}
		}},
		{"two halves, cut apart", func(h *faultNetwork) { h.wires.split(cut, 0, 1, 2, 4, 5); h.halts(h.running()...) }, (*faultNetwork).heal, nil},
		{"two halves, silent", func(h *faultNetwork) { h.wires.split(silent, 0, 1, 2, 4, 5); h.halts(h.running()...) }, (*faultNetwork).heal, nil},
		{"one is cut off", func(h *faultNetwork) { h.wires.split(cut, faulty); h.halts(faulty); h.goesOn(h.running(faulty)...) }, (*faultNetwork).heal, nil},
		{"a clock ahead", skew(time.Minute), skew(0), nil},
		{"a clock behind", skew(-time.Minute), skew(0), nil},
		{"votes for nil", func(h *faultNetwork) { h.faulty.contrary.Store(true); h.goesOn(h.running()...) }, func(h *faultNetwork) { h.faulty.contrary.Store(false) }, nil},
		{"proposals without a proof", (*faultNetwork).proofless, func(h *faultNetwork) { h.faulty.proofless.Store(false) }, nil},
		{"a full disk", (*faultNetwork).fill, (*faultNetwork).empty, nil},
	} {
		if !t.Run(fault.name, func(t *testing.T) {
			h := &faultNetwork{h.network, t, h.wires, h.faulty}
			from := h.height(h.running()...)
			fault.harm(h)
			fault.mend(h)
			h.goesOn(h.running()...)
			h.agrees(from)
			if fault.after != nil {
				fault.after(h)
			}
		}) {
			return
		}
	}
	t.Run("one signs twice", func(t *testing.T) { (&faultNetwork{h.network, t, h.wires, h.faulty}).equivocate() })
	h.agrees(1)
	h.clocks()
}

// heal makes all wires whole.
func (h *faultNetwork) heal() { h.wires.mend() }

// skew makes the faulty node's clock go wrong by d, and checks that the time of blocks stays right.
func skew(d time.Duration) func(*faultNetwork) {
	return func(h *faultNetwork) {
		h.faulty.skew.Store(int64(d))
		from := h.height(h.running()...) + 2
		h.goesOn(h.running()...)
		if at := h.block(0, from).Time; time.Since(at).Abs() > time.Minute/2 {
			h.Errorf("a clock that is wrong by %s makes a block of %s now, at %s", d, at, time.Now())
		}
	}
}

// proofless has the faulty node leave out the proof, and checks that nobody takes such a block.
func (h *faultNetwork) proofless() {
	h.faulty.proofless.Store(true)
	h.transferUntil(0, "proposal without a proof", func() bool {
		at := h.faulty.spoilt.Load()
		return at > 0 && h.nodes[0].Height() >= at
	})
	at := h.faulty.spoilt.Load()
	within(h.T, recoveryTimeout, "block in its place", func() bool { return h.nodes[0].Height() >= at })
	if by := h.block(0, at).ProposerAddress; by.String() == h.address(faulty) {
		h.Errorf("block %d, without its proof, was taken", at)
	}
}

// address returns the consensus address of a node, as text.
func (h *faultNetwork) address(node int) string {
	h.Helper()
	id, err := consensus.LoadIdentity(h.configs[node].Dir)
	if err != nil {
		h.Fatal(err)
	}
	return cmted25519.PubKey(id.ConsensusKey).Address().String()
}

// fill fills the faulty node's disk. It says why it has ended, and the others go on.
func (h *faultNetwork) fill() {
	h.faulty.full.Store(true)
	select {
	case err := <-h.nodes[faulty].Failed():
		if !strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
			h.Errorf("it does not say why it has ended: %v", err)
		}
		h.Log(err)
	case <-time.After(recoveryTimeout):
		h.Fatal("its disk is full, and it does not end")
	}
	h.goesOn(h.running(faulty)...)
}

// empty makes room on the faulty node's disk, and starts it again.
func (h *faultNetwork) empty() {
	h.down(faulty)
	h.faulty.full.Store(false)
	h.up()
}

// equivocate runs a second node with the faulty node's key, which votes otherwise. The faulty node is convicted and loses its votes.
func (h *faultNetwork) equivocate() {
	c, v := h.configs[faulty], &faults{}
	file := filepath.Join("config", "priv_validator_key.json")
	c.Dir, c.Name, c.Listen, c.Peers = h.TempDir(), "twin", consensus.Addrs{}, nil
	for _, n := range h.nodes[:faulty] {
		c.Peers = append(c.Peers, n.Addrs().P2P)
	}
	v.contrary.Store(true)
	v.inject(&c)
	if _, err := consensus.LoadIdentity(c.Dir); err != nil { // makes what it has signed so far: nothing
		h.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(h.configs[faulty].Dir, file))
	if err == nil {
		err = os.WriteFile(filepath.Join(c.Dir, file), key, 0o600)
	}
	if err != nil {
		h.Fatal(err)
	}
	twin, err := consensus.Start(h.Context(), c)
	if err != nil {
		h.Fatal(err)
	}
	defer func() { _ = twin.Stop() }()
	from, shown := h.height(0), int64(0)
	h.transferUntil(0, "conviction of who signs twice", func() bool {
		for ; shown == 0 && from <= h.nodes[0].Height(); from++ {
			if len(h.block(0, from).Evidence.Evidence) > 0 {
				shown = from
			}
		}
		return shown > 0 && h.unseated()
	})
	h.Logf("evidence in block %d, no votes by block %d", shown, h.nodes[0].Height())
	h.goesOn(h.running()...)
	height := h.height(0)
	within(h.T, recoveryTimeout, "blocks at the twin, which follows", func() bool { return twin.Height() >= height })
}

// unseated reports whether the faulty node is convicted, has lost its bond and has no votes any more.
func (h *faultNetwork) unseated() bool {
	h.Helper()
	r, err := seatsv1.NewQueryClient(dial(h.T, h.nodes[0])).Member(h.Context(), &seatsv1.QueryMemberRequest{Account: chaintest.Named(h.configs[faulty].Name).String()})
	if err != nil {
		h.Fatal(err)
	}
	if m := r.Member; m.Status != seatsv1.STATUS_TOMBSTONED || m.Bond > 0 || m.Votes > 0 {
		return false
	}
	set, err := h.nodes[0].Client().Validators(h.Context(), nil, nil, nil)
	return err == nil && len(set.Validators) == faulty && !slices.ContainsFunc(set.Validators, func(v *cmttypes.Validator) bool { return v.Address.String() == h.address(faulty) })
}
