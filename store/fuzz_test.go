package store

import (
	"bytes"
	"testing"
)

func FuzzIndex(f *testing.F) {
	f.Add(encodeIndex(BlockSize+1, make([]digest, 2)), int64(BlockSize+1))
	f.Add(encodeIndex(MaxSize, nil), int64(MaxSize))
	f.Add([]byte("\x04blob\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), int64(1<<62))
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		sums, err := decodeIndex(b, size)
		if err != nil {
			return
		}
		if size <= BlockSize || size > MaxSize || len(sums) != blocks(size) {
			t.Fatalf("%d blocks for %d bytes", len(sums), size)
		}
		if !bytes.Equal(encodeIndex(size, sums), b) {
			t.Fatal("two encodings of one index")
		}
	})
}

func FuzzRef(f *testing.F) {
	f.Add("bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku.0")
	f.Add("QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG.5")
	f.Add("bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku.-1")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRef(s)
		if err != nil {
			return
		}
		if r.String() != s || r.Size < 0 || r.Size > MaxSize {
			t.Fatalf("%q was read as %q", s, r)
		}
		again, err := NewRef(r.Sum(), r.Size)
		if err != nil || again != r {
			t.Fatalf("%v, %v", again, err)
		}
	})
}
