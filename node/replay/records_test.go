package replay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/node/replay"
)

const shards = 4

// long returns an order of four shards whose records make nine runs of tiles, and its files.
func long(t *testing.T) (*replay.Job, *job.Problem, map[string][]byte) {
	t.Helper()
	in := inputs(24)
	in.Data = tensor.Must(tensor.New(tensor.Int32, tensor.Shape{70_000, columns}))
	for i := range in.Data.Len() {
		in.Data.Set(i, tensor.Word(i*i%7%alphabet))
	}
	j, err := replay.New(t.Context(), in, shards, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	p := &job.Problem{Rounds: 2, Steps: 2, Interval: 2, Seed: 5}
	if err := j.Bind(p); err != nil {
		t.Fatal(err)
	}
	_, _, files := order(t, 2, 2)
	files[replay.RoleData], files[replay.RoleCrown] = canon.Encode(j.Data.Encode), canon.Marshal(j.Crown)
	for _, role := range []string{replay.RoleModel, replay.RoleData, replay.RoleCrown} {
		p.Files = append(p.Files, job.File{Role: role, Size: uint64(len(files[role]))})
	}
	return j, p, files
}

// parts reads files, the records in parts, and counts what was read of these.
type parts struct {
	files map[string][]byte
	bytes int64
	room  func(n int64) error
}

func (x *parts) load(t *testing.T, p *job.Problem) (*replay.Job, error) {
	return replay.Load(t.Context(), p, replay.Files{
		Read: func(f job.File) ([]byte, error) {
			if f.Role == replay.RoleData {
				return nil, errors.New("the records are read whole")
			}
			return x.files[f.Role], nil
		},
		Part: func(_ context.Context, f job.File, at, n int64) (io.Reader, error) {
			x.bytes += n
			return bytes.NewReader(x.files[f.Role][at:][:n]), nil
		},
		Folder: t.TempDir(),
		Room:   x.room,
	}, cpu.New(1))
}

// Who has no room for a shard says so before it takes the unit. A custodian that has none answers all the same: else it would be slashed.
func TestWithoutRoom(t *testing.T) {
	_, p, files := long(t)
	asked := int64(0)
	x := &parts{files: files, room: func(n int64) error {
		asked = n
		return errors.New("the store is full")
	}}
	j, err := x.load(t, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.UnitOf(p, 1).Reserve(); err == nil || x.bytes > 0 || asked < 2*int64(len(files[replay.RoleData]))/shards {
		t.Errorf("room for %d bytes was asked for: %v", asked, err)
	}
	if _, err := j.UnitOf(p, 1).Play(t.Context(), j.Start, 0, 1, nil); err == nil {
		t.Error("a unit was computed without room for its records")
	}
	q := proof.Sample{Root: p.Data, State: -1, Seed: canon.Sum("test", nil)}
	shown, err := j.ShowRecords(t.Context(), q)
	if err == nil {
		err = q.Check(&shown)
	}
	if err != nil {
		t.Errorf("an answer: %v", err)
	}
	x.room = nil
	if j, err = x.load(t, p); err != nil {
		t.Fatal(err)
	}
	if err := j.UnitOf(p, 1).Reserve(); err != nil || j.UnitOf(p, 1).Held() {
		t.Errorf("%v", err)
	}
}

// Who computes a shard reads its records alone, and comes to what those come to that have them all; so it does in a dispute.
func TestUnitsReadTheirShard(t *testing.T) {
	whole, p, files := long(t)
	for shard := range shards {
		x := &parts{files: files}
		j, err := x.load(t, p)
		if err != nil {
			t.Fatal(err)
		}
		if x.bytes > 0 {
			t.Fatalf("%d bytes of records are read before a unit is computed", x.bytes)
		}
		for _, round := range []int{0, 1} {
			i := round*shards + shard
			got, err := j.UnitOf(p, i).Play(t.Context(), j.Start, 0, p.Steps, nil)
			if err != nil {
				t.Fatal(err)
			}
			want, err := whole.UnitOf(p, i).Play(t.Context(), whole.Start, 0, p.Steps, nil)
			if err != nil {
				t.Fatal(err)
			}
			if root(t, got) != root(t, want) {
				t.Errorf("unit %d ends in another state where a shard is here alone", i)
			}
		}
		// A run of 256 tiles has 8192 records: there may be one more at each end.
		const run = tensor.CrownRun * tensor.TileSide * columns * 4
		if most := int64(len(files[replay.RoleData])/shards + 2*run); x.bytes > most {
			t.Errorf("shard %d: %d bytes were read, want %d at most", shard, x.bytes, most)
		}
		before := x.bytes
		e, err := j.UnitOf(p, shard).Witness(t.Context(), j.Start).Execution(0)
		if err != nil || x.bytes != before {
			t.Errorf("a witness has read %d bytes more, %v", x.bytes-before, err)
		}
		if e.In.Crown == nil || e.In.Crown.Root() != p.Data {
			t.Error("a witness could not prove its records")
		}
		if err := j.CheckRecords(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A custodian is asked for a tile of the records: it shows it with what leads to the order's root.
func TestRecordsAreShown(t *testing.T) {
	whole, p, files := long(t)
	x := &parts{files: files}
	j, err := x.load(t, p)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		q := proof.Sample{Root: p.Data, State: -1, Seed: canon.Sum("test", fmt.Append(nil, i))}
		for name, j := range map[string]*replay.Job{"parts": j, "whole": whole} {
			shown, err := j.ShowRecords(t.Context(), q)
			if err == nil {
				err = q.Check(&shown)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A file that is not that of the crown is found by who reads the part that is false, before it computes, and by who keeps all of it.
func TestFalseRecordsAreNotComputed(t *testing.T) {
	_, p, files := long(t)
	bad := bytes.Clone(files[replay.RoleData])
	bad[len(bad)-1] ^= 1 // of the last shard
	files[replay.RoleData] = bad
	x := &parts{files: files}
	j, err := x.load(t, p)
	if err != nil {
		t.Fatal(err)
	}
	var unfit *replay.UnfitError
	if _, err := j.UnitOf(p, 0).Play(t.Context(), j.Start, 0, 1, nil); err != nil {
		t.Errorf("a shard that is as it should be: %v", err)
	}
	for range 2 { // nothing that is false is kept
		if _, err := j.UnitOf(p, shards-1).Play(t.Context(), j.Start, 0, 1, nil); !errors.As(err, &unfit) {
			t.Errorf("a false shard is computed: %v", err)
		}
	}
	if err := j.CheckRecords(t.Context()); !errors.As(err, &unfit) {
		t.Errorf("a false file is kept: %v", err)
	}
}

func TestCrownsAreRefused(t *testing.T) {
	_, p, files := long(t)
	for name, c := range map[string]struct {
		change func(p *job.Problem, files map[string][]byte)
		words  string
	}{
		"another crown": {func(_ *job.Problem, f map[string][]byte) {
			f[replay.RoleCrown] = bytes.Clone(f[replay.RoleCrown])
			f[replay.RoleCrown][len(f[replay.RoleCrown])-1] ^= 1
		}, "not that of the order's training records"},
		"half of one":             {func(_ *job.Problem, f map[string][]byte) { f[replay.RoleCrown] = f[replay.RoleCrown][:20] }, "crown of the training records"},
		"a long one":              {func(p *job.Problem, _ map[string][]byte) { p.Files[2].Size = 1 << 40 }, "the limit is"},
		"a file that is too long": {func(p *job.Problem, _ map[string][]byte) { p.Files[1].Size++ }, "and should be"},
	} {
		q, f := *p, map[string][]byte{}
		q.Files = append([]job.File{}, p.Files...)
		for role, b := range files {
			f[role] = b
		}
		c.change(&q, f)
		x := &parts{files: f}
		var unfit *replay.UnfitError
		if _, err := x.load(t, &q); !errors.As(err, &unfit) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Records come one part after the other. Who waits for its turn can be cancelled.
func TestWaitingForRecordsEnds(t *testing.T) {
	_, p, files := long(t)
	began, release := make(chan struct{}), make(chan struct{})
	j, err := replay.Load(t.Context(), p, replay.Files{
		Read: func(f job.File) ([]byte, error) { return files[f.Role], nil },
		Part: func(_ context.Context, f job.File, at, n int64) (io.Reader, error) {
			close(began)
			<-release
			return bytes.NewReader(files[f.Role][at:][:n]), nil
		},
		Folder: t.TempDir(),
	}, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan error, 1)
	go func() {
		_, err := j.UnitOf(p, 0).Play(t.Context(), j.Start, 0, 1, nil)
		first <- err
	}()
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.UnitOf(p, 1).Play(ctx, j.Start, 0, 1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("who is cancelled waits for others: %v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
