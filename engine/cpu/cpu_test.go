package cpu_test

import (
	"testing"

	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/internal/testkit/conform"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

func TestConforms(t *testing.T) {
	for _, set := range asm.Sets() {
		t.Run(set.Name, func(t *testing.T) { conform.Run(t, kerneltest.Eager(set)) })
	}
}

func TestManySmallCases(t *testing.T) {
	var all []conform.Make
	for _, set := range asm.Sets() {
		all = append(all, kerneltest.Eager(set))
	}
	conform.Fuzz(t, all...)
}

func FuzzConforms(f *testing.F) {
	f.Add([]byte("\x00\x00\x00"))
	f.Add([]byte("any bytes stand for a case"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, set := range asm.Sets() {
			conform.Check(t, kerneltest.Eager(set), data)
		}
	})
}
