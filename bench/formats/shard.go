package formats

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ipfs/go-cid"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/internal/scratch"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/store"
)

// The order of which a provider computes one shard: 10 GB of texts, of which the others are zeros, that take no disk.
const (
	longRecords = 2_500_000
	longWords   = 1000
	longShards  = 25
	longShard   = 7
	longBatch   = 4
	tokenKinds  = 256
)

// shard measures what a provider of one shard of a dataset of 10 GB fetches, and how much memory its process takes meanwhile.
func shard(ctx context.Context, folder string) ([]Figure, error) {
	origin, err := store.Open(filepath.Join(folder, "origin"), 1<<40)
	if err != nil {
		return nil, err
	}
	p, err := longOrder(ctx, folder, origin)
	if err != nil {
		return nil, err
	}
	for range 30 { // what the consumer held is let go, and then what it had mapped
		debug.FreeOSMemory()
		time.Sleep(100 * time.Millisecond)
	}
	watch := watchMemory(resident)
	fetched, err := provideShard(ctx, p, origin, folder)
	most := watch()
	size := float64(longRecords * longWords * 4)
	figures := []Figure{{Name: "formats/shard/fetched", Unit: "of the bytes of its shard", Value: float64(fetched) / (size / longShards), Most: 1.05}}
	if most > 0 {
		figures = append(figures, Figure{Name: "formats/shard/memory", Unit: "MB", Value: float64(most) / 1e6, Most: 500})
	}
	return figures, err
}

// longOrder puts the files of the order into a store.
func longOrder(ctx context.Context, folder string, into *store.Store) (*job.Problem, error) {
	memory, err := scratch.New(folder, longRecords*longWords*4)
	if err != nil {
		return nil, err
	}
	data, err := tensor.Over(tensor.Int32, tensor.Shape{longRecords, longWords}, memory.Bytes(), memory)
	if err != nil {
		return nil, err
	}
	r, record := rand.New(rand.NewPCG(1, 7)), make([]byte, longWords*4)
	for i := longRecords / longShards * longShard; i < longRecords/longShards*(longShard+1); i++ {
		for w := range longWords {
			record[4*w] = byte(r.Uint32N(tokenKinds))
		}
		if _, err := memory.WriteAt(record, int64(i)*longWords*4); err != nil {
			return nil, err
		}
	}
	b := graph.NewBuilder("next")
	tokens := b.Input("tokens", tensor.Int32, tensor.Shape{longBatch, longWords - 1})
	table := b.Init("table", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{tokenKinds, tokenKinds})))
	b.Output(b.Op("Gather", table, tokens), tensor.Float32, tensor.Shape{longBatch, longWords - 1, tokenKinds})
	recipe := train.Recipe{Loss: "next-token-cross-entropy", Optimizer: "sgd", Rate: train.Rate{LearningRate: 1}, Batch: longBatch}
	j, err := replay.New(ctx, replay.Inputs{Model: b.Graph(), Recipe: recipe, Data: data}, longShards, cpu.New(1))
	if err != nil {
		return nil, err
	}
	p := &job.Problem{Rounds: 1, Steps: 8, Interval: 8}
	if err := j.Bind(p); err != nil {
		return nil, err
	}
	model, err := onnx.Write(j.Model)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct {
		role string
		in   io.Reader
	}{
		{replay.RoleModel, bytes.NewReader(model)},
		{replay.RoleCrown, bytes.NewReader(canon.Marshal(j.Crown))},
		{replay.RoleData, store.Joined([][]byte{canon.Encode(data.Head), data.Bytes()})},
	} {
		ref, err := into.Put("order", f.in)
		if err != nil {
			return nil, err
		}
		p.Files = append(p.Files, blobs.File(f.role, ref))
	}
	runtime.KeepAlive(data)
	return p, nil
}

// counted counts the bytes that a source has given.
type counted struct {
	store.Source
	n atomic.Int64
}

func (c *counted) Block(ctx context.Context, id cid.Cid) ([]byte, error) {
	b, err := c.Source.Block(ctx, id)
	c.n.Add(int64(len(b)))
	return b, err
}

// provideShard computes a unit of the shard as a provider does, of files that a source has, and returns how many bytes it fetched.
func provideShard(ctx context.Context, p *job.Problem, origin store.Source, folder string) (int64, error) {
	mine, err := store.Open(filepath.Join(folder, "provider"), 1<<40)
	if err != nil {
		return 0, err
	}
	from := &counted{Source: origin}
	get := func(ctx context.Context, f job.File, part store.Part) (io.Reader, error) {
		ref, err := blobs.RefOf(f)
		if err == nil {
			err = mine.Fetch(ctx, store.Request{Ref: ref, Pin: "order", Part: part, Sources: []store.Source{from}})
		}
		if err != nil {
			return nil, err
		}
		return mine.Get(ref, part)
	}
	j, err := replay.Load(ctx, p, replay.Files{
		Read: func(f job.File) ([]byte, error) {
			in, err := get(ctx, f, store.Part{})
			if err != nil {
				return nil, err
			}
			return io.ReadAll(in)
		},
		Part: func(ctx context.Context, f job.File, at, n int64) (io.Reader, error) {
			return get(ctx, f, store.Part{At: at, N: n})
		},
		Folder: mine.Scratch(),
	}, cpu.New(1))
	if err != nil {
		return 0, err
	}
	if _, err := j.UnitOf(p, longShard).Play(ctx, j.Start, 0, p.Steps, nil); err != nil {
		return 0, fmt.Errorf("the unit of shard %d: %w", longShard, err)
	}
	return from.n.Load(), nil
}

// watchMemory samples taken until it is asked for the most; 0 where the system does not tell.
func watchMemory(taken func() int64) (most func() int64) {
	end, last := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, taken())
			select {
			case <-tick.C:
			case <-end:
				last <- most
				return
			}
		}
	}()
	return func() int64 { close(end); return <-last }
}

// resident returns the bytes of memory that this process takes, by Linux's account of it.
func resident() int64 { return memoryPages(1) }

// private returns the resident bytes that no file backs.
func private() int64 { return memoryPages(1) - memoryPages(2) }

// memoryPages returns a field of Linux's account, in bytes.
func memoryPages(field int) int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) <= field {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[field]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
