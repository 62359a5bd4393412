package cpu

import (
	"testing"

	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/internal/testkit/conform"
)

// eager shares even the smallest work among threads.
func eager(threads int) engine.Executor {
	e := New(threads)
	e.worthwhile = 1
	return e
}

func TestConforms(t *testing.T) { conform.Run(t, eager) }

func FuzzConforms(f *testing.F) {
	f.Add([]byte("\x00\x00\x00"))
	f.Add([]byte("any bytes stand for a case"))
	f.Fuzz(func(t *testing.T, data []byte) { conform.Check(t, eager, data) })
}
