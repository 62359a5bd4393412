package dataset

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/format/table"
)

// holdOut returns which records are trained on and which are held out, both in the order of their keys, which is by
// chance: sources are often sorted, and shards are consecutive records, which should be alike.
//
// Held out are the first of them, stratified the first of each class; of groups, whole ones in the order of their own
// keys, until the share is reached.
func (o *Options) holdOut(t *table.Table, target *table.Column) (training, heldOut []int, err error) {
	h := o.HeldOut
	if h.Share == 0 {
		h.Share = 0.1
	}
	order := shuffled(t.Records, h.Seed)
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
	case h.Stratify:
		if target == nil || target.Kind != table.Category && !numbered(target) {
			return nil, nil, errors.New("data.heldOut.stratify: the target has no classes: leave it out")
		}
		first(held, order, groups(target), h.Share)
	case h.Group != "":
		c, err := t.Column(h.Group)
		if err != nil {
			return nil, nil, fmt.Errorf("data.heldOut.group: %w", err)
		}
		all := groups(c)
		n := 0
		for _, g := range shuffled(len(all), h.Seed)[1:] { // one stays
			if float64(n) >= h.Share*float64(t.Records) {
				break
			}
			for _, i := range all[g] {
				held[i] = true
			}
			n += len(all[g])
		}
	default:
		first(held, order, [][]int{order}, h.Share)
	}
	for _, i := range order {
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

// first holds out a share of each of some parts of the records, at least one of two: those that come first.
func first(held []bool, order []int, parts [][]int, share float64) {
	part := make([]int, len(held))
	left := make([]int, len(parts))
	for p, of := range parts {
		if left[p] = int(math.Round(share * float64(len(of)))); left[p] == 0 && len(of) > 1 {
			left[p] = 1
		}
		for _, i := range of {
			part[i] = p
		}
	}
	for _, i := range order {
		if left[part[i]] > 0 {
			held[i] = true
			left[part[i]]--
		}
	}
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// shuffled returns the numbers below n in an order that the seed says.
func shuffled(n int, seed uint64) []int {
	key := func(i int) canon.Hash {
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:8], seed)
		binary.LittleEndian.PutUint64(b[8:], uint64(i))
		return canon.Sum(canon.DomainSplit, b[:])
	}
	heads := make([]uint64, n) // of the keys, which take four times as much
	for i := range heads {
		k := key(i)
		heads[i] = binary.BigEndian.Uint64(k[:])
	}
	out := indices(n)
	slices.SortFunc(out, func(a, b int) int {
		if heads[a] != heads[b] || a == b {
			return cmp.Compare(heads[a], heads[b])
		}
		x, y := key(a), key(b)
		return bytes.Compare(x[:], y[:])
	})
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
