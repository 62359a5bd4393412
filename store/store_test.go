package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

const roomy = 1 << 30

func open(t testing.TB, dir string, quota int64) *Store {
	t.Helper()
	s, err := Open(dir, quota)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// noise returns n bytes that the seed fixes.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	rand.NewChaCha8(key).Read(b)
	return b
}

func mustPut(t testing.TB, s *Store, pin string, b []byte) Ref {
	t.Helper()
	r, err := s.PutBytes(pin, b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantBlob(t testing.TB, s *Store, r Ref, want []byte) {
	t.Helper()
	got, err := s.GetBytes(r, MaxSize)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("blob %s came back different", r)
	}
}

// edges are the lengths around which the cut changes.
var edges = []int{0, 1, BlockSize - 1, BlockSize, BlockSize + 1, 2 * BlockSize, 3*BlockSize + 17}

func TestAnyBytesRoundTrip(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, roomy)
	rapid.Check(t, func(rt *rapid.T) {
		b := noise(rapid.Uint64().Draw(rt, "seed"), rapid.OneOf(rapid.IntRange(0, 9000), rapid.SampledFrom(edges)).Draw(rt, "size"))
		r, err := s.PutBytes("", b)
		if err != nil {
			rt.Fatal(err)
		}
		streamed, err := s.Put("", iotest.HalfReader(bytes.NewReader(b)))
		if err != nil || streamed != r {
			rt.Fatalf("Put gave %v, %v, PutBytes %v", streamed, err, r)
		}
		if r.Size != int64(len(b)) || !s.Has(r) {
			rt.Fatalf("put %d bytes, got %v", len(b), r)
		}
		in, err := s.Get(r)
		if err != nil {
			rt.Fatal(err)
		}
		if err := iotest.TestReader(struct{ io.Reader }{in}, b); err != nil {
			rt.Fatal(err)
		}
		got, err := s.GetBytes(r, r.Size)
		if err != nil || !bytes.Equal(got, b) {
			rt.Fatalf("GetBytes: %v", err)
		}
		if _, err := s.GetBytes(r, r.Size-1); err == nil {
			rt.Fatal("GetBytes passed its limit")
		}
		if err := s.Delete(r); err != nil {
			rt.Fatal(err)
		}
		if s.Has(r) || s.Usage().Bytes != 0 {
			rt.Fatalf("after Delete: %+v", s.Usage())
		}
	})
}

// The name of a blob is consensus: these must never change.
func TestRefsAreFixed(t *testing.T) {
	s := open(t, t.TempDir(), roomy)
	for _, c := range []struct {
		blob []byte
		want string
	}{
		{nil, "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku.0"},
		{[]byte("tally"), "bafkreifqdytnh5nfcmfz3dmcdrnj2yphy7mg35zv6kf5zvtcb7cyvqiany.5"},
		{make([]byte, BlockSize), "bafkreibq4fevl27rgurgnxbp7adh42aqiyd6ouflxhj3gzmcxcxzbh6lla.1048576"},
		{make([]byte, BlockSize+1), "bafkreiamm5eygw4pighbmnocrgjkyljicnnn2k773okzli2fl4cvzatbsa.1048577"},
	} {
		if r := mustPut(t, s, "", c.blob); r.String() != c.want {
			t.Errorf("%d bytes: %s, want %s", len(c.blob), r, c.want)
		}
	}
}

// An index read as a blob of one block is just bytes, and a blob that looks
// like an index is not one: the size decides.
func TestSizeTellsIndexFromBlock(t *testing.T) {
	s := open(t, t.TempDir(), roomy)
	long := noise(1, BlockSize+1)
	r := mustPut(t, s, "", long)
	index, err := s.Block(t.Context(), r.CID)
	if err != nil {
		t.Fatal(err)
	}
	wantBlob(t, s, Ref{r.CID, int64(len(index))}, index)
	if same := mustPut(t, s, "", index); same.CID != r.CID || same == r {
		t.Fatalf("the index put as a blob is %v, the blob %v", same, r)
	}
	for _, wrong := range []int64{r.Size - 1, r.Size + 1, int64(len(index)) + 1, 0, 2 * BlockSize} {
		if b, err := s.GetBytes(Ref{r.CID, wrong}, MaxSize); err == nil {
			t.Errorf("size %d gave %d bytes", wrong, len(b))
		}
	}
}

func TestAnyDamageIsDetectedAndHealed(t *testing.T) {
	ctx := t.Context()
	good, hurt := open(t, t.TempDir(), roomy), open(t, t.TempDir(), roomy)
	blob := noise(2, 2*BlockSize+100)
	r := mustPut(t, good, "", blob)
	mustPut(t, hurt, "lease-1", blob)
	files, _ := filepath.Glob(filepath.Join(hurt.dir, blocksDir, "*"))
	if len(files) != 4 {
		t.Fatalf("%d files", len(files))
	}
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		file := rapid.SampledFrom(files).Draw(rt, "file")
		whole, err := os.ReadFile(file)
		if err != nil {
			rt.Fatal(err)
		}
		b := slices.Clone(whole)
		switch rapid.IntRange(0, 3).Draw(rt, "damage") {
		case 0:
			bit := rapid.IntRange(0, 8*len(b)-1).Draw(rt, "bit")
			b[bit/8] ^= 1 << (bit % 8)
		case 1:
			b = b[:rapid.IntRange(0, len(b)-1).Draw(rt, "torn")]
		case 2:
			b = append(b, rapid.SliceOfN(rapid.Byte(), 1, 10).Draw(rt, "tail")...)
		case 3:
			b = make([]byte, len(b))
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			rt.Fatal(err)
		}
		if _, err := hurt.GetBytes(r, MaxSize); !errors.Is(err, ErrMissing) {
			rt.Fatalf("damaged blob: %v", err)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) || hurt.Has(r) {
			rt.Fatal("damaged block is still there")
		}
		if n++; hurt.Usage().Damaged != n {
			rt.Fatalf("%d damaged, want %d", hurt.Usage().Damaged, n)
		}
		if rapid.Bool().Draw(rt, "put") {
			if _, err := hurt.PutBytes("", blob); err != nil {
				rt.Fatal(err)
			}
		} else if err := hurt.Fetch(ctx, Request{Ref: r, Sources: []Source{good}}); err != nil {
			rt.Fatal(err)
		}
		if got, err := hurt.GetBytes(r, MaxSize); err != nil || !bytes.Equal(got, blob) {
			rt.Fatalf("after repair: %v", err)
		}
	})
}

// Put must not trust a block because its name is there.
func TestPutReplacesDamagedBlock(t *testing.T) {
	s := open(t, t.TempDir(), roomy)
	r := mustPut(t, s, "", []byte("sound"))
	if err := os.WriteFile(s.path(r.Sum()), []byte("soumd"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "", []byte("sound"))
	wantBlob(t, s, r, []byte("sound"))
}

func TestQuota(t *testing.T) {
	s := open(t, t.TempDir(), 3*BlockSize)
	first := mustPut(t, s, "", noise(3, BlockSize))
	if _, err := s.PutBytes("", noise(4, 2*BlockSize)); !errors.Is(err, ErrQuota) || !strings.Contains(err.Error(), "unpin") {
		t.Fatalf("two blocks and an index beside one in three: %v", err)
	}
	if _, err := s.GC(); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(); u.Bytes != 0 || u.Blocks != 0 {
		t.Fatalf("failed Put left %+v", u)
	}
	mustPut(t, s, "kept", noise(4, 2*BlockSize))
	big := open(t, t.TempDir(), roomy)
	far := mustPut(t, big, "", noise(5, 2*BlockSize))
	asked := &counting{Source: big}
	if err := s.Fetch(t.Context(), Request{Ref: far, Sources: []Source{asked}}); !errors.Is(err, ErrQuota) {
		t.Fatalf("fetch past the quota: %v", err)
	}
	if asked.n.Load() != 1 { // the index
		t.Fatalf("%d blocks were asked for though they cannot fit", asked.n.Load())
	}
	if s.Has(first) {
		t.Fatal("GC kept an unpinned blob")
	}
	if _, err := Open(t.TempDir(), 0); err == nil {
		t.Fatal("a store without quota opened")
	}
}

func TestPutPassesOnReadErrors(t *testing.T) {
	s := open(t, t.TempDir(), roomy)
	cut := io.MultiReader(bytes.NewReader(noise(6, BlockSize+5)), iotest.ErrReader(errors.New("line dropped")))
	if _, err := s.Put("x", cut); err == nil || !strings.Contains(err.Error(), "line dropped") {
		t.Fatalf("Put of a broken reader: %v", err)
	}
	if len(s.Pins()) != 0 {
		t.Fatal("a failed Put pinned something")
	}
}

func TestHostileRefs(t *testing.T) {
	s := open(t, t.TempDir(), roomy)
	good := mustPut(t, s, "", []byte("x"))
	for _, r := range []Ref{
		{},
		{good.CID, -1},
		{good.CID, MaxSize + 1},
		{good.CID, 1 << 62},
		{good.CID, MaxSize}, // present, but not an index of so much
	} {
		if _, err := s.Get(r); err == nil {
			t.Errorf("Get(%v) worked", r)
		}
		if _, err := s.GetBytes(r, 1<<62); err == nil {
			t.Errorf("GetBytes(%v) worked", r)
		}
		if s.Has(r) {
			t.Errorf("Has(%v)", r)
		}
		if err := s.Pin("x", r); err == nil {
			t.Errorf("Pin(%v) worked", r)
		}
		if err := s.Fetch(t.Context(), Request{Ref: r, Sources: []Source{s}}); err == nil {
			t.Errorf("Fetch(%v) worked", r)
		}
	}
	if !s.Has(good) {
		t.Error("a sound block was lost to a wrong reference")
	}
}

func TestConcurrentUse(t *testing.T) {
	s := open(t, t.TempDir(), roomy)
	shared := noise(7, 2*BlockSize+1)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			pin := fmt.Sprint("lease-", g)
			for i := range 6 {
				own := noise(uint64(100*g+i), 3000)
				a, err := s.PutBytes(pin, own)
				if err != nil {
					t.Error(err)
					return
				}
				b, err := s.PutBytes(pin, shared)
				if err != nil {
					t.Error(err)
					return
				}
				for r, want := range map[Ref][]byte{a: own, b: shared} {
					if got, err := s.GetBytes(r, MaxSize); err != nil || !bytes.Equal(got, want) {
						t.Errorf("own blob under GC: %v", err)
					}
				}
				if _, err := s.GC(); err != nil {
					t.Error(err)
				}
				if err := s.Unpin(pin); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := s.GC(); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(); u.Bytes != 0 || u.Blocks != 0 || u.Damaged != 0 || len(s.held) != 0 {
		t.Fatalf("left over: %+v, %d held", u, len(s.held))
	}
}

func TestBlockHonoursContext(t *testing.T) {
	s := open(t, t.TempDir(), roomy)
	r := mustPut(t, s, "", []byte("x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Block(ctx, r.CID); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestRefOfIsWhatPutGives(t *testing.T) {
	s, err := Open(t.TempDir(), 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, BlockSize - 1, BlockSize, BlockSize + 1, 3 * BlockSize} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i * 7)
		}
		want, err := s.PutBytes("p", b)
		if err != nil {
			t.Fatal(err)
		}
		if got := RefOf(b); got != want {
			t.Errorf("%d bytes: %v, Put gives %v", n, got, want)
		}
	}
}
