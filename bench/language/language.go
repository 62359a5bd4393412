// Package language measures a language model as one process runs it. Call [Measure] on a GGUF file.
//
// Each figure is the best of several short runs: others on the machine only ever make a run longer. Decoding reads every weight once for
// a token, so its bandwidth stands beside that of reading as many bytes and doing nothing else, in turn with it.
//
// Invariants: what is measured is what `tally run` computes, on as many threads as are asked for.
package language

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
)

// Figures are those of a model on some threads.
type Figures struct {
	Prefill float64 // tokens a second, of a prompt of Prompt tokens
	Decode  float64 // tokens a second, one after another behind Prompt / 2 others
	Batch   float64 // the same for Sequences at once, all together
	Read    float64 // bytes of weights a second, while decoding
	Stream  float64 // bytes a second, by reading alone
}

// Prompt is how many tokens are read at once, and Sequences how many replies are made.
const (
	Prompt    = 512
	Sequences = 16
)

// A figure is the best of runs that together take enough, and of so many at least.
const (
	enough = 3 * time.Second
	runs   = 3
)

// Measure opens a GGUF file and measures it on some threads.
func Measure(ctx context.Context, path string, threads int) (f Figures, err error) {
	of, err := files.Describe(path)
	if err != nil {
		return f, err
	}
	m, err := lm.OpenGGUF(path)
	if err != nil {
		return f, err
	}
	if m.Context < 2*Prompt {
		return f, fmt.Errorf("%s: its context of %d tokens is too short: %d are needed", path, m.Context, 2*Prompt)
	}
	prompt := make([]int32, Prompt)
	for i := range prompt {
		prompt[i] = int32((i*31 + 1) % m.Vocabulary)
	}
	s := m.Stages(cpu.New(threads))
	took, err := best(ctx, func() error { return read(ctx, s, &lm.Sequence{}, prompt, 1) })
	if err != nil {
		return f, err
	}
	f.Prefill = Prompt / took.Seconds()
	bytes := reading(int(of.Memory), threads)
	if f.Decode, f.Stream, err = decode(ctx, s, prompt[:Prompt/2], 1, bytes.read); err != nil {
		return f, err
	}
	f.Read, f.Stream = f.Decode*float64(of.Memory), f.Stream*float64(of.Memory)
	f.Batch, _, err = decode(ctx, s, prompt[:Prompt/2], Sequences, func() {})
	return f, err
}

// read reads a prompt into a sequence, and makes so many logits of its end.
func read(ctx context.Context, s *lm.Stages, q *lm.Sequence, prompt []int32, logits int) error {
	for at := 0; at < len(prompt); at += lm.Chunk {
		p := lm.Part{Sequence: q, Tokens: prompt[at:min(at+lm.Chunk, len(prompt))]}
		if at+lm.Chunk >= len(prompt) {
			p.Logits = logits
		}
		if _, err := s.Step(ctx, []lm.Part{p}); err != nil {
			return err
		}
	}
	return nil
}

// decode lets sequences go on behind a prompt. It returns tokens a second, and how often a second do can be called, in turn with it.
func decode(ctx context.Context, s *lm.Stages, prompt []int32, sequences int, do func()) (tokens, calls float64, err error) {
	parts := make([]lm.Part, sequences)
	for i := range parts {
		parts[i] = lm.Part{Sequence: &lm.Sequence{}, Tokens: prompt[:lm.Chunk]}
		if err := read(ctx, s, parts[i].Sequence, prompt, 0); err != nil {
			return 0, 0, err
		}
		parts[i].Tokens, parts[i].Logits = prompt[i:i+1], 1
	}
	least := time.Hour
	took, err := best(ctx, func() error {
		begun := time.Now()
		do()
		least = min(least, time.Since(begun))
		return nil
	}, func() error {
		for i := range parts {
			parts[i].Sequence.Cut(len(prompt))
		}
		_, err := s.Step(ctx, parts)
		return err
	})
	return float64(sequences) / took.Seconds(), 1 / least.Seconds(), err
}

// best returns the least time of the last of some functions, which take turns.
func best(ctx context.Context, do ...func() error) (least time.Duration, err error) {
	least = time.Hour
	for i, begun := 0, time.Now(); i < runs || time.Since(begun) < enough; i++ {
		for j, f := range do {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			at := time.Now()
			if err := f(); err != nil {
				return 0, err
			}
			if j == len(do)-1 {
				least = min(least, time.Since(at))
			}
		}
	}
	return least, nil
}

// stream is memory that is read by several threads.
type stream struct {
	words   []uint64
	threads int
	sums    []uint64
}

func reading(bytes, threads int) *stream {
	s := &stream{make([]uint64, bytes/8), threads, make([]uint64, threads)}
	for i := range s.words {
		s.words[i] = uint64(i)
	}
	mem.SharedHugePages(mem.Slice[byte](mem.First(s.words), len(s.words)*8))
	return s
}

// read reads all of it.
func (s *stream) read() {
	var wait sync.WaitGroup
	n := len(s.words)
	for t := range s.threads {
		wait.Go(func() {
			var a, b, c, d uint64
			for x := s.words[t*n/s.threads : (t+1)*n/s.threads]; len(x) >= 8; x = x[8:] {
				a, b, c, d = a+x[0]+x[4], b+x[1]+x[5], c+x[2]+x[6], d+x[3]+x[7]
			}
			s.sums[t] = a + b + c + d
		})
	}
	wait.Wait()
}
