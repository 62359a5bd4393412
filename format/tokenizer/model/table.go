package model

import (
	"fmt"
	"math/bits"
)

// table maps pairs of numbers to numbers. It is a hash table with open addressing, at most
// half full: most lookups read one cache line.
type table struct {
	keys   []uint64 // plus one, so that 0 is free
	values []uint64
	shift  uint
	n      int
}

func newTable(n int) *table {
	size := max(bits.Len(uint(2*n)), 4)
	return &table{keys: make([]uint64, 1<<size), values: make([]uint64, 1<<size), shift: uint(64 - size)}
}

func key(a, b int32) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }

// place returns where a key is, or where it would be.
func (t *table) place(k uint64) int {
	i := int(k * 0x9e3779b97f4a7c15 >> t.shift)
	for t.keys[i] != 0 && t.keys[i] != k+1 {
		i = (i + 1) & (len(t.keys) - 1)
	}
	return i
}

func (t *table) get(k uint64) (uint64, bool) {
	i := t.place(k)
	return t.values[i], t.keys[i] != 0
}

func (t *table) put(k, v uint64) {
	i := t.place(k)
	if t.keys[i] == 0 {
		if t.n++; 2*t.n > len(t.keys) {
			t.grow()
			i = t.place(k)
		}
	}
	t.keys[i], t.values[i] = k+1, v
}

func (t *table) grow() {
	old := *t
	*t = *newTable(len(old.keys))
	t.n = old.n
	for i, k := range old.keys {
		if k != 0 {
			at := t.place(k - 1)
			t.keys[at], t.values[at] = k, old.values[i]
		}
	}
}

// maxNodes bounds the nodes of a trie, each of which takes at most 36 bytes.
const maxNodes = 1 << 22

// Trie finds the tokens that a text starts with.
type Trie struct {
	edges []uint64 // a hash table: a node and a byte in the upper half, the node they lead to in the lower
	shift uint
	ids   []int32 // of the token that ends at each node
}

// NewTrie returns one without tokens.
func NewTrie() *Trie {
	return &Trie{edges: make([]uint64, 1<<8), shift: 64 - 8, ids: []int32{none}}
}

// place returns where an edge is, or where it would be.
func (t *Trie) place(edge uint32) int {
	i := int(uint64(edge) * 0x9e3779b97f4a7c15 >> t.shift)
	for t.edges[i] != 0 && uint32(t.edges[i]>>32) != edge {
		i = (i + 1) & (len(t.edges) - 1)
	}
	return i
}

func edgeOf(node int32, b byte) uint32 { return uint32(node)<<8 | uint32(b) }

// step returns the node that a byte leads to.
func (t *Trie) step(node int32, b byte) (int32, bool) {
	e := t.edges[t.place(edgeOf(node, b))]
	return int32(uint32(e)), e != 0
}

// Add enters a token.
func (t *Trie) Add(token string, id int32) error {
	node := int32(0)
	for i := range len(token) {
		next, ok := t.step(node, token[i])
		if !ok {
			next = int32(len(t.ids))
			if next == maxNodes {
				return fmt.Errorf("the tokens have more than %d different beginnings", maxNodes)
			}
			t.ids = append(t.ids, none)
			if 2*len(t.ids) > len(t.edges) {
				t.grow()
			}
			edge := edgeOf(node, token[i])
			t.edges[t.place(edge)] = uint64(edge)<<32 | uint64(next)
		}
		node = next
	}
	t.ids[node] = id
	return nil
}

// Longest returns the longest token that a text starts with, and its length.
func (t *Trie) Longest(text string) (id int32, n int) {
	id = none
	node := int32(0)
	for i := range len(text) {
		next, ok := t.step(node, text[i])
		if !ok {
			break
		}
		if node = next; t.ids[node] != none {
			id, n = t.ids[node], i+1
		}
	}
	return id, n
}

func (t *Trie) grow() {
	old := t.edges
	t.edges = make([]uint64, 2*len(old))
	t.shift--
	for _, e := range old {
		if e != 0 {
			t.edges[t.place(uint32(e>>32))] = e
		}
	}
}
