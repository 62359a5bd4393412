package canon

import (
	"errors"
	"fmt"
	"sort"
)

// Entry is one key of a keyed tree and the hash of its value.
type Entry struct {
	Key   string
	Value Hash
}

// MaxKey bounds the length of a key in bytes.
const MaxKey = 1024

// Leaf returns the leaf hash of e.
func (e Entry) Leaf() Hash {
	return Sum(DomainEntry, Encode(func(w *Encoder) {
		w.String(e.Key)
		w.Hash(e.Value)
	}))
}

// Keyed is a Merkle tree over entries in ascending order of their keys. It
// proves that a key has a value, and that a key is absent.
type Keyed struct {
	*Tree
	entries []Entry
}

// NewKeyed builds a keyed tree. Keys must be strictly ascending (byte order)
// and at most MaxKey bytes.
func NewKeyed(entries []Entry) (*Keyed, error) {
	leaves := make([]Hash, len(entries))
	for i, e := range entries {
		if i > 0 && entries[i-1].Key >= e.Key {
			return nil, fmt.Errorf("keys out of order: %q before %q", entries[i-1].Key, e.Key)
		}
		if len(e.Key) > MaxKey {
			return nil, fmt.Errorf("key of %d bytes, limit %d", len(e.Key), MaxKey)
		}
		leaves[i] = e.Leaf()
	}
	return &Keyed{NewTree(leaves), entries}, nil
}

// Entries returns the entries in order; callers must not change them.
func (k *Keyed) Entries() []Entry { return k.entries }

// Find returns the position of key, or where it would be.
func (k *Keyed) Find(key string) (i int, found bool) {
	i = sort.Search(len(k.entries), func(i int) bool { return k.entries[i].Key >= key })
	return i, i < len(k.entries) && k.entries[i].Key == key
}

// Opening shows one entry at its place in a tree of N leaves.
type Opening struct {
	N, Index int
	Entry    Entry
	Path     []Hash
}

// Open returns the opening of entry i.
func (k *Keyed) Open(i int) Opening {
	return Opening{N: k.Len(), Index: i, Entry: k.entries[i], Path: k.Prove(i)}
}

// Root returns the root that o leads to.
func (o Opening) Root() (Hash, error) {
	h, err := Full(o.N).Climb(o.Index, o.Entry.Leaf(), o.Path)
	if err != nil {
		return Hash{}, err
	}
	return RootOf(o.N, h), nil
}

// Verify checks o against root.
func (o Opening) Verify(root Hash) error {
	got, err := o.Root()
	if err == nil && got != root {
		err = ErrProof
	}
	return err
}

// Absence shows that a key is not in a tree: its two neighbours stand side by
// side, or its one neighbour stands at an end, or the tree is empty.
type Absence struct{ Before, After *Opening }

// ProveAbsent returns the absence proof of key, or an error if it is present.
func (k *Keyed) ProveAbsent(key string) (Absence, error) {
	i, found := k.Find(key)
	if found {
		return Absence{}, fmt.Errorf("key %q is present", key)
	}
	var a Absence
	if i > 0 {
		o := k.Open(i - 1)
		a.Before = &o
	}
	if i < k.Len() {
		o := k.Open(i)
		a.After = &o
	}
	return a, nil
}

var errAbsence = errors.New("absence proof does not match its root")

// Verify checks that key is absent under root.
func (a Absence) Verify(root Hash, key string) error {
	switch {
	case a.Before == nil && a.After == nil:
		if root != Root(nil) {
			return errAbsence
		}
		return nil
	case a.Before == nil:
		if a.After.Index != 0 {
			return errAbsence
		}
	case a.After == nil:
		if a.Before.Index != a.Before.N-1 {
			return errAbsence
		}
	default:
		if a.Before.N != a.After.N || a.Before.Index+1 != a.After.Index {
			return errAbsence
		}
	}
	if a.Before != nil {
		if a.Before.Entry.Key >= key {
			return errAbsence
		}
		if err := a.Before.Verify(root); err != nil {
			return err
		}
	}
	if a.After != nil {
		if a.After.Entry.Key <= key {
			return errAbsence
		}
		if err := a.After.Verify(root); err != nil {
			return err
		}
	}
	return nil
}
