package consensus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cometbft/cometbft/mempool"
	"github.com/cometbft/cometbft/privval"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"

	"github.com/cosmos/cosmos-sdk/store/v2/snapshots"
	snapshottypes "github.com/cosmos/cosmos-sdk/store/v2/snapshots/types"

	"github.com/tally-network/tally/node/consensus"
	"github.com/tally-network/tally/node/statesync"
)

const every = 4 // blocks between snapshots

// snapshotting is a network that makes blocks for transactions alone, and takes snapshots.
func snapshotting(t *testing.T, validators int) *network {
	t.Helper()
	net := newNetwork(t, t.TempDir(), validators)
	for i := range net.configs {
		net.configs[i].EmptyInterval = 0
		net.configs[i].SnapshotInterval = every
	}
	return net
}

// advance has alice pay bob at node i until a height.
func (net *network) advance(t *testing.T, i int, height int64) {
	t.Helper()
	n := net.nodes[i]
	until(t, "first block", func() bool { return n.Stored() > 0 })
	for n.Height() < height {
		tx := transfer(t, n, net.chain(), alice, bob, 1)
		r, err := n.Client().BroadcastTxCommit(context.Background(), tx)
		switch {
		case err != nil && strings.Contains(err.Error(), mempool.ErrTxInCache.Error()): // the node has not come so far as to know that it is in a block
			time.Sleep(50 * time.Millisecond)
		case err != nil || r.TxResult.Code != 0 || r.CheckTx.Code != 0:
			t.Fatalf("%+v, %v", r, err)
		}
	}
}

// follows waits until a node has stored a block since it started: it answers queries from then on.
func (net *network) follows(t *testing.T, i int) {
	t.Helper()
	next := net.nodes[0].Height() + 1
	net.advance(t, 0, next)
	until(t, fmt.Sprintf("block %d at node %d", next, i), func() bool { return net.nodes[i].Stored() >= next })
}

func (net *network) chain() string { return net.configs[0].Genesis.ChainID }

// snapshots waits until node i has taken the snapshot of a height.
func (net *network) snapshots(t *testing.T, i int, height int64) {
	t.Helper()
	until(t, fmt.Sprintf("snapshot %d at node %d", height, i), func() bool {
		given, err := net.nodes[i].Snapshots()
		return err == nil && slices.Contains(given, height)
	})
}

// joining describes one more node, which knows all others and begins at a snapshot of theirs.
func (net *network) joining(t *testing.T, servers ...int) consensus.Config {
	t.Helper()
	c := consensus.Config{
		Dir: filepath.Join(t.TempDir(), "joins"), Name: fmt.Sprint("joins", len(net.nodes)), Genesis: net.configs[0].Genesis,
		CommitTimeout: net.configs[0].CommitTimeout, SnapshotInterval: every, StateSync: net.source(t, servers...),
	}
	for _, n := range net.nodes {
		c.Peers = append(c.Peers, n.Addrs().P2P)
	}
	return c
}

// join starts one more node, and returns its number.
func (net *network) join(t *testing.T, c consensus.Config) int {
	t.Helper()
	net.configs, net.nodes = append(net.configs, c), append(net.nodes, nil)
	net.restart(t, len(net.nodes)-1)
	return len(net.nodes) - 1
}

// source trusts block 1 of the first of the servers.
func (net *network) source(t *testing.T, servers ...int) *statesync.Source {
	t.Helper()
	one := int64(1)
	b, err := net.nodes[servers[0]].Client().Commit(context.Background(), &one)
	if err != nil {
		t.Fatal(err)
	}
	s := &statesync.Source{
		Trusted: func() (int64, []byte, error) { return one, b.Header.Hash(), nil },
		Tell:    func(format string, args ...any) { t.Logf(format, args...) },
	}
	for _, i := range servers {
		s.Servers = append(s.Servers, "http://"+net.nodes[i].Addrs().RPC)
	}
	return s
}

// restart stops a node, if it runs, and starts it again.
func (net *network) restart(t *testing.T, i int) {
	t.Helper()
	if n := net.nodes[i]; n != nil {
		if err := n.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if net.nodes[i], err = consensus.Start(context.Background(), net.configs[i]); err != nil {
		t.Fatal(err)
	}
}

// A node that begins at a snapshot has the state of the others, follows them, takes transactions,
// and gives snapshots itself.
func TestNodeBeginsAtASnapshot(t *testing.T) {
	t.Parallel()
	net := snapshotting(t, 2)
	net.start(t)
	net.advance(t, 0, 2*every+2)
	net.snapshots(t, 1, 2*every)
	joined := net.join(t, net.joining(t, 0, 1))
	if first := net.nodes[joined].Base(); first != 0 {
		t.Fatalf("the node has blocks from %d before it follows", first)
	}
	net.restart(t, joined) // before it need have a block
	net.follows(t, joined)
	net.advance(t, joined, 3*every+2)
	for h := int64(2*every + 1); h <= 3*every; h++ {
		if a, b := net.appHash(t, 0, h), net.appHash(t, joined, h); a != b {
			t.Fatalf("state %d: %s and %s", h, a, b)
		}
	}
	if first := net.nodes[joined].Base(); first != 2*every+1 {
		t.Fatalf("the node has blocks from %d", first)
	}
	same := net.nodes[joined].Height() - 1
	if a, b := net.nodes[0].Export(t, same), net.nodes[joined].Export(t, same); a != b {
		t.Fatalf("state %d differs:\n%s\n%s", same, a, b)
	}

	if a, b := net.turns(t, 0, same), net.turns(t, joined, same); a != b {
		t.Fatalf("block %d: the turns of proposers are %s and %s", same, a, b)
	}

	net.accuse(t, 1, every) // of what the new node was not there for
	net.follows(t, joined)  // it knows what alice has sent
	net.advance(t, joined, 3*every+4)

	// Those that were there go, as far as others are needed for blocks, and the new one gives its snapshot.
	net.snapshots(t, joined, 3*every)
	net.restart(t, joined)
	net.follows(t, joined)
	net.advance(t, joined, net.nodes[0].Height()+2)
	height := net.nodes[joined].Height()
	until(t, "the same block at node 0", func() bool { return net.nodes[0].Stored() >= height })
	if a, b := balance(t, net.nodes[0], bob.Address), balance(t, net.nodes[joined], bob.Address); a != b || a <= 1_000*tally {
		t.Fatalf("bob has %d and %d", a, b)
	}
}

// turns returns the priorities with which validators propose a block, as node i has them.
func (net *network) turns(t *testing.T, i int, height int64) string {
	t.Helper()
	r, err := net.nodes[i].Client().Validators(context.Background(), &height, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(r.Validators)
}

// accuse shows that validator i signed two blocks of a height, and waits until a block holds the evidence.
func (net *network) accuse(t *testing.T, i int, height int64) {
	t.Helper()
	dir, ctx := net.configs[i].Dir, context.Background()
	key := privval.LoadFilePVEmptyState(filepath.Join(dir, "config", "priv_validator_key.json"), "").Key
	b, err := net.nodes[0].Client().Block(ctx, &height)
	if err != nil {
		t.Fatal(err)
	}
	r, err := net.nodes[0].Client().Validators(ctx, &height, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	set := cmttypes.NewValidatorSet(r.Validators)
	at, _ := set.GetByAddress(key.Address)
	var votes []*cmttypes.Vote
	for x := range byte(2) {
		v := &cmttypes.Vote{
			Type: cmtproto.PrecommitType, Height: height, ValidatorAddress: key.Address, ValidatorIndex: at, Timestamp: b.Block.Time,
			BlockID: cmttypes.BlockID{Hash: bytes.Repeat([]byte{x + 1}, 32), PartSetHeader: cmttypes.PartSetHeader{Total: 1, Hash: make([]byte, 32)}},
		}
		if v.Signature, err = key.PrivKey.Sign(cmttypes.VoteSignBytes(net.chain(), v.ToProto())); err != nil {
			t.Fatal(err)
		}
		votes = append(votes, v)
	}
	e, err := cmttypes.NewDuplicateVoteEvidence(votes[0], votes[1], b.Block.Time, set)
	if err != nil {
		t.Fatal(err)
	}
	before := net.nodes[0].Height()
	if _, err := net.nodes[0].Client().BroadcastEvidence(ctx, e); err != nil {
		t.Fatal(err)
	}
	net.advance(t, 0, before+2)
	for h := before + 1; h <= net.nodes[0].Height(); h++ {
		if b, err = net.nodes[0].Client().Block(ctx, &h); err != nil {
			t.Fatal(err)
		}
		if len(b.Block.Evidence.Evidence) == 1 {
			return
		}
	}
	t.Fatal("no block holds the evidence")
}

// Whoever gives garbage, or the state of another block, is left for somebody else. One node alone
// tells the headers here.
func TestNodeBeginsBesideLiars(t *testing.T) {
	t.Parallel()
	net := snapshotting(t, 3)
	const truth = 3 * every
	for i := range net.configs {
		net.configs[i].SnapshotInterval = truth
	}
	net.start(t)
	net.advance(t, 0, truth+6)
	for i := range net.nodes {
		net.snapshots(t, i, truth)
	}
	other := int64(truth + 1) // a block after which the state is another
	for net.appHash(t, 0, other) == net.appHash(t, 0, truth) {
		other++
	}
	for i, lie := range map[int][]byte{1: net.chunk(t, 0, truth), 2: []byte("garbage")} {
		if err := net.nodes[i].Stop(); err != nil {
			t.Fatal(err)
		}
		net.nodes[i] = nil
		offer(t, net.configs[i].Dir, other+int64(i)-1, lie) // newer than what is true, so it is tried before
	}
	net.restart(t, 1)
	net.restart(t, 2)
	c := net.joining(t, 0)
	var told []string
	c.StateSync.Tell = func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	joined := net.join(t, c)
	for _, want := range []string{
		"nobody checks", fmt.Sprintf("snapshot of block %d cannot be used", other+1), fmt.Sprintf("snapshot of block %d cannot be used", other), "restored the state of block 12",
	} {
		if !strings.Contains(strings.Join(told, "\n"), want) {
			t.Errorf("nobody is told of %q, but of\n%s", want, strings.Join(told, "\n"))
		}
	}
	net.follows(t, joined)
	last := net.nodes[joined].Height() - 1
	if a, b := net.appHash(t, 0, last), net.appHash(t, joined, last); a != b {
		t.Fatalf("%s and %s", a, b)
	}
}

// chunk returns the one chunk of a node's snapshot.
func (net *network) chunk(t *testing.T, i int, height int64) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(net.configs[i].Dir, "data", "snapshots", fmt.Sprint(height), fmt.Sprint(snapshottypes.CurrentFormat), "0"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// offer has a node that does not run offer a chunk as the snapshot of a height.
func offer(t *testing.T, dir string, height int64, chunk []byte) {
	t.Helper()
	dir = filepath.Join(dir, "data", "snapshots")
	db, err := dbm.NewGoLevelDB("metadata", dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := snapshots.NewStore(db, dir)
	if err != nil {
		t.Fatal(err)
	}
	chunks := make(chan io.ReadCloser, 1)
	chunks <- io.NopCloser(bytes.NewReader(chunk))
	close(chunks)
	if _, err := store.Save(uint64(height), snapshottypes.CurrentFormat, chunks); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// A node that is killed while it restores begins again, at a snapshot or at the genesis. Its keys
// stay, and what it signed last.
func TestKilledWhileRestoring(t *testing.T) {
	t.Parallel()
	net := snapshotting(t, 1)
	net.start(t)
	net.advance(t, 0, every+3)
	net.snapshots(t, 0, every)
	c := net.joining(t, 0)
	var images []consensus.Config // what a kill would leave after each thing that is told
	tell := c.StateSync.Tell
	c.StateSync.Tell = func(format string, args ...any) {
		tell(format, args...)
		image := c
		image.Dir = filepath.Join(t.TempDir(), "image")
		image.StateSync = net.source(t, 0)
		if err := os.CopyFS(image.Dir, os.DirFS(c.Dir)); err != nil {
			t.Error(err)
		}
		images = append(images, image)
	}
	joined := net.join(t, c)
	if err := net.nodes[joined].Stop(); err != nil {
		t.Fatal(err)
	}
	restored, restoring := images[len(images)-1], images[len(images)-2]
	restoring.StateSync = nil
	for i, image := range []consensus.Config{restored, restoring} {
		if _, err := os.Stat(filepath.Join(image.Dir, "data", "application.db")); (err == nil) != (i == 0) {
			t.Fatalf("the image is not of this moment: %v", err)
		}
		before, err := consensus.LoadIdentity(image.Dir)
		if err != nil {
			t.Fatal(err)
		}
		net.configs[joined], net.nodes[joined] = image, nil
		net.restart(t, joined)
		net.advance(t, 0, net.nodes[0].Height()+1)
		last := net.nodes[0].Height() - 1
		if a, b := net.appHash(t, 0, last), net.appHash(t, joined, last); a != b {
			t.Fatalf("state %d: %s and %s", last, a, b)
		}
		if begun := net.nodes[joined].Base(); begun != []int64{every + 1, 1}[i] {
			t.Errorf("the node has blocks from %d", begun)
		}
		if err := net.nodes[joined].Stop(); err != nil {
			t.Fatal(err)
		}
		net.nodes[joined] = nil
		if after, err := consensus.LoadIdentity(image.Dir); err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%v and %v: %v", before, after, err)
		}
	}
}

// A node that finds no snapshot, or nobody who tells the truth about headers, ends and says what to
// do. It can begin at the genesis then, and takes no snapshot any more.
func TestNoSnapshot(t *testing.T) {
	t.Parallel()
	net := snapshotting(t, 1)
	net.configs[0].SnapshotInterval = 0
	net.start(t)
	net.advance(t, 0, 3)
	c := net.joining(t, 0)
	refused := func(want string) {
		t.Helper()
		n, err := consensus.Start(context.Background(), c)
		if err == nil {
			err = n.Stop()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("%v, want %q", err, want)
		}
	}
	c.StateSync.Trusted = func() (int64, []byte, error) { return 1, bytes.Repeat([]byte{1}, 32), nil }
	refused("another trusted block")
	c.StateSync = net.source(t, 0)
	c.StateSync.Servers = []string{"http://127.0.0.1:1"}
	refused("see that they answer")
	c.StateSync = net.source(t, 0)
	c.StateSync.StallTimeout = time.Millisecond
	refused("snapshot_interval")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := consensus.Start(ctx, c); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c.StateSync = nil
	joined := net.join(t, c)
	net.advance(t, 0, 5)
	if a, b := net.appHash(t, 0, 4), net.appHash(t, joined, 4); a != b {
		t.Fatalf("%s and %s", a, b)
	}
	var told []string
	net.configs[joined].StateSync = net.source(t, 0)
	net.configs[joined].StateSync.Tell = func(format string, _ ...any) { told = append(told, format) }
	net.restart(t, joined)
	if len(told) != 1 || !strings.Contains(told[0], "without a snapshot") {
		t.Errorf("a node with blocks is told %q", told)
	}
}
