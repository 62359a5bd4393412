// Package wire is what the chain and those who speak to it must agree on: core's types
// as messages carry them, what keys sign, and where proofs look.
//
// There is one pair of functions for each concept, such as [OrderToProto] and
// [OrderFromProto]. Messages are untrusted: a FromProto checks how long each list is before
// it allocates, and returns an error that names the field. What it returns has a meaning,
// but is not yet right: that core says, with Check or Apply.
//
// Leases and disputes are only shown: their state travels as canonical bytes.
//
// # Invariants
//
// What FromProto accepts, ToProto gives back, and the identity of an order or a
// receipt is the same on both sides. No function panics, whatever the message holds.
//
// Source: docs/spec/lease.md and dispute.md; proto has the messages.
package wire

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
)

// tooMany returns an error if a message lists more than it may.
func tooMany(n, most int, what string) error {
	if n > most {
		return fmt.Errorf("%d %s, want at most %d", n, what, most)
	}
	return nil
}

func hashesToProto(hs []canon.Hash) [][]byte {
	out := make([][]byte, len(hs))
	for i := range hs {
		out[i] = hs[i][:]
	}
	return out
}

// hashesFromProto reads at most so many hashes.
func hashesFromProto(bs [][]byte, most int) ([]canon.Hash, error) {
	if err := tooMany(len(bs), most, "hashes"); err != nil {
		return nil, err
	}
	out := make([]canon.Hash, len(bs))
	for i, b := range bs {
		h, err := canon.HashOf(b)
		if err != nil {
			return nil, err
		}
		out[i] = h
	}
	return out, nil
}

func list[S, T any](in []S, f func(S) T) []T {
	var out []T
	for _, x := range in {
		out = append(out, f(x))
	}
	return out
}
