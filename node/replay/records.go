package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/merkle"
	"github.com/tally-network/tally/internal/scratch"
)

// records are an order's training records, of which only those are here that somebody has asked for.
// Runs of tiles are read from the order's file and checked by its crown; what has not been is never read.
type records struct {
	tensor.Part
	memory *scratch.Mapping
	file   func(ctx context.Context, at, n int64) (io.Reader, error)
	room   func(n int64) error
	head   int64         // bytes of the file before the elements
	turn   chan struct{} // who has taken from it may make runs held

	mu   sync.Mutex
	held []bool // by run
}

// What is read and checked at a time: so many bytes, but a band of tiles at least, and at most.
const (
	pieceBytes = 1 << 20
	maxBand    = 64 << 20
)

// InParts reports whether records may be read in parts: a band of them, 32 records, is held in memory while it is checked.
func InParts(s tensor.Shape) bool {
	return len(s) == 2 && s[1] <= maxBand/(tensor.TileSide*tensor.Int32.Size())
}

// newRecords returns the records that a crown is of, which lie in a file.
func newRecords(crown *tensor.Crown, size uint64, files Files, file func(ctx context.Context, at, n int64) (io.Reader, error)) (*records, error) {
	n := uint64(crown.Shape.Elements() * crown.Type.Size())
	head := uint64(len(canon.Encode((&tensor.Tensor{Type: crown.Type, Shape: crown.Shape}).Head)))
	if !InParts(crown.Shape) {
		return nil, fmt.Errorf("their shape is %v: such long records are read whole, so their order names no crown", crown.Shape)
	}
	if crown.Type != tensor.Int32 || n+head != size || n > tensor.MaxBytes {
		return nil, fmt.Errorf("they are %v%v in %d bytes, and should be %v[records words] in %d", crown.Type, crown.Shape, size, tensor.Int32, n+head)
	}
	r := &records{file: file, room: files.Room, head: int64(head), turn: make(chan struct{}, 1), held: make([]bool, len(crown.Tops))}
	if r.room == nil {
		r.room = func(int64) error { return nil }
	}
	memory, err := scratch.New(files.Folder, int64(n))
	if err != nil {
		return nil, localError{err}
	}
	r.memory, r.Crown = memory, crown
	r.Tensor, err = tensor.Over(crown.Type, crown.Shape, memory.Bytes(), memory)
	return r, err
}

// hold reads and checks those of n records from the first one on that are not here yet.
func (r *records) hold(ctx context.Context, first, n int) error {
	from, to := r.Crown.Runs(first, n)
	return r.bring(ctx, from, to, r.room)
}

// bring reads and checks runs from…to−1 that are not here yet, if there is room.
func (r *records) bring(ctx context.Context, from, to int, room func(int64) error) error {
	if r.holds(from, to) {
		return nil
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := room(r.with(from, to)); err != nil {
		return fmt.Errorf("training records: %w", localError{err})
	}
	for from < to {
		end := from
		for end < to && !r.holds(end, end+1) {
			end++
		}
		if end > from {
			if err := r.read(ctx, from, end, r.memory); err != nil {
				return fmt.Errorf("training records: %w", err)
			}
		}
		from = end + 1
	}
	return nil
}

// reserve asks for the room of runs from…to−1, and of the parts of the file that they come from, if they are not here.
func (r *records) reserve(from, to int) error {
	if r.holds(from, to) {
		return nil
	}
	here := r.with(0, 0)
	return r.room(here + 2*(r.with(from, to)-here))
}

// with returns how many bytes are here, about, once runs from…to−1 are: it does not grow with what failed before.
func (r *records) with(from, to int) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	runs := 0
	for i, h := range r.held {
		if h || i >= from && i < to {
			runs++
		}
	}
	return int64(len(r.memory.Bytes())) / int64(len(r.held)) * int64(runs)
}

// holds reports whether runs from…to−1 are here.
func (r *records) holds(from, to int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.held[from:to] {
		if !h {
			return false
		}
	}
	return true
}

// read reads runs from…to−1 and checks them, and puts them into keep unless that is nil. Rows are read in whole bands, whose
// other tiles are those of the file as well, checked or not.
func (r *records) read(ctx context.Context, from, to int, keep *scratch.Mapping) error {
	l := r.Crown.Layout()
	first, n := r.Crown.Rows(from, to)
	row := int64(l.Cols * l.Type.Size())
	in, err := r.file(ctx, r.head+int64(first)*row, int64(n)*row)
	if err != nil {
		return localError{err}
	}
	bands := max(1, int(pieceBytes/(row*tensor.TileSide)))
	leaves := make([]canon.Hash, 0, 2*tensor.CrownRun)
	skip := from*tensor.CrownRun - first/tensor.TileSide*l.Side // tiles of the first band that are of no run
	for at, end := first, first+n; at < end; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rows := min(bands*tensor.TileSide, end-at)
		piece, err := tensor.New(l.Type, tensor.Shape{rows, l.Cols})
		if err != nil {
			return err
		}
		if _, err := io.ReadFull(in, piece.Bytes()); err != nil {
			return localError{err}
		}
		if keep != nil {
			if _, err := keep.WriteAt(piece.Bytes(), int64(at)*row); err != nil {
				return localError{err}
			}
		}
		leaves = append(leaves, merkle.Leaves(piece, runtime.GOMAXPROCS(0))...)
		leaves, skip = leaves[min(skip, len(leaves)):], max(0, skip-len(leaves))
		if from, leaves, err = r.check(from, to, leaves, keep != nil); err != nil {
			return err
		}
		at += rows
	}
	return nil
}

// check checks the runs from…to−1 of which all leaves are known, and returns what is left for the next call.
func (r *records) check(from, to int, leaves []canon.Hash, held bool) (int, []canon.Hash, error) {
	for from < to && len(leaves) >= r.Crown.Run(from).N {
		n := r.Crown.Run(from).N
		if err := r.Crown.Check(from, leaves[:n]); err != nil {
			return from, nil, &UnfitError{fmt.Errorf("the order's file of its training records is not that of its crown: %w", err)}
		}
		if held {
			r.mu.Lock()
			r.held[from] = true
			r.mu.Unlock()
		}
		from, leaves = from+1, leaves[n:]
	}
	return from, leaves, nil
}

// CheckRecords returns an UnfitError unless the file of the records is that which the order binds. Whoever reads
// some of them alone has checked these alone.
func (j *Job) CheckRecords(ctx context.Context) error {
	if j.records == nil {
		return nil // they were read whole
	}
	return unwrapLocal(j.records.checkAll(ctx))
}

// checkAll checks the whole file, what stands before the elements as well.
func (r *records) checkAll(ctx context.Context) error {
	want := canon.Encode(r.Tensor.Head)
	in, err := r.file(ctx, 0, r.head)
	if err != nil {
		return localError{err}
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(in, got); err != nil {
		return localError{err}
	}
	if !bytes.Equal(got, want) {
		return &UnfitError{errors.New("the file of the training records does not begin with their type and shape")}
	}
	return r.read(ctx, 0, len(r.Crown.Tops), nil)
}

// ShowRecords answers a question about the records.
func (j *Job) ShowRecords(ctx context.Context, q proof.Sample) (proof.Shown, error) {
	run := q.TileOf(j.Crown.Layout()) / tensor.CrownRun
	if j.records != nil {
		// A custodian whose store is full still answers: a run is small, and whoever does not answer is slashed.
		first, n := j.Crown.Rows(run, run+1)
		from, to := j.Crown.Runs(first, n)
		if err := j.records.bring(ctx, from, to, func(int64) error { return nil }); err != nil {
			return proof.Shown{}, unwrapLocal(err)
		}
	}
	defer runtime.KeepAlive(j.Data) // its memory may not be Go's
	return q.ShowPart(tensor.Part{Tensor: j.Data, Crown: j.Crown}), nil
}

// holdRecords brings records here, unless they are.
func (j *Job) holdRecords(ctx context.Context, first, n int) error {
	if j.records == nil {
		return nil
	}
	return unwrapLocal(j.records.hold(ctx, first, n))
}

// shard returns the records that steps of the unit read: the first, and how many; none of a batch.
func (u Unit) shard() (first, n int) {
	if u.Problem.Independent() {
		return 0, 0
	}
	return u.Problem.RecordsOf(u.Round*u.Problem.Shards + u.Shard).Range(u.Shard)
}

// Hold brings the records here that steps of the unit read. Playing it does so as well.
func (u Unit) Hold(ctx context.Context) error {
	if first, n := u.shard(); n > 0 {
		return u.Job.holdRecords(ctx, first, n)
	}
	return nil
}

// Reserve counts these records as if they were here, and what is fetched for them. It fails if there is no room: who takes the unit all the
// same is late, and fined.
func (u Unit) Reserve() error {
	first, n := u.shard()
	if n == 0 || u.Job.records == nil {
		return nil
	}
	return u.Job.records.reserve(u.Job.Crown.Runs(first, n))
}

// Held reports whether these records are here.
func (u Unit) Held() bool {
	first, n := u.shard()
	return n == 0 || u.Job.records == nil || u.Job.records.holds(u.Job.Crown.Runs(first, n))
}

// isLocal reports whether an error is one of this machine.
func isLocal(err error) bool { return errors.As(err, new(localError)) }

// unwrapLocal returns an error without the mark by which Load knows those of this machine.
func unwrapLocal(err error) error {
	var local localError
	if errors.As(err, &local) {
		return local.error
	}
	return err
}

// crown reads the file with the crown of the records, if the order names one.
func (l *loader) crown() (*tensor.Crown, error) {
	switch f, ok := l.File(job.RoleCrown); {
	case !ok:
		return nil, nil
	case f.Size > tensor.MaxCrown:
		return nil, fmt.Errorf("the crown of the training records has %d bytes, the limit is %d", f.Size, tensor.MaxCrown)
	}
	b, err := l.file(job.RoleCrown)
	if err != nil {
		return nil, err
	}
	c := &tensor.Crown{}
	if err := canon.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("crown of the training records: %w", err)
	}
	if c.Root() != l.Data {
		return nil, fmt.Errorf("the crown is not that of the order's training records: its root is %v, the order says %v", c.Root().Short(), l.Data.Short())
	}
	return c, nil
}

// records makes the records of in: where parts of the file can be read, of its crown.
func (l *loader) records(in *Inputs) (*records, error) {
	crown, err := l.crown()
	if err != nil {
		return nil, err
	}
	if crown == nil || l.files.Part == nil {
		b, err := l.file(RoleData)
		if err != nil {
			return nil, err
		}
		if in.Data, err = ReadTensor(b); err != nil {
			return nil, fmt.Errorf("training records: %w", err)
		}
		return nil, nil
	}
	f, ok := l.File(RoleData)
	if !ok {
		return nil, fmt.Errorf("the order names no %s file", RoleData)
	}
	part := l.files.Part
	r, err := newRecords(crown, f.Size, l.files, func(ctx context.Context, at, n int64) (io.Reader, error) { return part(ctx, f, at, n) })
	if err != nil {
		return nil, fmt.Errorf("training records: %w", err)
	}
	in.Data, in.Crown = r.Tensor, crown
	return r, nil
}
