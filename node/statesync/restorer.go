package statesync

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	sm "github.com/cometbft/cometbft/state"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"

	"github.com/cosmos/cosmos-sdk/store/v2/snapshots"
	snapshottypes "github.com/cosmos/cosmos-sdk/store/v2/snapshots/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/bounded"
)

// Bounds on what is offered. The SDK's chunks have 10 MB, so a snapshot has 10 GB.
const (
	maxChunks  = 1024
	maxChunk   = 10_000_000 // bytes
	hashOfItem = 2 + sha256.Size
	// maxExpansion is how many times the bytes of its chunks a snapshot may hold. States expand three- to fivefold.
	maxExpansion = 32
)

// restorer is the application as CometBFT's state sync knows it: it restores a snapshot that named
// peers offer. The SDK's reads chunks as they come. This one begins once all are there, so it can
// drop one snapshot for another at any time. A failure leaves an empty database.
type restorer struct {
	dir  string // of data
	open func(dbm.DB) (*app.App, error)
	tell func(format string, args ...any)

	closed   atomic.Bool
	advanced atomic.Int64 // when a chunk came, or some of it was restored, last; ns

	mu      sync.Mutex             // sync: CometBFT may go on when nobody waits for it any more
	offer   snapshottypes.Snapshot // under way; of no chunks: none
	appHash []byte
	next    uint32 // chunk
	bytes   int64
	most    int64 // bytes of any snapshot
	told    time.Time

	db  dbm.DB // of app
	app *app.App
}

// OfferSnapshot implements abci.Application.
func (r *restorer) OfferSnapshot(_ context.Context, req *abci.RequestOfferSnapshot) (*abci.ResponseOfferSnapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return &abci.ResponseOfferSnapshot{Result: abci.ResponseOfferSnapshot_ABORT}, nil
	}
	r.offer = snapshottypes.Snapshot{}
	if s := req.Snapshot; s != nil && s.Format != snapshottypes.CurrentFormat {
		return &abci.ResponseOfferSnapshot{Result: abci.ResponseOfferSnapshot_REJECT_FORMAT}, nil
	}
	s, err := checkOffer(req.Snapshot)
	if err != nil {
		r.tell("a snapshot is refused: %v", err)
		return &abci.ResponseOfferSnapshot{Result: abci.ResponseOfferSnapshot_REJECT}, nil
	}
	if err := r.empty(); err != nil {
		return nil, err
	}
	r.offer, r.appHash, r.next, r.bytes = s, req.AppHash, 0, 0
	r.tell("fetching the snapshot of block %d, in %d chunks", s.Height, s.Chunks)
	return &abci.ResponseOfferSnapshot{Result: abci.ResponseOfferSnapshot_ACCEPT}, nil
}

// checkOffer compares what is claimed before it is read.
func checkOffer(o *abci.Snapshot) (s snapshottypes.Snapshot, err error) {
	switch {
	case o == nil || o.Height == 0 || o.Height > math.MaxInt64/2:
		return s, errors.New("it is of no block")
	case o.Chunks == 0 || o.Chunks > maxChunks:
		return s, fmt.Errorf("it has %d chunks, want 1 to %d", o.Chunks, maxChunks)
	case len(o.Metadata) != int(o.Chunks)*hashOfItem:
		return s, fmt.Errorf("%d bytes are not the hashes of %d chunks", len(o.Metadata), o.Chunks)
	}
	if s, err = snapshottypes.SnapshotFromABCI(o); err != nil {
		return s, err
	}
	if len(s.Metadata.ChunkHashes) != int(s.Chunks) {
		return s, fmt.Errorf("%d hashes of %d chunks", len(s.Metadata.ChunkHashes), s.Chunks)
	}
	return s, nil
}

// ApplySnapshotChunk implements abci.Application.
func (r *restorer) ApplySnapshotChunk(_ context.Context, req *abci.RequestApplySnapshotChunk) (*abci.ResponseApplySnapshotChunk, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed.Load():
		return &abci.ResponseApplySnapshotChunk{Result: abci.ResponseApplySnapshotChunk_ABORT}, nil
	case req.Index != r.next || r.next >= r.offer.Chunks:
		return &abci.ResponseApplySnapshotChunk{Result: abci.ResponseApplySnapshotChunk_REJECT_SNAPSHOT}, nil
	}
	if hash := sha256.Sum256(req.Chunk); len(req.Chunk) > maxChunk || !bytes.Equal(hash[:], r.offer.Metadata.ChunkHashes[r.next]) {
		return &abci.ResponseApplySnapshotChunk{
			Result: abci.ResponseApplySnapshotChunk_RETRY, RefetchChunks: []uint32{req.Index}, RejectSenders: []string{req.Sender},
		}, nil
	}
	if err := os.WriteFile(r.chunk(r.next), req.Chunk, 0o600); err != nil {
		return nil, err
	}
	if r.next, r.bytes = r.next+1, r.bytes+int64(len(req.Chunk)); r.bytes > r.most { // whoever begins again does not advance
		r.most = r.bytes
		r.advance()
	}
	if r.next < r.offer.Chunks {
		if time.Since(r.told) > tellEvery {
			r.told = time.Now()
			r.tell("fetched %d of %d chunks, %d MB", r.next, r.offer.Chunks, r.bytes/1e6)
		}
		return &abci.ResponseApplySnapshotChunk{Result: abci.ResponseApplySnapshotChunk_ACCEPT}, nil
	}
	r.tell("restoring the state of block %d from %.1f MB", r.offer.Height, float64(r.bytes)/1e6)
	if err := r.restore(); err != nil {
		r.tell("the snapshot of block %d cannot be used, and another is looked for: %v", r.offer.Height, err)
		if err := r.empty(); err != nil {
			return nil, err
		}
		return &abci.ResponseApplySnapshotChunk{Result: abci.ResponseApplySnapshotChunk_REJECT_SNAPSHOT, RejectSenders: []string{req.Sender}}, nil
	}
	return &abci.ResponseApplySnapshotChunk{Result: abci.ResponseApplySnapshotChunk_ACCEPT}, nil
}

// restore puts the chunks together.
func (r *restorer) restore() (err error) {
	if r.db, err = dbm.NewGoLevelDB(applicationDB, r.dir, nil); err != nil {
		return err
	}
	if r.app, err = r.open(r.db); err != nil {
		return errors.Join(err, r.db.Close())
	}
	if err := r.read(); err != nil {
		return err
	}
	is := r.app.CommitMultiStore().LastCommitID()
	if is.Version != int64(r.offer.Height) || !bytes.Equal(is.Hash, r.appHash) {
		return fmt.Errorf("its state has the hash %X, and that of the block is %X", is.Hash, r.appHash)
	}
	return nil
}

func (r *restorer) read() (err error) {
	defer func() { // stores of the SDK panic where they cannot write
		if p := recover(); p != nil {
			err = fmt.Errorf("restore: %v", p)
		}
	}()
	chunks := r.chunks()
	stream, err := snapshots.NewStreamReader(chunks)
	if err != nil {
		return err
	}
	checked := &items{Reader: stream, onItem: r.came, height: int64(r.offer.Height), left: maxExpansion * (r.bytes + maxChunk)}
	_, err = r.app.CommitMultiStore().Restore(r.offer.Height, r.offer.Format, checked)
	if err == nil && !checked.ended {
		err = errors.New("there is more than the state in it")
	}
	if err == nil && len(chunks) > 0 {
		err = fmt.Errorf("%d of its chunks hold nothing", len(chunks))
	}
	return errors.Join(err, stream.Close())
}

// came counts a node of the state as progress, and ends the restoring once nobody waits for it.
func (r *restorer) came() error {
	if r.closed.Load() {
		return context.Canceled
	}
	r.advance()
	return nil
}

// chunks returns the files of all chunks, in order.
func (r *restorer) chunks() <-chan io.ReadCloser {
	all := make(chan io.ReadCloser, r.offer.Chunks)
	for i := range r.offer.Chunks {
		all <- &chunkFile{name: r.chunk(i)}
	}
	close(all)
	return all
}

// chunkFile is a file that is opened when it is read.
type chunkFile struct {
	name string
	f    *os.File
}

// Read implements io.Reader.
func (c *chunkFile) Read(p []byte) (n int, err error) {
	if c.f == nil {
		if c.f, _, err = bounded.Open(c.name); err != nil {
			return 0, err
		}
	}
	return c.f.Read(p)
}

// Close implements io.Closer.
func (c *chunkFile) Close() error {
	if c.f == nil {
		return nil
	}
	return c.f.Close()
}

func (r *restorer) chunk(i uint32) string {
	return filepath.Join(r.dir, chunkDir, strconv.FormatUint(uint64(i), 10))
}

// empty removes what was restored, and all chunks.
func (r *restorer) empty() error {
	chunks := filepath.Join(r.dir, chunkDir)
	return errors.Join(r.shut(), os.RemoveAll(filepath.Join(r.dir, applicationDB+".db")), os.RemoveAll(chunks), os.MkdirAll(chunks, 0o700))
}

func (r *restorer) shut() error {
	if r.app == nil {
		return nil
	}
	r.offer = snapshottypes.Snapshot{}
	err := r.app.Close()
	r.app, r.db = nil, nil
	return err
}

// close has nothing restored any more.
func (r *restorer) close() error {
	r.closed.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shut()
}

func (r *restorer) advance() { r.advanced.Store(time.Now().UnixNano()) }

// idle returns for how long nothing has come.
func (r *restorer) idle() time.Duration { return time.Since(time.Unix(0, r.advanced.Load())) }

// finish notes the time of the block whose state was restored, which the light client has verified:
// a snapshot has none, and the pause until the next block counts from it. What the state says of
// consensus goes to CometBFT's. The snapshot itself stays, so that others can have it from here.
func (r *restorer) finish(s *sm.State) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	height, at := int64(r.offer.Height), s.LastBlockTime
	ctx := sdk.NewContext(r.app.CommitMultiStore(), cmtproto.Header{ChainID: s.ChainID, Height: height}, false, r.app.Logger())
	s.ConsensusParams = cmttypes.ConsensusParamsFromProto(r.app.GetConsensusParams(ctx))
	s.ConsensusParams.Version.App = s.Version.Consensus.App
	if err := s.ConsensusParams.ValidateBasic(); err != nil {
		return err
	}
	info, err := app.CommitInfo(r.app.CommitMultiStore(), height)
	if err != nil {
		return err
	}
	info.Timestamp = at
	text, err := info.Marshal()
	if err != nil {
		return err
	}
	if err := r.db.SetSync(fmt.Appendf(nil, "s/%d", height), text); err != nil { // as rootmulti writes it
		return err
	}
	if info, err = app.CommitInfo(r.app.CommitMultiStore(), height); err != nil || !info.Timestamp.Equal(at) {
		return errors.Join(fmt.Errorf("the time of block %d is not kept", height), err)
	}
	return r.keep()
}

// rank gives a state the proposers' priorities that the application has, whose hash is verified. What servers tell of them
// stands in no hash. A set that was drawn in the last block holds from the block after the next. The next one is made, so its
// priorities do not count.
func (r *restorer) rank(ctx context.Context, s *sm.State) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := int64(r.offer.Height)
	q, err := r.app.Query(ctx, &abci.RequestQuery{Path: "/tally.seats.v1.Query/Status", Height: last})
	if err != nil {
		return err
	}
	var status seatsv1.QueryStatusResponse
	var rotation cmtproto.ValidatorSet
	if err := errors.Join(status.Unmarshal(q.Value), rotation.Unmarshal(status.Set.Rotation)); err != nil || q.Code != 0 {
		return errors.Join(fmt.Errorf("whose turn it is cannot be read: %s", q.Log), err)
	}
	set, err := cmttypes.ValidatorSetFromProto(&rotation)
	if err != nil {
		return err
	}
	for h := status.Set.Height; h < last+2; h++ {
		if h == last+1 && bytes.Equal(set.Hash(), s.Validators.Hash()) {
			s.Validators = set.Copy()
		}
		set.IncrementProposerPriority(1) // at each height, as CometBFT does
	}
	if !bytes.Equal(set.Hash(), s.NextValidators.Hash()) {
		return fmt.Errorf("the validators of block %d are others in the state than in the headers", last+2)
	}
	s.NextValidators = set
	return nil
}

// keep makes the snapshot one of this node.
func (r *restorer) keep() error {
	store, closeIt, err := openStore(filepath.Join(r.dir, snapshotDir))
	if err != nil {
		return err
	}
	_, err = store.Save(r.offer.Height, r.offer.Format, r.chunks())
	return errors.Join(err, closeIt())
}

// Info implements abci.Application.
func (r *restorer) Info(_ context.Context, req *abci.RequestInfo) (*abci.ResponseInfo, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.app == nil {
		return &abci.ResponseInfo{}, nil
	}
	return r.app.Info(req)
}

// ListSnapshots implements abci.Application: there is none to give.
func (*restorer) ListSnapshots(context.Context, *abci.RequestListSnapshots) (*abci.ResponseListSnapshots, error) {
	return &abci.ResponseListSnapshots{}, nil
}

// LoadSnapshotChunk implements abci.Application.
func (*restorer) LoadSnapshotChunk(context.Context, *abci.RequestLoadSnapshotChunk) (*abci.ResponseLoadSnapshotChunk, error) {
	return &abci.ResponseLoadSnapshotChunk{}, nil
}

// Query implements abci.Application: nobody asks.
func (*restorer) Query(context.Context, *abci.RequestQuery) (*abci.ResponseQuery, error) {
	return &abci.ResponseQuery{}, nil
}

// Echo implements proxy.AppConnQuery.
func (*restorer) Echo(_ context.Context, text string) (*abci.ResponseEcho, error) {
	return &abci.ResponseEcho{Message: text}, nil
}

// Error implements proxy.AppConnQuery: there is no connection to fail.
func (*restorer) Error() error { return nil }
