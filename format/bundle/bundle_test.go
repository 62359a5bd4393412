package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func contents(n, size int) []Content {
	var out []Content
	for i := range n {
		out = append(out, Bytes(fmt.Sprintf("entry/%02d", i), bytes.Repeat([]byte{byte(i)}, size*i)))
	}
	return out
}

func written(t testing.TB, cs []Content) []byte {
	var buf bytes.Buffer
	if err := Write(&buf, cs); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func open(b []byte) (*Bundle, error) { return Open(bytes.NewReader(b), int64(len(b))) }

func TestWhatIsWrittenIsRead(t *testing.T) {
	for n := range 5 {
		b, err := open(written(t, contents(n, 7)))
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Entries()) != n || b.Has("other") {
			t.Fatalf("%d entries", len(b.Entries()))
		}
		for i := range n {
			got, err := b.Read(fmt.Sprintf("entry/%02d", i), 100)
			if err != nil || len(got) != 7*i {
				t.Fatalf("entry %d: %d bytes, %v", i, len(got), err)
			}
		}
	}
	b, _ := open(written(t, contents(3, 7)))
	if _, err := b.Read("entry/02", 13); err == nil {
		t.Error("an entry above the limit was read")
	}
	if _, err := b.Read("none", 13); err == nil {
		t.Error("an entry that is not there was read")
	}
}

func TestAnyFlippedBitIsRefused(t *testing.T) {
	good := written(t, contents(4, 5))
	for i := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			var other *VersionError
			if _, err := open(bad); !errors.Is(err, ErrDamaged) && (i != len(magic) || !errors.As(err, &other)) {
				t.Fatalf("byte %d, bit %d: %v", i, bit, err)
			}
		}
	}
	for n := range good {
		if _, err := open(good[:n]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("the first %d bytes were taken: %v", n, err)
		}
	}
	if _, err := open(append(bytes.Clone(good), 0)); !errors.Is(err, ErrDamaged) {
		t.Fatal("a longer file was taken")
	}
}

// A bundle of another tally is told from one that was forged, before anything of it is read.
func TestVersionIsReadFirst(t *testing.T) {
	good := written(t, contents(4, 5))
	for _, text := range []string{"tally bundle 1\n", "tally bundle 3\n", "tally bundle 1234567\n"} {
		old := append([]byte(text), make([]byte, 100)...)
		var v *VersionError
		if _, err := open(old); !errors.As(err, &v) || !strings.Contains(err.Error(), "another version of tally") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"tally bundle 0\n", "tally bundle -1\n", "tally bundle +2\n", "tally bundle 02\n", "tally bundle \n", "tally bundle", "tally bundle 99999999999999999999\n", "tally bundle 2 \n"} {
		if _, err := open(append([]byte(text), good[len(header):]...)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, cs := range map[string][]Content{
		"disorder":   {Bytes("b", nil), Bytes("a", nil)},
		"twice":      {Bytes("a", nil), Bytes("a", nil)},
		"long name":  {Bytes(string(make([]byte, MaxName+1)), nil)},
		"unreadable": {{"a", func() (io.Reader, error) { return nil, errors.New("gone") }}},
	} {
		if Write(io.Discard, cs) == nil {
			t.Errorf("%s: written", name)
		}
	}
}

func TestEntriesHaveOneFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 6).Draw(t, "n")
		var cs []Content
		for i := range n {
			cs = append(cs, Bytes(fmt.Sprint(i), rapid.SliceOf(rapid.Byte()).Draw(t, "b")))
		}
		var first bytes.Buffer
		if err := Write(&first, cs); err != nil {
			t.Fatal(err)
		}
		b, err := open(first.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		var again []Content
		for _, e := range b.Entries() {
			x, err := b.Read(e.Name, e.Size)
			if err != nil {
				t.Fatal(err)
			}
			again = append(again, Bytes(e.Name, x))
		}
		var second bytes.Buffer
		if err := Write(&second, again); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("the same entries give another file (%v)", err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	f.Add(written(f, contents(3, 4)))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := open(b)
		if err != nil {
			return
		}
		for _, e := range x.Entries() {
			if _, err := x.Read(e.Name, e.Size); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	file := written(b, []Content{Bytes("a", make([]byte, 16<<20))})
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := open(file); err != nil {
			b.Fatal(err)
		}
	}
}
