package library

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/fetch"
)

const (
	maxRatio     = 64      // bytes that an archive unpacks to, for each of its own: weights pack badly
	minUnpacked  = 1 << 20 // bytes that any archive may unpack to
	maxDirectory = 8 << 20 // bytes of a zip file's directory: maxOffered files with long names
)

// archive is a zip or tar file.
type archive interface {
	files(ctx context.Context) ([]fetch.Offered, error)
	// extract writes one of the files, and returns its SHA-256.
	extract(ctx context.Context, f fetch.Offered, to string, told func(done int64)) (string, error)
	Close() error
}

// openArchive opens an archive, whose kind its name tells.
func openArchive(p *pull, file, name string) (archive, error) {
	f, size, err := bounded.Open(file)
	if err != nil {
		return nil, err
	}
	most := max(size, minUnpacked/maxRatio) * maxRatio
	switch lower := strings.ToLower(name); {
	case strings.HasSuffix(lower, ".whl"), strings.HasSuffix(lower, ".zip"):
		z, err := openZip(f, size)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
		}
		return &zipped{f, z, most}, nil
	case strings.HasSuffix(lower, ".tar.gz"), strings.HasSuffix(lower, ".tgz"):
		return &tarred{File: f, most: most, pull: p}, nil
	}
	return nil, errors.Join(fmt.Errorf("%.80q is no archive that is read: want .whl, .zip or .tar.gz", name), f.Close())
}

func openZip(f io.ReaderAt, size int64) (*zip.Reader, error) {
	if err := checkRecords(f, size); err != nil {
		return nil, err
	}
	head := &headReader{f, maxDirectory}
	z, err := zip.NewReader(head, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // such names are refused with all others
		return nil, err
	}
	head.left = -1
	if len(z.File) > maxOffered {
		return nil, errCrowded
	}
	return z, nil
}

var errCrowded = fmt.Errorf("there are more than %d files", maxOffered)

// checkRecords returns an error if a zip file's end says that it has too many files: package zip takes memory for them before it reads
// any. Only the end of the form zip64 can say so.
func checkRecords(f io.ReaderAt, size int64) error {
	tail := make([]byte, min(size, 66<<10)) // a comment has at most 64 KiB
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for rest := tail; ; rest = rest[1:] {
		i := bytes.Index(rest, []byte("PK\x06\x07"))
		if i < 0 || len(rest)-i < 16 {
			return nil
		}
		rest = rest[i:]
		record := make([]byte, 40)
		if at := binary.LittleEndian.Uint64(rest[8:]); at < uint64(size) {
			if _, err := f.ReadAt(record, int64(at)); err == nil && bytes.HasPrefix(record, []byte("PK\x06\x06")) && binary.LittleEndian.Uint64(record[32:]) > maxOffered {
				return errCrowded
			}
		}
	}
}

// headReader gives out so many bytes, until it is told to give them all: a directory of millions of files takes more memory
// than it has bytes.
type headReader struct {
	io.ReaderAt
	left int64 // -1: as many as are wanted
}

func (r *headReader) ReadAt(b []byte, at int64) (int, error) {
	if r.left >= 0 {
		if r.left -= int64(len(b)); r.left < 0 {
			return 0, fmt.Errorf("the directory has more than %d bytes", maxDirectory)
		}
	}
	return r.ReaderAt.ReadAt(b, at)
}

type zipped struct {
	*os.File
	z    *zip.Reader
	most int64
}

func (a *zipped) files(context.Context) ([]fetch.Offered, error) {
	var files []fetch.Offered
	total := uint64(0)
	for _, f := range a.z.File {
		if strings.HasSuffix(f.Name, "/") || !f.Mode().IsRegular() {
			continue
		}
		if total += f.UncompressedSize64; f.UncompressedSize64 > uint64(a.most) || total > uint64(a.most) {
			return nil, errBomb(a.most)
		}
		files = append(files, fetch.Offered{Expected: fetch.Expected{Bytes: int64(f.UncompressedSize64)}, Name: f.Name})
	}
	return files, nil
}

func errBomb(most int64) error {
	return fmt.Errorf("the archive unpacks to more than %d bytes, %d times its own: trust nothing of this source", most, maxRatio)
}

func (a *zipped) extract(ctx context.Context, f fetch.Offered, to string, told func(done int64)) (string, error) {
	i := slices.IndexFunc(a.z.File, func(x *zip.File) bool { return x.Name == f.Name })
	if i < 0 {
		return "", fmt.Errorf("%.80q is not there", f.Name)
	}
	r, err := a.z.File[i].Open()
	if err != nil {
		return "", err
	}
	sum, err := write(ctx, to, fetch.Counting(r, 0, told), f.Bytes)
	if err != nil {
		err = fmt.Errorf("unpack %s: %w", f.Name, err)
	}
	return sum, errors.Join(err, r.Close())
}

// tarred is a tar file, which can only be read from its beginning. So all that a model may need of it is unpacked while it is listed.
type tarred struct {
	*os.File
	most     int64
	pull     *pull
	unpacked map[string]unpacked
}

// unpacked is a file of an archive.
type unpacked struct{ at, sum string }

// mayMatter reports whether a model may need a file.
func mayMatter(name string) bool {
	base := path.Base(name)
	return isGGUF(name) || path.Ext(name) == ".safetensors" || strings.EqualFold(path.Ext(name), ".zip") ||
		slices.ContainsFunc(settings, func(s string) bool { return path.Base(s) == base })
}

// files unpacks what may matter, and lists all files.
func (a *tarred) files(ctx context.Context) (files []fetch.Offered, err error) {
	dir := a.Name() + ".unpacked"
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(fetch.Reader(ctx, a.File))
	if err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: z, N: a.most}
	r := tar.NewReader(limited)
	a.unpacked = map[string]unpacked{}
	total := int64(0)
	for n := 0; ; n++ {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF) && limited.N > 0:
			return files, nil
		case limited.N <= 0:
			return nil, errBomb(a.most)
		case err != nil && !errors.Is(err, tar.ErrInsecurePath):
			return nil, err
		case n > maxOffered:
			return nil, errCrowded
		case h.Typeflag != tar.TypeReg:
			continue
		case h.Size > a.most-total: // of a sparse file, most is not in the archive
			return nil, errBomb(a.most)
		}
		total += h.Size
		f := fetch.Offered{Expected: fetch.Expected{Bytes: h.Size}, Name: path.Clean(h.Name)}
		if files = append(files, f); !mayMatter(f.Name) {
			continue
		}
		if err := a.unpack(ctx, f, r, filepath.Join(dir, strconv.Itoa(n))); err != nil {
			if limited.N <= 0 {
				err = errBomb(a.most)
			}
			return nil, fmt.Errorf("unpack %.80q: %w", f.Name, err)
		}
	}
}

func (a *tarred) unpack(ctx context.Context, f fetch.Offered, r io.Reader, to string) error {
	if err := a.pull.room(f.Bytes); err != nil {
		return err
	}
	sum, err := write(ctx, to, fetch.Counting(r, 0, a.pull.told(Unpacking, f.Name, f.Bytes)), f.Bytes)
	a.pull.budget -= f.Bytes
	a.unpacked[f.Name] = unpacked{to, sum}
	return err
}

func (a *tarred) extract(_ context.Context, f fetch.Offered, to string, _ func(done int64)) (string, error) {
	x, ok := a.unpacked[f.Name]
	if !ok {
		return "", fmt.Errorf("%.80q is not there", f.Name)
	}
	a.pull.budget += f.Bytes // it moves
	return x.sum, errors.Join(remove(to), os.Rename(x.at, to))
}

// write makes a new file of so many bytes, flushes it, and returns its SHA-256.
func write(ctx context.Context, to string, from io.Reader, bytes int64) (string, error) {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, h), io.LimitReader(fetch.Reader(ctx, from), bytes+1))
	switch {
	case err == nil && n != bytes:
		err = fmt.Errorf("it has %d bytes or more, and should have %d", n, bytes)
	case err == nil:
		err = f.Sync()
	}
	return hexOf(h), errors.Join(err, f.Close())
}
