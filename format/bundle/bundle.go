// Package bundle is the container of a proof bundle: named byte strings in one
// file, with every byte accounted for.
//
//	"tally bundle " ‖ version in decimal digits ‖ "\n" ‖
//	length of the manifest, 8 bytes little-endian ‖ manifest ‖ contents ‖
//	SHA-256 of all before
//
// The manifest lists names in ascending order with sizes and SHA-256 digests; the
// contents follow in that order without gaps. The version is read first, and is that of
// what the entries mean, too.
//
// Call [Write] to make one, and [Open] to read one.
//
// Invariants: there is one file for given entries, and a file with any bit changed is
// refused. What the entries mean, and that they are not forged as a whole, is for others
// to check.
//
// Source: docs/spec/bundle.md.
package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tally-network/tally/core/canon"
)

// Limits on a bundle.
const (
	MaxEntries  = 1 << 20
	MaxName     = 256
	maxManifest = 1 << 28
)

// Version of the format, and of what the entries mean. It is raised whenever a bundle that
// an earlier tally wrote would be read differently. Since 2 a lease's record numbers its
// parties, and keeps what befell a unit with that unit; since 4 it holds costs and replicas, and since 5 the state that an order goes on from.
const Version = 5

// magic is what a file of any version begins with; version and line end follow.
const magic = "tally bundle "

// header is what a file of this version begins with.
var header = magic + strconv.Itoa(Version) + "\n"

// ErrDamaged is wrapped by every error about a file that is not a bundle, byte
// for byte.
var ErrDamaged = errors.New("not an intact proof bundle")

// VersionError is about a bundle of another version of the format.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the bundle was written by another version of tally: it has format %d, and this tally reads format %d", e.Version, Version)
}

// Entry is a named byte string.
type Entry struct {
	Name string
	Size int64
	Sum  [sha256.Size]byte
	at   int64 // in the file
}

type manifest []Entry

func (m *manifest) Code(w *canon.Codec) {
	canon.Seq(w, (*[]Entry)(m), MaxEntries, 34, func(w *canon.Codec, e *Entry) {
		w.String(&e.Name, MaxName)
		size := uint64(e.Size)
		if w.U64(&size); size > math.MaxInt64/4 {
			w.Fail("entry of %d bytes", size)
		}
		e.Size = int64(size)
		w.Hash((*canon.Hash)(&e.Sum))
	})
}

// Content is an entry to be written.
type Content struct {
	Name string
	Open func() (io.Reader, error) // called twice: to hash and to copy
}

// Bytes returns content that is in memory.
func Bytes(name string, b []byte) Content {
	return Content{name, func() (io.Reader, error) { return bytes.NewReader(b), nil }}
}

// Write writes a bundle of contents, which must be in ascending order of their
// names.
func Write(w io.Writer, contents []Content) error {
	var m manifest
	for i, c := range contents {
		if i > 0 && contents[i-1].Name >= c.Name || len(c.Name) > MaxName {
			return fmt.Errorf("entry %q after %q: names must ascend and have at most %d bytes", c.Name, contents[max(i-1, 0)].Name, MaxName)
		}
		h := sha256.New()
		n, err := copyTo(h, c)
		if err != nil {
			return err
		}
		e := Entry{Name: c.Name, Size: n}
		h.Sum(e.Sum[:0])
		m = append(m, e)
	}
	total := sha256.New()
	out := io.MultiWriter(w, total)
	head := canon.Marshal(&m)
	prefix := binary.LittleEndian.AppendUint64([]byte(header), uint64(len(head)))
	if _, err := out.Write(append(prefix, head...)); err != nil {
		return err
	}
	for i, c := range contents {
		if n, err := copyTo(out, c); err != nil || n != m[i].Size {
			return fmt.Errorf("entry %q changed while it was written (%v)", c.Name, err)
		}
	}
	_, err := w.Write(total.Sum(nil))
	return err
}

func copyTo(w io.Writer, c Content) (int64, error) {
	r, err := c.Open()
	if err != nil {
		return 0, fmt.Errorf("entry %q: %w", c.Name, err)
	}
	n, err := io.Copy(w, r)
	if err != nil {
		return n, fmt.Errorf("entry %q: %w", c.Name, err)
	}
	return n, nil
}

// Bundle is an intact bundle, open for reading.
type Bundle struct {
	src     io.ReaderAt
	entries []Entry // in ascending order of their names
}

// Begins reports whether a file begins as a bundle of some version, intact or not.
func Begins(src io.ReaderAt) bool {
	head := make([]byte, len(magic))
	n, _ := src.ReadAt(head, 0)
	return string(head[:n]) == magic
}

// Open reads the manifest and checks every byte of the file against it.
func Open(src io.ReaderAt, size int64) (*Bundle, error) {
	damaged := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
	}
	fixed := int64(len(header) + 8)
	if size < fixed+sha256.Size {
		return nil, damaged("%d bytes are too few", size)
	}
	head := make([]byte, fixed)
	if _, err := src.ReadAt(head, 0); err != nil {
		return nil, damaged("%v", err)
	}
	if v := versionOf(head); v != 0 && v != Version {
		return nil, &VersionError{v}
	}
	n := binary.LittleEndian.Uint64(head[len(header):])
	if string(head[:len(header)]) != header || n > maxManifest || int64(n) > size-fixed-sha256.Size {
		return nil, damaged("it does not begin as one")
	}
	if err := checkSum(src, size); err != nil {
		return nil, damaged("%v", err)
	}
	raw := make([]byte, n)
	if _, err := src.ReadAt(raw, fixed); err != nil {
		return nil, damaged("%v", err)
	}
	var m manifest
	if err := canon.Unmarshal(raw, &m); err != nil {
		return nil, damaged("manifest: %v", err)
	}
	b := &Bundle{src: src, entries: m}
	at := fixed + int64(n)
	h, buffer := sha256.New(), make([]byte, 64<<10) // one for all: there may be a million entries
	for i, e := range m {
		if i > 0 && m[i-1].Name >= e.Name {
			return nil, damaged("entry %q after %q", e.Name, m[i-1].Name)
		}
		if e.Size > size-sha256.Size-at {
			return nil, damaged("entry %q reaches past the end", e.Name)
		}
		h.Reset()
		if _, err := io.CopyBuffer(h, io.NewSectionReader(src, at, e.Size), buffer); err != nil || !bytes.Equal(h.Sum(nil), e.Sum[:]) {
			return nil, damaged("entry %q does not have its digest", e.Name)
		}
		m[i].at = at
		at += e.Size
	}
	if at != size-sha256.Size {
		return nil, damaged("%d bytes belong to no entry", size-sha256.Size-at)
	}
	return b, nil
}

// versionOf returns the version that the first bytes of a bundle tell, 0 if they tell none.
func versionOf(head []byte) int {
	rest, ok := bytes.CutPrefix(head, []byte(magic))
	digits, _, ended := bytes.Cut(rest, []byte("\n"))
	v, err := strconv.Atoi(string(digits))
	if !ok || !ended || err != nil || strconv.Itoa(v) != string(digits) {
		return 0
	}
	return max(v, 0)
}

func checkSum(src io.ReaderAt, size int64) error {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(src, 0, size-sha256.Size)); err != nil {
		return err
	}
	want := make([]byte, sha256.Size)
	if _, err := src.ReadAt(want, size-sha256.Size); err != nil {
		return err
	}
	if !bytes.Equal(h.Sum(nil), want) {
		return errors.New("the digest at its end does not fit what is before it")
	}
	return nil
}

// Entries returns all entries in ascending order of their names.
func (b *Bundle) Entries() []Entry { return b.entries }

// Read returns an entry of at most limit bytes.
func (b *Bundle) Read(name string, limit int64) ([]byte, error) {
	e, ok := b.find(name)
	if !ok {
		return nil, fmt.Errorf("the bundle has no %s", name)
	}
	if e.Size > limit {
		return nil, fmt.Errorf("%s has %d bytes, limit %d", name, e.Size, limit)
	}
	out := make([]byte, e.Size)
	if _, err := io.ReadFull(b.Open(e), out); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return out, nil
}

// Section returns a reader of the entry of a name.
func (b *Bundle) Section(name string) (*io.SectionReader, error) {
	e, ok := b.find(name)
	if !ok {
		return nil, fmt.Errorf("the bundle has no %s", name)
	}
	return b.Open(e), nil
}

// Open returns a reader of an entry.
func (b *Bundle) Open(e Entry) *io.SectionReader { return io.NewSectionReader(b.src, e.at, e.Size) }

// Has reports whether there is an entry of this name.
func (b *Bundle) Has(name string) bool {
	_, ok := b.find(name)
	return ok
}

func (b *Bundle) find(name string) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(b.entries, name, func(e Entry, name string) int { return strings.Compare(e.Name, name) })
	if !ok {
		return Entry{}, false
	}
	return b.entries[i], true
}
