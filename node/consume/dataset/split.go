package dataset

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/format/table"
)

// split returns which records are trained on and which are held out, both in the order of their places by chance: sources
// are often sorted, and shards are consecutive records, which should be alike.
//
// Each record has a place by chance, the hash of the seed and its number; those at the first places
// are held out. By class that happens within each class; by a column, whole groups of one value
// are held out in the order of their places, until the share is reached.
func (o *Options) split(t *table.Table, target *table.Column) (training, heldOut []int, err error) {
	h := o.HeldOut
	share := h.Share
	if share == 0 {
		share = 0.1
	}
	held := make([]bool, t.Records)
	switch {
	case h.Column != "":
		c, err := t.Column(h.Column)
		if err != nil {
			return nil, nil, fmt.Errorf("data.heldOut.column: %w", err)
		}
		for i := range held {
			held[i] = !c.Lacks(i) && c.Value(i) == h.Value
		}
	case h.By == "" || h.By == "chance":
		draw(held, indices(t.Records), share, h.Seed)
	case h.By == "class":
		if target == nil || target.Kind != table.Category {
			return nil, nil, fmt.Errorf("data.heldOut.by is class, but the target is none: leave it out, or name a column")
		}
		for _, of := range groups(target) {
			draw(held, of, share, h.Seed)
		}
	default:
		c, err := t.Column(h.By)
		if err != nil {
			return nil, nil, fmt.Errorf("data.heldOut.by: %w", err)
		}
		all := groups(c)
		places := shuffled(len(all), h.Seed)
		for n := 0; float64(n) < share*float64(t.Records) && len(places) > 1; places = places[1:] {
			for _, i := range all[places[0]] {
				held[i] = true
			}
			n += len(all[places[0]])
		}
	}
	for _, i := range shuffled(t.Records, h.Seed) {
		if held[i] {
			heldOut = append(heldOut, i)
		} else {
			training = append(training, i)
		}
	}
	if len(training) == 0 || len(heldOut) == 0 {
		return nil, nil, fmt.Errorf("%d records are for training and %d held out: both need some, so change data.heldOut or bring more data", len(training), len(heldOut))
	}
	return training, heldOut, nil
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// draw holds out a share of some records, at least one of two.
func draw(held []bool, of []int, share float64, seed uint64) {
	n := int(math.Round(share * float64(len(of))))
	if n == 0 && len(of) > 1 {
		n = 1
	}
	places := shuffled(len(held), seed)
	at := make([]int, len(held))
	for place, i := range places {
		at[i] = place
	}
	of = slices.Clone(of)
	slices.SortFunc(of, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	for _, i := range of[:n] {
		held[i] = true
	}
}

// shuffled returns the numbers below n in an order that the seed says.
func shuffled(n int, seed uint64) []int {
	keys := make([]canon.Hash, n)
	for i := range keys {
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:8], seed)
		binary.LittleEndian.PutUint64(b[8:], uint64(i))
		keys[i] = canon.Sum(canon.DomainSplit, b[:])
	}
	out := indices(n)
	slices.SortFunc(out, func(a, b int) int { return bytes.Compare(keys[a][:], keys[b][:]) })
	return out
}

// groups returns the records of each value of a column, the values in order of their texts. Records without a value
// are a group of their own.
func groups(c *table.Column) (out [][]int) {
	by := map[string][]int{}
	var values []string
	for i := range c.Len() {
		v := "+" + c.Value(i)
		if c.Lacks(i) {
			v = "-"
		}
		if by[v] == nil {
			values = append(values, v)
		}
		by[v] = append(by[v], i)
	}
	slices.Sort(values)
	for _, v := range values {
		out = append(out, by[v])
	}
	return out
}
