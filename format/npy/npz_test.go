package npy

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/internal/testkit/memory"
)

// archive is an .npz file of named contents.
func archive(t testing.TB, method uint16, contents ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(contents); i += 2 {
		w, err := z.CreateHeader(&zip.FileHeader{Name: contents[i], Method: method})
		if err == nil {
			_, err = w.Write([]byte(contents[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func npyOf(t testing.TB, x *tensor.Tensor) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, x); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReadArchive(t *testing.T) {
	x, y := tensor.Must(tensor.From(tensor.Shape{2, 2}, []int64{1, 2, 3, 4})), tensor.Scalar(float32(5))
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		b := archive(t, method, "x.npy", npyOf(t, x), "a/y.npy", npyOf(t, y))
		got, err := ReadArchive(bytes.NewReader(b), int64(len(b)), nil)
		if err != nil || len(got) != 2 || !got["x"].Equal(x) || !got["a/y"].Equal(y) {
			t.Errorf("method %d: %v, %v", method, got, err)
		}
	}
}

func TestArchivesAreRefused(t *testing.T) {
	x := npyOf(t, tensor.Must(tensor.From(tensor.Shape{4}, []int64{1, 2, 3, 4})))
	flipped := archive(t, zip.Store, "x.npy", x)
	flipped[bytes.Index(flipped, []byte("\x03\x00\x00\x00\x00\x00\x00\x00"))] ^= 8
	var bomb bytes.Buffer // says that one byte stands for gigabytes
	z := zip.NewWriter(&bomb)
	w, err := z.CreateRaw(&zip.FileHeader{Name: "x.npy", Method: zip.Deflate, UncompressedSize64: 4 << 30, CompressedSize64: 1, CRC32: crc32.ChecksumIEEE(nil)})
	if err == nil {
		_, err = w.Write([]byte{0})
	}
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	one := archive(t, zip.Store, "x.npy", x)
	directory, end := bytes.Index(one, []byte("PK\x01\x02")), bytes.Index(one, []byte("PK\x05\x06"))
	overlapping := bytes.Clone(one[:end]) // several names of one array
	for _, name := range []string{"y.npy", "z.npy", "u.npy", "v.npy"} {
		overlapping = append(overlapping, bytes.Replace(one[directory:end], []byte("x.npy"), []byte(name), 1)...)
	}
	last := bytes.Clone(one[end:])
	last[8], last[10] = 5, 5
	binary.LittleEndian.PutUint32(last[12:], uint32(len(overlapping)-directory))
	overlapping = append(overlapping, last...)
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"overlapping":    {overlapping, "damaged"},
		"no archive":     {[]byte(x), "not a valid zip"},
		"another member": {archive(t, zip.Store, "x.txt", x), "no .npy file"},
		"twice":          {archive(t, zip.Store, "x.npy", x, "x.npy", x), "two arrays"},
		"flipped":        {flipped, "checksum"},
		"longer":         {archive(t, zip.Store, "x.npy", x+"0"), "the file has 33"},
		"objects":        {archive(t, zip.Deflate, "x.npy", strings.Replace(x, "<i8", "|O8", 1)), "not supported"},
		"strings":        {archive(t, zip.Deflate, "x.npy", strings.Replace(x, "<i8", "<U8", 1)), "not supported"},
		"a bomb":         {bomb.Bytes(), "damaged"},
	} {
		var err error
		used := memory.Allocated(func() { _, err = ReadArchive(bytes.NewReader(c.b), int64(len(c.b)), nil) })
		if err == nil || !strings.Contains(err.Error(), c.want) || used > memory.Slack {
			t.Errorf("%s: %v, want %q; it took %d bytes", name, err, c.want, used)
		}
	}
}

// FuzzReadArchive reads arbitrary archives in memory in proportion to what they can hold.
func FuzzReadArchive(f *testing.F) {
	x := npyOf(f, tensor.Must(tensor.From(tensor.Shape{4}, []int64{1, 2, 3, 4})))
	f.Add(archive(f, zip.Store, "x.npy", x))
	f.Add(archive(f, zip.Deflate, "x.npy", x, "y.npy", x))
	f.Fuzz(func(t *testing.T, b []byte) {
		used := memory.Allocated(func() { _, _ = ReadArchive(bytes.NewReader(b), int64(len(b)), nil) })
		if used > 2*deflation*int64(len(b))+memory.Slack {
			t.Fatalf("%d bytes took %d", len(b), used)
		}
	})
}
