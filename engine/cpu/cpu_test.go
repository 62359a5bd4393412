package cpu

import (
	"testing"

	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/internal/testkit/conform"
)

// eager returns executors that share even the smallest work among threads.
func eager(set *asm.Set) conform.Make {
	return func(threads int) engine.Executor {
		e := New(threads)
		e.set, e.worthwhile = set, 1
		return e
	}
}

func TestConforms(t *testing.T) {
	for _, set := range asm.Sets() {
		t.Run(set.Name, func(t *testing.T) { conform.Run(t, eager(set)) })
	}
}

func TestManySmallCases(t *testing.T) {
	var all []conform.Make
	for _, set := range asm.Sets() {
		all = append(all, eager(set))
	}
	conform.Fuzz(t, all...)
}

func FuzzConforms(f *testing.F) {
	f.Add([]byte("\x00\x00\x00"))
	f.Add([]byte("any bytes stand for a case"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, set := range asm.Sets() {
			conform.Check(t, eager(set), data)
		}
	})
}
