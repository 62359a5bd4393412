package canon

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDomainsAreDistinctAndFit(t *testing.T) {
	// Sum's preimage is len ‖ domain ‖ body, so equal bodies under two domains
	// must differ, and a domain must not swallow the start of another's body.
	if Sum("a", []byte("bc")) == Sum("ab", []byte("c")) {
		t.Fatal("domain and body run into each other")
	}
	long := bytes.Repeat([]byte{7}, 1000)
	if Sum(DomainTile, long) != Sum(DomainTile, long[:300], long[300:]) {
		t.Fatal("parts of a body must concatenate")
	}
}

func TestHashText(t *testing.T) {
	h := Sum(DomainTile, []byte("x"))
	text, _ := h.MarshalText()
	var back Hash
	if err := back.UnmarshalText(text); err != nil || back != h {
		t.Fatalf("round trip: %v %v", back, err)
	}
	for _, bad := range []string{"", "00", string(text[:63]) + "g", string(text) + "00"} {
		if _, err := ParseHash(bad); err == nil {
			t.Errorf("%q was taken for a hash", bad)
		}
	}
}

func TestEncodingRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.Uint64().Draw(t, "u")
		i := rapid.Int64().Draw(t, "i")
		s := rapid.String().Draw(t, "s")
		f := rapid.Bool().Draw(t, "f")
		hs := rapid.SliceOfN(rapid.Just(Sum("x")), 0, 5).Draw(t, "hs")
		b := Encode(func(e *Encoder) {
			e.Uint(u)
			e.Int(i)
			e.String(s)
			e.Bool(f)
			e.Fixed64(u)
			e.Hashes(hs)
		})
		err := Decode(b, func(d *Decoder) {
			if d.Uint(^uint64(0)) != u || d.Int() != i || d.String(1<<20) != s || d.Bool() != f || d.Fixed64() != u {
				t.Fatal("a value changed")
			}
			if len(d.Hashes(10)) != len(hs) {
				t.Fatal("list changed")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestDecoderRefuses(t *testing.T) {
	huge := Encode(func(e *Encoder) { e.Uint(1 << 40) })
	cases := map[string]struct {
		in   []byte
		read func(*Decoder)
	}{
		"left over":       {[]byte{1, 2}, func(d *Decoder) { d.U8() }},
		"short":           {[]byte{5, 1}, func(d *Decoder) { d.Blob(10) }},
		"over the limit":  {[]byte{5, 1, 1, 1, 1, 1}, func(d *Decoder) { d.Blob(4) }},
		"not minimal":     {[]byte{0x80, 0x00}, func(d *Decoder) { d.Uint(100) }},
		"unterminated":    {[]byte{0x80}, func(d *Decoder) { d.Uint(100) }},
		"overflow":        {bytes.Repeat([]byte{0xff}, 11), func(d *Decoder) { d.Uint(^uint64(0)) }},
		"boolean":         {[]byte{2}, func(d *Decoder) { d.Bool() }},
		"list past input": {huge, func(d *Decoder) { d.Hashes(1 << 50) }},
	}
	for name, c := range cases {
		if err := Decode(c.in, c.read); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, in []byte) {
		// Whatever decodes must encode to the same bytes.
		var u uint64
		var i int64
		var s string
		var hs []Hash
		if Decode(in, func(d *Decoder) { u, i, s, hs = d.Uint(1<<63), d.Int(), d.String(64), d.Hashes(8) }) != nil {
			return
		}
		out := Encode(func(e *Encoder) { e.Uint(u); e.Int(i); e.String(s); e.Hashes(hs) })
		if !bytes.Equal(in, out) {
			t.Fatalf("%x decodes, and encodes as %x", in, out)
		}
	})
}

func leaves(n int) []Hash {
	out := make([]Hash, n)
	for i := range out {
		out[i] = Sum("leaf", []byte{byte(i), byte(i >> 8)})
	}
	return out
}

func TestInclusion(t *testing.T) {
	for n := 1; n <= 70; n++ {
		tree := NewTree(leaves(n))
		root := tree.Root()
		if root != Root(leaves(n)) {
			t.Fatalf("n=%d: tree and streaming root differ", n)
		}
		for i := range n {
			path := tree.Prove(i)
			if err := Verify(root, n, i, tree.Leaf(i), path); err != nil {
				t.Fatalf("n=%d i=%d: %v", n, i, err)
			}
			for j := range n {
				if j != i && Verify(root, n, j, tree.Leaf(i), path) == nil {
					t.Fatalf("n=%d: leaf %d verified at %d", n, i, j)
				}
			}
			if Verify(root, n+1, i, tree.Leaf(i), path) == nil {
				t.Fatalf("n=%d: a proof held for another leaf count", n)
			}
			if Verify(root, n, i, tree.Leaf(i), append(path, Hash{})) == nil {
				t.Fatal("a longer path held")
			}
			for k := range path {
				short := append(append([]Hash{}, path[:k]...), path[k+1:]...)
				if Verify(root, n, i, tree.Leaf(i), short) == nil {
					t.Fatal("a shorter path held")
				}
				bent := append([]Hash{}, path...)
				bent[k][0] ^= 1
				if Verify(root, n, i, tree.Leaf(i), bent) == nil {
					t.Fatal("a bent path held")
				}
			}
		}
	}
	for _, n := range []int{-1, 0, 1 << 62} {
		if Verify(Hash{}, n, 0, Hash{}, nil) == nil {
			t.Fatalf("n=%d verified", n)
		}
	}
}

func TestExpandAndJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "n")
		depth := rapid.IntRange(0, 10).Draw(t, "depth")
		tree := NewTree(leaves(n))
		s := Full(n)
		spans := s.Expand(depth)
		at := 0
		for _, c := range spans {
			if c.Lo != at {
				t.Fatal("spans leave a gap")
			}
			at += c.N
		}
		if at != n || len(spans) > 1<<depth {
			t.Fatalf("%d spans cover %d of %d leaves", len(spans), at, n)
		}
		hashes := tree.Nodes(spans)
		h, err := s.Join(depth, hashes)
		if err != nil || RootOf(n, h) != tree.Root() {
			t.Fatal("join does not give the root back", err)
		}
		for _, bad := range [][]Hash{hashes[1:], append(append([]Hash{}, hashes...), Hash{}), nil} {
			if _, err := s.Join(depth, bad); err == nil && len(bad) != len(hashes) {
				t.Fatal("join took a wrong number of hashes")
			}
		}
		// A path inside a descendant leads to that descendant's hash.
		c := spans[rapid.IntRange(0, len(spans)-1).Draw(t, "child")]
		i := c.Lo + rapid.IntRange(0, c.N-1).Draw(t, "leaf")
		got, err := c.Climb(i, tree.Leaf(i), tree.Path(c, i))
		if err != nil || got != tree.Node(c) {
			t.Fatal("climb misses its subtree", err)
		}
	})
}

func keyed(t testing.TB, n int) *Keyed {
	entries := make([]Entry, n)
	for i := range entries {
		entries[i] = Entry{fmt.Sprintf("k%03d", 2*i+1), Sum("value", []byte{byte(i)})}
	}
	k, err := NewKeyed(entries)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeyedPresenceAndAbsence(t *testing.T) {
	for n := 0; n < 20; n++ {
		k := keyed(t, n)
		root := k.Root()
		for i := range n {
			o := k.Open(i)
			if err := o.Verify(root); err != nil {
				t.Fatal(err)
			}
			o.Entry.Value[3] ^= 1
			if o.Verify(root) == nil {
				t.Fatal("another value verified")
			}
			if _, err := k.ProveAbsent(k.Entries()[i].Key); err == nil {
				t.Fatal("a present key was proved absent")
			}
		}
		for i := 0; i <= 2*n; i += 2 {
			key := fmt.Sprintf("k%03d", i)
			a, err := k.ProveAbsent(key)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Verify(root, key); err != nil {
				t.Fatalf("n=%d %s: %v", n, key, err)
			}
			for j := range n {
				if a.Verify(root, k.Entries()[j].Key) == nil {
					t.Fatalf("absence proof of %s hides %s", key, k.Entries()[j].Key)
				}
			}
		}
	}
}

func TestAbsenceNeedsNeighbours(t *testing.T) {
	k := keyed(t, 8)
	a, b, c := k.Open(2), k.Open(3), k.Open(4)
	hidden := b.Entry.Key
	for name, forged := range map[string]Absence{
		"gap":        {&a, &c},
		"not first":  {nil, &c},
		"not last":   {&a, nil},
		"empty":      {nil, nil},
		"same twice": {&a, &a},
	} {
		if forged.Verify(k.Root(), hidden) == nil {
			t.Errorf("%s: a present key was proved absent", name)
		}
	}
}

func TestKeyedRefusesDisorder(t *testing.T) {
	for _, keys := range [][]string{{"b", "a"}, {"a", "a"}, {string(make([]byte, MaxKey+1))}} {
		entries := make([]Entry, len(keys))
		for i, k := range keys {
			entries[i].Key = k
		}
		if _, err := NewKeyed(entries); err == nil {
			t.Errorf("%.20q were taken", keys)
		}
	}
}

func BenchmarkRoot(b *testing.B) {
	ls := leaves(4096)
	b.ReportAllocs()
	for b.Loop() {
		Root(ls)
	}
}

type sample struct {
	U    uint64
	I    int64
	N    int
	B    bool
	S    string
	Blob []byte
	H    Hash
	Hs   []Hash
	L    []sample
	Part uint8 // below 8
}

func (s *sample) Code(c *Codec) {
	c.U64(&s.U)
	c.I64(&s.I)
	c.Int(&s.N, 100)
	c.Bool(&s.B)
	c.String(&s.S, 64)
	c.Blob(&s.Blob, 64)
	c.Hash(&s.H)
	c.Hashes(&s.Hs, 4)
	Seq(c, &s.L, 4, 40, func(c *Codec, s *sample) { s.Code(c) })
	With(c, &s.Part, func(v uint8, e *Encoder) { e.U8(v) }, func(d *Decoder) uint8 { return uint8(d.Uint(7)) })
}

func TestCodecReadsWhatItWrites(t *testing.T) {
	in := sample{U: 1 << 63, I: -5, N: 100, B: true, S: "s", Blob: []byte{1}, H: Sum("x"), Hs: leaves(3), L: []sample{{N: 7}, {S: "inner"}}}
	b := Marshal(&in)
	var out sample
	if err := Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(Marshal(&out), b) || out.L[1].S != "inner" || out.I != -5 {
		t.Fatalf("got %+v", out)
	}
	for i := range b {
		var cut sample
		if Unmarshal(b[:i], &cut) == nil {
			t.Fatalf("the first %d bytes decode alone", i)
		}
	}
	if e, err := Encoded(&in); err != nil || !bytes.Equal(e, b) {
		t.Fatalf("what keeps its limits is encoded as %x, %v; want %x", e, err, b)
	}
}

// What reading would refuse is not written for storage.
func TestWritingHasTheLimitsOfReading(t *testing.T) {
	for name, exceed := range map[string]func(*sample){
		"a number above":    func(s *sample) { s.N = 101 },
		"a number below":    func(s *sample) { s.N = -1 },
		"a long string":     func(s *sample) { s.S = strings.Repeat("s", 65) },
		"a long blob":       func(s *sample) { s.Blob = make([]byte, 65) },
		"many hashes":       func(s *sample) { s.Hs = leaves(5) },
		"a long list":       func(s *sample) { s.L = make([]sample, 5) },
		"inside a list":     func(s *sample) { s.L = []sample{{N: 101}} },
		"a part of its own": func(s *sample) { s.Part = 8 },
	} {
		var in sample
		exceed(&in)
		if Unmarshal(Marshal(&in), new(sample)) == nil {
			t.Errorf("%s: it was read", name)
		}
		if _, err := Encoded(&in); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: it is encoded for storage: %v", name, err)
		}
	}
}

type empty struct{}

func (*empty) Code(*Codec) {}

func TestListsOfShortItemsAreNotStored(t *testing.T) {
	short := &coder{func(c *Codec) { Seq(c, &[]empty{{}}, 1, 1, func(c *Codec, e *empty) { e.Code(c) }) }}
	if _, err := Encoded(short); !errors.Is(err, ErrUnreadable) {
		t.Fatal(err)
	}
}

type coder struct{ code func(*Codec) }

func (c *coder) Code(w *Codec) { c.code(w) }
