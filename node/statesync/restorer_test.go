package statesync

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	sm "github.com/cometbft/cometbft/state"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"

	"cosmossdk.io/log/v2"

	pruningtypes "github.com/cosmos/cosmos-sdk/store/v2/pruning/types"
	"github.com/cosmos/cosmos-sdk/store/v2/snapshots"
	snapshottypes "github.com/cosmos/cosmos-sdk/store/v2/snapshots/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	chainheaders "github.com/tally-network/tally/internal/testkit/headers"
)

var alice, bob = chaintest.Named("alice"), chaintest.Named("bob")

func chain(t *testing.T) *chaintest.Chain {
	return chaintest.New(t, chaintest.Fund(1_000_000_000, alice.Name, bob.Name), chaintest.MaxGap(time.Minute))
}

func pay(c *chaintest.Chain) {
	c.Deliver(alice, banktypes.NewMsgSend(alice.Address, bob.Address, coin.Of(1)))
}

// taken is a snapshot with its chunks.
type taken struct {
	*abci.Snapshot
	chunks  [][]byte
	appHash []byte
}

// take has the chain take a snapshot of its newest state.
func take(t *testing.T, c *chaintest.Chain) taken { return takeOf(t, c.App) }

func takeOf(t *testing.T, a *app.App) taken {
	t.Helper()
	s, err := Open(t.TempDir(), 1, a.CommitMultiStore(), log.NewTestLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	s.Take(a.LastBlockHeight())
	s.taking.Wait()
	r, err := s.List()
	if err != nil || len(r.Snapshots) != 1 {
		t.Fatal(r, err)
	}
	out := taken{Snapshot: r.Snapshots[0], appHash: a.LastCommitID().Hash}
	for i := range out.Chunks {
		x, err := s.Load(&abci.RequestLoadSnapshotChunk{Height: out.Height, Format: out.Format, Chunk: i})
		if err != nil {
			t.Fatal(err)
		}
		out.chunks = append(out.chunks, x.Chunk)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// of is a snapshot that claims the block of another, with its own chunks.
func (s taken) of(t *testing.T, chunks ...[]byte) taken {
	t.Helper()
	x := snapshottypes.Snapshot{Height: s.Height, Format: s.Format, Chunks: uint32(len(chunks)), Hash: s.Hash}
	for _, c := range chunks {
		hash := sha256.Sum256(c)
		x.Metadata.ChunkHashes = append(x.Metadata.ChunkHashes, hash[:])
	}
	offer, err := x.ToABCI()
	if err != nil {
		t.Fatal(err)
	}
	return taken{&offer, chunks, s.appHash}
}

// bent is a snapshot whose items were changed; change returns what takes the place of one.
func (s taken) bent(t *testing.T, change func(*snapshottypes.SnapshotItem) []*snapshottypes.SnapshotItem) taken {
	t.Helper()
	in := make(chan io.ReadCloser, len(s.chunks))
	for _, c := range s.chunks {
		in <- io.NopCloser(bytes.NewReader(c))
	}
	close(in)
	from, err := snapshots.NewStreamReader(in)
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan io.ReadCloser)
	go func() {
		to := snapshots.NewStreamWriter(out)
		for {
			x := &snapshottypes.SnapshotItem{}
			if err := from.ReadMsg(x); err != nil {
				_ = to.Close()
				return
			}
			for _, y := range change(x) {
				_ = to.WriteMsg(y)
			}
		}
	}()
	var chunks [][]byte
	for c := range out {
		b, err := io.ReadAll(c)
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, b)
	}
	return s.of(t, chunks...)
}

// node is what restores, with what it tells.
func node(t *testing.T) (*restorer, *[]string) {
	t.Helper()
	told := &[]string{}
	r := &restorer{dir: t.TempDir(), tell: func(format string, _ ...any) { *told = append(*told, format) }, open: func(db dbm.DB) (*app.App, error) {
		return app.New(log.NewNopLogger(), db, chaintest.ChainID)
	}}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	return r, told
}

func (r *restorer) offered(t *testing.T, s taken) abci.ResponseOfferSnapshot_Result {
	t.Helper()
	a, err := r.OfferSnapshot(context.Background(), &abci.RequestOfferSnapshot{Snapshot: s.Snapshot, AppHash: s.appHash})
	if err != nil {
		t.Fatal(err)
	}
	return a.Result
}

func (r *restorer) applied(t *testing.T, i int, chunk []byte) *abci.ResponseApplySnapshotChunk {
	t.Helper()
	a, err := r.ApplySnapshotChunk(context.Background(), &abci.RequestApplySnapshotChunk{Index: uint32(i), Chunk: chunk, Sender: "peer"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

const accept, reject = abci.ResponseApplySnapshotChunk_ACCEPT, abci.ResponseApplySnapshotChunk_REJECT_SNAPSHOT

// restored gives a snapshot to a node, and returns the answer to its last chunk.
func (r *restorer) restored(t *testing.T, s taken) (last abci.ResponseApplySnapshotChunk_Result) {
	t.Helper()
	if got := r.offered(t, s); got != abci.ResponseOfferSnapshot_ACCEPT {
		t.Fatal(got)
	}
	for i, c := range s.chunks {
		if last = r.applied(t, i, c).Result; last != accept {
			return last
		}
	}
	return last
}

// What is claimed is compared before anything is read.
func TestClaimsAreBounded(t *testing.T) {
	c := chain(t)
	truth := take(t, c)
	r, _ := node(t)
	for name, bend := range map[string]func(s *abci.Snapshot){
		"no height":             func(s *abci.Snapshot) { s.Height = 0 },
		"the end of time":       func(s *abci.Snapshot) { s.Height = 1 << 63 },
		"no chunks":             func(s *abci.Snapshot) { s.Chunks, s.Metadata = 0, nil },
		"many chunks":           func(s *abci.Snapshot) { s.Chunks, s.Metadata = 1<<20, make([]byte, 34<<20) },
		"fewer hashes":          func(s *abci.Snapshot) { s.Chunks++ },
		"no hashes":             func(s *abci.Snapshot) { s.Metadata = nil },
		"hashes of no bytes":    func(s *abci.Snapshot) { s.Metadata = bytes.Repeat([]byte{0x0a, 0}, 17) },
		"what is no list":       func(s *abci.Snapshot) { s.Metadata = bytes.Repeat([]byte{0xff}, 34) },
		"something of one list": func(s *abci.Snapshot) { s.Metadata = append([]byte{0x12, 32}, s.Metadata[2:]...) },
	} {
		s := *truth.Snapshot
		bend(&s)
		if got := r.offered(t, taken{&s, nil, truth.appHash}); got != abci.ResponseOfferSnapshot_REJECT {
			t.Errorf("%s: %v", name, got)
		}
	}
	s := *truth.Snapshot
	s.Format++
	if got := r.offered(t, taken{&s, nil, truth.appHash}); got != abci.ResponseOfferSnapshot_REJECT_FORMAT {
		t.Errorf("another format: %v", got)
	}
	if got := r.applied(t, 0, truth.chunks[0]).Result; got != reject {
		t.Errorf("a chunk of what was refused: %v", got)
	}
}

// Lies are refused, and leave nothing: the truth is restored after each of them.
func TestLiesLeaveNothing(t *testing.T) {
	c := chain(t)
	for range 5 {
		pay(c)
	}
	old := take(t, c)
	pay(c)
	truth := take(t, c)
	one := func(change func(n *snapshottypes.SnapshotIAVLItem) bool) func(*snapshottypes.SnapshotItem) []*snapshottypes.SnapshotItem {
		done := false
		return func(i *snapshottypes.SnapshotItem) []*snapshottypes.SnapshotItem {
			if n := i.GetIAVL(); n != nil && !done {
				done = change(n)
			}
			return []*snapshottypes.SnapshotItem{i}
		}
	}
	inner := func(change func(n *snapshottypes.SnapshotIAVLItem)) taken {
		return truth.bent(t, one(func(n *snapshottypes.SnapshotIAVLItem) bool {
			if n.Height > 0 {
				change(n)
			}
			return n.Height > 0
		}))
	}
	leaf := func(change func(n *snapshottypes.SnapshotIAVLItem)) taken {
		return truth.bent(t, one(func(n *snapshottypes.SnapshotIAVLItem) bool { change(n); return true }))
	}
	lies := map[string]taken{
		"the state of an earlier block": {truth.of(t, old.chunks...).Snapshot, old.chunks, truth.appHash},
		"bytes that are no stream":      truth.of(t, make([]byte, 1000), []byte("more")),
		"an end in the middle":          truth.of(t, truth.chunks[0][:len(truth.chunks[0])/2]),
		"nothing":                       truth.of(t, []byte{}),
		"another value":                 leaf(func(n *snapshottypes.SnapshotIAVLItem) { n.Value = []byte("mine") }),
		"a version before all":          leaf(func(n *snapshottypes.SnapshotIAVLItem) { n.Version = -1 }),
		"a version of the future":       leaf(func(n *snapshottypes.SnapshotIAVLItem) { n.Version = int64(truth.Height) + 1 }),
		"a node without children":       leaf(func(n *snapshottypes.SnapshotIAVLItem) { n.Height = 1 }),
		"a node below leaves":           leaf(func(n *snapshottypes.SnapshotIAVLItem) { n.Height = -1 }),
		"a key that misleads":           inner(func(n *snapshottypes.SnapshotIAVLItem) { n.Key = append([]byte{0}, n.Key...) }),
		"a node that is too high":       inner(func(n *snapshottypes.SnapshotIAVLItem) { n.Height = 127 }),
		"no nodes": truth.bent(t, func(i *snapshottypes.SnapshotItem) []*snapshottypes.SnapshotItem {
			if i.GetIAVL() != nil {
				return nil
			}
			return []*snapshottypes.SnapshotItem{i}
		}),
		"a store twice": truth.bent(t, func(i *snapshottypes.SnapshotItem) []*snapshottypes.SnapshotItem {
			if i.GetStore() != nil {
				return []*snapshottypes.SnapshotItem{i, i}
			}
			return []*snapshottypes.SnapshotItem{i}
		}),
		"a store that nobody knows": truth.bent(t, func(i *snapshottypes.SnapshotItem) []*snapshottypes.SnapshotItem {
			if s := i.GetStore(); s != nil {
				s.Name += "?"
			}
			return []*snapshottypes.SnapshotItem{i}
		}),
		"no store":             truth.bent(t, func(i *snapshottypes.SnapshotItem) []*snapshottypes.SnapshotItem { return nil }),
		"chunks after its end": truth.of(t, append(slices.Clone(truth.chunks), []byte("more"), []byte("and more"))...),
		"an extension": truth.bent(t, func(i *snapshottypes.SnapshotItem) []*snapshottypes.SnapshotItem {
			return []*snapshottypes.SnapshotItem{i, {Item: &snapshottypes.SnapshotItem_Extension{Extension: &snapshottypes.SnapshotExtensionMeta{Name: "wasm"}}}}
		}),
		"more than it is": leaf(func(n *snapshottypes.SnapshotIAVLItem) { n.Value = make([]byte, 63_000_000) }),
	}
	r, _ := node(t)
	for name, lie := range lies {
		if got := r.restored(t, lie); got != reject {
			t.Errorf("%s: %v", name, got)
		}
		if files, err := os.ReadDir(filepath.Join(r.dir, chunkDir)); err != nil || len(files) > 0 {
			t.Errorf("%s leaves %v, %v", name, files, err)
		}
		if _, err := os.Stat(filepath.Join(r.dir, applicationDB+".db")); err == nil {
			t.Errorf("%s leaves a database", name)
		}
	}
	if got := r.restored(t, truth); got != accept {
		t.Fatalf("the truth after %d lies: %v", len(lies), got)
	}
	same(t, c, r)
}

// same compares the state that a node has restored with the chain's, by all that is in it.
func same(t *testing.T, c *chaintest.Chain, r *restorer) {
	t.Helper()
	want, err := c.Export(c.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := r.app.CreateQueryContext(c.Height(), false)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.app.Export(ctx); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("the state that was restored differs: %v", err)
	}
}

// Leaves without end are refused before they fill the memory.
func TestLeavesWithoutParents(t *testing.T) {
	r := &items{height: 1, begun: true}
	for i := range maxPending + 1 {
		err := r.node(&snapshottypes.SnapshotIAVLItem{Key: []byte{byte(i >> 8), byte(i)}, Version: 1})
		if refused := err != nil; refused != (i == maxPending) {
			t.Fatalf("leaf %d: %v", i, err)
		}
	}
}

// What is being restored is given up as soon as nobody waits for it.
func TestRestoringEndsWhenItIsGivenUp(t *testing.T) {
	r, told := node(t)
	truth := take(t, chain(t))
	r.open = func(db dbm.DB) (*app.App, error) {
		r.closed.Store(true)
		return app.New(log.NewNopLogger(), db, chaintest.ChainID)
	}
	if got := r.restored(t, truth); got != reject || !strings.Contains((*told)[len(*told)-1], "cannot be used") {
		t.Fatal(got, *told)
	}
}

// A wrong chunk is fetched again from another; one that is out of turn ends the snapshot. A
// snapshot that stops coming leaves room for another.
func TestChunks(t *testing.T) {
	c := chain(t)
	truth := take(t, c)
	half := len(truth.chunks[0]) / 2
	halves := truth.of(t, truth.chunks[0][:half], truth.chunks[0][half:])
	r, _ := node(t)
	r.offered(t, halves)
	if a := r.applied(t, 0, []byte("mine")); a.Result != abci.ResponseApplySnapshotChunk_RETRY || len(a.RejectSenders) != 1 || len(a.RefetchChunks) != 1 {
		t.Fatal(a)
	}
	if a := r.applied(t, 1, halves.chunks[1]); a.Result != reject {
		t.Fatal(a)
	}
	if a := r.applied(t, 0, halves.chunks[0]); a.Result != accept {
		t.Fatal(a)
	}
	if got := r.restored(t, halves); got != accept { // from its beginning
		t.Fatal(got)
	}
	same(t, c, r)
	if a := r.applied(t, 2, nil); a.Result != reject {
		t.Fatal(a)
	}
}

// Whoever gives the beginning of one snapshot after the other does not advance.
func TestBeginningAnewIsNoProgress(t *testing.T) {
	truth := take(t, chain(t))
	half := len(truth.chunks[0]) / 2
	halves := truth.of(t, truth.chunks[0][:half], truth.chunks[0][half:])
	r, _ := node(t)
	for i, advances := range []bool{true, false, false} {
		r.advanced.Store(0)
		r.offered(t, halves)
		r.applied(t, 0, halves.chunks[0])
		if got := r.advanced.Load() > 0; got != advances {
			t.Errorf("beginning %d advances: %v", i, got)
		}
	}
	if got := r.applied(t, 1, halves.chunks[1]).Result; got != accept || r.advanced.Load() == 0 {
		t.Errorf("the rest: %v", got)
	}
}

// A restored node knows from the application whose turn it is, whatever servers have told.
func TestTurnsOfTheApplication(t *testing.T) {
	c := chain(t)
	for range 5 {
		pay(c)
	}
	r, _ := node(t)
	if got := r.restored(t, take(t, c)); got != accept {
		t.Fatal(got)
	}
	status, err := seatsv1.NewQueryClient(c).Status(t.Context(), &seatsv1.QueryStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var p cmtproto.ValidatorSet
	if err := p.Unmarshal(status.Set.Rotation); err != nil {
		t.Fatal(err)
	}
	set, err := cmttypes.ValidatorSetFromProto(&p)
	if err != nil {
		t.Fatal(err)
	}
	unrank(set)
	s := sm.State{ChainID: chaintest.ChainID, Validators: set.Copy(), NextValidators: set.Copy()}
	if err := r.rank(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	for i, set := range []*cmttypes.ValidatorSet{s.Validators, s.NextValidators} {
		const rounds = 20
		want, err := c.Seats.Turns(c.Ctx(), c.Height()+1+int64(i), rounds)
		if err != nil || len(want) != rounds {
			t.Fatal(want, err)
		}
		for round, account := range want {
			if got, err := c.Seats.Account(c.Ctx(), set.GetProposer().Address); err != nil || !got.Equals(account) {
				t.Fatalf("block %d, round %d: %v, want %v: %v", i, round, got, account, err)
			}
			set.IncrementProposerPriority(1)
		}
	}
	s.NextValidators = chainheaders.New("c", 4, 1, time.Now()).Set(1)
	if err := r.rank(t.Context(), &s); err == nil || !strings.Contains(err.Error(), "others in the state") {
		t.Fatal(err)
	}
}

// The next block after a snapshot counts the same pause as everywhere else.
func TestTimeGoesOnAfterASnapshot(t *testing.T) {
	c := chain(t)
	pay(c)
	truth := take(t, c)
	r, _ := node(t)
	if got := r.restored(t, truth); got != accept {
		t.Fatal(got)
	}
	last, at := c.Now(), c.Now().Add(50*time.Second) // within the gap, which a time that is not known would not be
	block := &abci.RequestFinalizeBlock{Height: c.Height() + 1, Time: at, Hash: make([]byte, 32), ProposerAddress: c.Proposer()}
	if _, err := r.app.FinalizeBlock(block); err == nil || !strings.Contains(err.Error(), "without its time") {
		t.Fatalf("a block after a state without a time: %v", err)
	}
	state := sm.State{LastBlockTime: last, ChainID: chaintest.ChainID}
	if err := r.finish(&state); err != nil {
		t.Fatal(err)
	}
	if want := cmttypes.ConsensusParamsFromProto(c.GetConsensusParams(c.Ctx())); want.Block.MaxGas == 0 || !reflect.DeepEqual(state.ConsensusParams, want) {
		t.Fatalf("CometBFT is told %+v, want %+v", state.ConsensusParams, want)
	}
	if err := r.shut(); err != nil {
		t.Fatal(err)
	}
	db, err := dbm.NewGoLevelDB(applicationDB, r.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.open(db)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	got, err := a.FinalizeBlock(block)
	if err != nil {
		t.Fatal(err)
	}
	want, err := c.FinalizeBlock(block)
	if err != nil || !bytes.Equal(got.AppHash, want.AppHash) {
		t.Fatalf("%X, want %X: %v", got.AppHash, want.AppHash, err)
	}
}

// The newest two snapshots stay, and half ones go; states are pruned up to the newest one.
func TestSnapshotsAndPruning(t *testing.T) {
	db, dir := dbm.NewMemDB(), t.TempDir()
	c := chaintest.Open(t, db, chaintest.Fund(1_000_000_000, alice.Name, bob.Name))
	for c.Height() < 5 {
		pay(c)
	}
	pruned := pruningtypes.NewCustomPruningOptions(2, 1)
	AllowPruning(db, pruned) // as after a restore, or where snapshots begin late
	c.Restart(db)
	cms := c.CommitMultiStore()
	cms.SetPruning(pruned)
	if err := cms.LoadLatestVersion(); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(dir, snapshotDir, "3", "3")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	const interval = 3
	s, err := Open(dir, interval, cms, log.NewTestLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(half)); err == nil {
		t.Fatal("half a snapshot stays")
	}
	for c.Height() < 20 {
		pay(c)
		s.Take(c.Height())
		s.taking.Wait()
		if retained := s.Retain(c.Height(), c.Height()-1); retained != max(0, c.Height()-2*interval) {
			t.Fatalf("after block %d blocks from %d stay", c.Height(), retained)
		}
	}
	if first := cms.EarliestVersion(); first != 20-2 {
		t.Errorf("states from %d are there", first)
	}
	r, err := s.List()
	if err != nil || len(r.Snapshots) != kept || r.Snapshots[0].Height != 18 || r.Snapshots[1].Height != 15 {
		t.Fatal(r, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(dir, 0, cms, nil); err != nil || s != nil {
		t.Fatal(s, err)
	}
	if _, err := os.Stat(filepath.Join(dir, snapshotDir)); err == nil {
		t.Fatal("snapshots stay where none is to be taken")
	}
}

// A node that stops gives up the snapshot under way, and none is begun.
func TestStoppingNodeGivesUpItsSnapshot(t *testing.T) {
	c := chain(t)
	dir := t.TempDir()
	s, err := Open(dir, 1, c.CommitMultiStore(), log.NewTestLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	s.stopping.Store(true)
	if _, err := s.manager.Create(uint64(c.Height())); err == nil || !strings.Contains(err.Error(), errStopping.Error()) {
		t.Fatalf("a snapshot of a node that stops: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Take(c.Height() + 1) // would panic with the closed database
}
