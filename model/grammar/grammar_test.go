package grammar

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/core/canon"
)

// form is a random form, with what it accepts said by a matcher that tries everything.
type form struct {
	build func(b *Builder, next Node) Node
	match func(text string, then func(rest string) bool) bool
}

func random(r *rand.Rand, depth int) form {
	kind := r.IntN(5)
	if depth == 0 {
		kind = r.IntN(2)
	}
	switch kind {
	case 0:
		low := byte('a' + r.IntN(3))
		high := low + byte(r.IntN(2))
		if r.IntN(3) == 0 { // all common bytes alike
			low, high = ' ', '~'
		}
		return form{
			func(b *Builder, next Node) Node { return b.Bytes(low, high, next) },
			func(t string, then func(string) bool) bool {
				return t != "" && t[0] >= low && t[0] <= high && then(t[1:])
			},
		}
	case 1:
		text := strings.Repeat("ab", r.IntN(2)) + strings.Repeat("c", r.IntN(2))
		return form{
			func(b *Builder, next Node) Node { return b.Text(text, next) },
			func(t string, then func(string) bool) bool { return strings.HasPrefix(t, text) && then(t[len(text):]) },
		}
	case 2:
		x, y := random(r, depth-1), random(r, depth-1)
		return form{
			func(b *Builder, next Node) Node { return x.build(b, y.build(b, next)) },
			func(t string, then func(string) bool) bool {
				return x.match(t, func(rest string) bool { return y.match(rest, then) })
			},
		}
	case 3:
		x, y := random(r, depth-1), random(r, depth-1)
		return form{
			func(b *Builder, next Node) Node { return b.Either(x.build(b, next), y.build(b, next)) },
			func(t string, then func(string) bool) bool { return x.match(t, then) || y.match(t, then) },
		}
	}
	x := random(r, depth-1)
	lowest := r.IntN(3)
	most := lowest + r.IntN(3)
	if r.IntN(2) == 0 {
		most = -1
	}
	var match func(t string, n int, then func(string) bool) bool
	match = func(t string, n int, then func(string) bool) bool {
		if n >= lowest && then(t) {
			return true
		}
		return (most < 0 || n < most) && x.match(t, func(rest string) bool {
			return (len(rest) < len(t) || n < lowest) && match(rest, n+1, then)
		})
	}
	return form{
		func(b *Builder, next Node) Node {
			return b.Repeat(lowest, most, next, func(next Node) Node { return x.build(b, next) })
		},
		func(t string, then func(string) bool) bool { return match(t, 0, then) },
	}
}

func built(t *testing.T, f form) *Automaton {
	t.Helper()
	b := NewBuilder()
	a, err := b.Build(f.build(b, b.End()))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func words(n int) []string {
	out := []string{""}
	for i := 0; len(out[i]) < n; i++ {
		for _, c := range "abcd" {
			out = append(out, out[i]+string(c))
		}
	}
	return out
}

// Automata accept what forms mean, read again as they were written, and are those of their language however it was written.
func TestForms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	texts := words(5)
	for range 300 {
		x, y := random(r, 3), random(r, 3)
		a, c := built(t, x), built(t, y)
		b := NewBuilder()
		both, bothErr := b.Intersect(a, c)
		less, lessErr := b.Except(a, c)
		alike := true
		for _, text := range texts {
			inX, inY := x.match(text, func(rest string) bool { return rest == "" }), y.match(text, func(rest string) bool { return rest == "" })
			if a.Accepts([]byte(text)) != inX {
				t.Fatalf("%q: %v, want %v", text, !inX, inX)
			}
			if got := bothErr == nil && both.Accepts([]byte(text)); got != (inX && inY) {
				t.Fatalf("%q in both: %v, %v", text, got, bothErr)
			}
			if got := lessErr == nil && less.Accepts([]byte(text)); got != (inX && !inY) {
				t.Fatalf("%q in one alone: %v, %v", text, got, lessErr)
			}
			alike = alike && inX == inY
		}
		if same := a.ID() == c.ID(); same && !alike || same != (errors.Is(lessErr, ErrEmpty) && b.same(c, a)) {
			t.Fatalf("of one language: %v, of one identity: %v", alike, same)
		}
		var back Automaton
		if err := canon.Unmarshal(canon.Marshal(a), &back); err != nil {
			t.Fatal(err)
		}
		again, err := back.minimal()
		if err != nil || again.ID() != a.ID() || back.ID() != a.ID() {
			t.Fatalf("read again it is another: %v", err)
		}
	}
}

// same reports whether x accepts nothing that y does not.
func (b *Builder) same(x, y *Automaton) bool {
	_, err := b.Except(x, y)
	return errors.Is(err, ErrEmpty)
}

// What would take more than bounds is refused, and soon.
func TestLargeFormsAreRefused(t *testing.T) {
	for name, write := range map[string]func(b *Builder) Node{
		"a state for each subset": func(b *Builder) Node {
			any := func(next Node) Node { return b.Bytes('a', 'b', next) }
			return b.Loop(b.Bytes('a', 'a', b.Repeat(30, 30, b.End(), any)), any)
		},
		"many nodes": func(b *Builder) Node {
			return b.Repeat(0, 1<<30, b.End(), func(next Node) Node { return b.Text("ab", next) })
		},
		"many loops": func(b *Builder) Node {
			n := b.End()
			for range 1 << 13 {
				n = b.Loop(n, func(next Node) Node { return b.Bytes('a', 'z', next) })
			}
			return n
		},
		"many states": func(b *Builder) Node {
			return b.Repeat(0, MaxStates, b.End(), func(next Node) Node { return b.Bytes('a', 'z', next) })
		},
	} {
		b := NewBuilder()
		begun := time.Now()
		a, err := b.Build(write(b))
		if name == "many loops" && err == nil && a.Len() == 1 {
			continue // they are one
		}
		if !errors.Is(err, ErrLarge) {
			t.Errorf("%s: %v, %v", name, a, err)
		}
		t.Log(name, time.Since(begun), *b.work)
	}
	b := NewBuilder()
	if a, err := b.Build(b.Repeat(0, MaxStates-1, b.End(), func(next Node) Node { return b.Bytes('a', 'z', next) })); err != nil || a.Len() != MaxStates {
		t.Errorf("%v, of as many states as there may be", err)
	}
	if _, err := b.Build(None); !errors.Is(err, ErrEmpty) {
		t.Errorf("%v", err)
	}
}

// Every state of an index has a mask that is what the tokens' bytes say, and its tables say the same.
func TestIndicesFollowBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		a := built(t, random(r, 3))
		texts := [][]byte{nil, {'a'}, {'b'}, {'c'}, {'a'}}
		if r.IntN(2) == 0 {
			for b := byte(' '); b <= '~'; b++ {
				texts = append(texts, []byte{b}, []byte{b, 'a'})
			}
		}
		if r.IntN(2) == 0 {
			texts = append(texts, []byte{'d'})
		}
		all := words(4)
		for range 30 {
			texts = append(texts, []byte(all[r.IntN(len(all))]))
		}
		v := NewVocabulary(len(texts), func(id int32) []byte { return texts[id] })
		x, err := NewIndex(a, v)
		if errors.Is(err, ErrEmpty) && !v.alone['d'] {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		tables := x.Tables()
		for s := range x.of.states {
			mask, any := x.Mask(s), false
			for id, text := range texts {
				to, ok := x.Next(s, int32(id))
				want, at := len(text) > 0, s
				for _, b := range text {
					if at = x.of.states[at].next(b); at < 0 {
						want = false
						break
					}
				}
				if ok != want || ok && to != at || (mask[id] == 1) != want {
					t.Fatalf("state %d, token %q: %d, %v, mask %d; want %d, %v", s, text, to, ok, mask[id], at, want)
				}
				any = any || ok
				row := s
				for _, c := range tables.Texts[id*tables.Longest : (id+1)*tables.Longest] {
					row = int(tables.Moves[row*Symbols+int(c)])
				}
				if ok && row != to || !ok && row != tables.States-1 {
					t.Fatalf("state %d, token %q: tables lead to %d, want %d, %v", s, text, row, to, ok)
				}
			}
			if !any && !x.Accepts(s) || any == x.Final(s) {
				t.Fatalf("state %d: some token %v, accepts %v, final %v", s, any, x.Accepts(s), x.Final(s))
			}
		}
	}
}

// What reads as an automaton is what writing it gives, and an index of it can be walked.
func FuzzAutomaton(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		b := NewBuilder()
		if a, err := b.Build(random(r, 3).build(b, b.End())); err == nil {
			f.Add(canon.Marshal(a))
		}
	}
	v := NewVocabulary(256, func(id int32) []byte { return []byte{byte(id)} })
	f.Fuzz(func(t *testing.T, text []byte) {
		var a Automaton
		if canon.UnmarshalWithin(text, &a, 16<<20) != nil {
			return
		}
		if again := canon.Marshal(&a); !bytes.Equal(again, text) {
			t.Fatalf("%x is written as %x", text, again)
		}
		x, err := NewIndex(&a, v)
		if err != nil || x.of.Len() != a.Len() {
			t.Fatalf("%v", err)
		}
		for s := range a.states {
			if !x.Accepts(s) && x.Final(s) {
				t.Fatalf("state %d stands still", s)
			}
		}
	})
}
