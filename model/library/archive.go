package library

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/tally-network/tally/internal/bounded"
)

const (
	maxRatio     = 64       // bytes that an archive unpacks to, for each of its own: weights pack badly
	minUnpacked  = 1 << 20  // bytes that any archive may unpack to
	maxDirectory = 64 << 20 // bytes of a zip file's directory
)

// archive is a zip or tar file.
type archive interface {
	files() ([]offered, error)
	open(name string) (io.ReadCloser, error)
	Close() error
}

// openArchive opens an archive, whose kind its name tells.
func openArchive(file, name string) (archive, error) {
	f, size, err := bounded.Open(file)
	if err != nil {
		return nil, err
	}
	most := max(size, minUnpacked/maxRatio) * maxRatio
	switch lower := strings.ToLower(name); {
	case strings.HasSuffix(lower, ".whl"), strings.HasSuffix(lower, ".zip"):
		head := &headReader{f, maxDirectory}
		z, err := zip.NewReader(head, size)
		if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // such names are refused with all others
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
		}
		head.left = -1
		return &zipped{f, z, most}, nil
	case strings.HasSuffix(lower, ".tar.gz"), strings.HasSuffix(lower, ".tgz"):
		return &tarred{f, most}, nil
	}
	return nil, errors.Join(fmt.Errorf("%.80q is no archive that is read: want .whl, .zip or .tar.gz", name), f.Close())
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

func (a *zipped) files() ([]offered, error) {
	var files []offered
	total := uint64(0)
	for _, f := range a.z.File {
		if strings.HasSuffix(f.Name, "/") || !f.Mode().IsRegular() {
			continue
		}
		if total += f.UncompressedSize64; f.UncompressedSize64 > uint64(a.most) || total > uint64(a.most) {
			return nil, errBomb(a.most)
		}
		files = append(files, offered{expected{bytes: int64(f.UncompressedSize64)}, f.Name})
	}
	return files, nil
}

func errBomb(most int64) error {
	return fmt.Errorf("the archive unpacks to more than %d bytes, %d times its own: trust nothing of this source", most, maxRatio)
}

func (a *zipped) open(name string) (io.ReadCloser, error) {
	for _, f := range a.z.File {
		if f.Name == name {
			return f.Open()
		}
	}
	return nil, fmt.Errorf("%.80q is not there", name)
}

type tarred struct {
	*os.File
	most int64
}

// walk calls see for each regular file, until it returns false.
func (a *tarred) walk(see func(h *tar.Header, r io.Reader) bool) error {
	if _, err := a.Seek(0, io.SeekStart); err != nil {
		return err
	}
	z, err := gzip.NewReader(a.File)
	if err != nil {
		return err
	}
	limited := &io.LimitedReader{R: z, N: a.most}
	r := tar.NewReader(limited)
	for n := 0; ; n++ {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF) && limited.N > 0:
			return nil
		case limited.N <= 0:
			return errBomb(a.most)
		case err != nil && !errors.Is(err, tar.ErrInsecurePath):
			return err
		case n > maxOffered:
			return fmt.Errorf("there are more than %d files", maxOffered)
		}
		if h.Typeflag == tar.TypeReg && !see(h, r) {
			return nil
		}
	}
}

func (a *tarred) files() ([]offered, error) {
	var files []offered
	total, big := int64(0), false
	err := a.walk(func(h *tar.Header, _ io.Reader) bool {
		big = h.Size > a.most || total+h.Size > a.most // of a sparse file, most is not in the archive
		total += h.Size
		files = append(files, offered{expected{bytes: h.Size}, path.Clean(h.Name)})
		return !big
	})
	if big {
		return nil, errBomb(a.most)
	}
	return files, err
}

func (a *tarred) open(name string) (found io.ReadCloser, _ error) {
	err := a.walk(func(h *tar.Header, r io.Reader) bool {
		if path.Clean(h.Name) == name {
			found = io.NopCloser(r)
		}
		return found == nil
	})
	if err == nil && found == nil {
		err = fmt.Errorf("%.80q is not there", name)
	}
	return found, err
}

// extract writes a file of an archive, and returns its SHA-256.
func extract(ctx context.Context, a archive, f offered, to string, told func(done int64)) (string, error) {
	r, err := a.open(f.name)
	if err != nil {
		return "", err
	}
	sum, err := write(ctx, to, &progress{from: r, told: told}, f.bytes)
	if err != nil {
		err = fmt.Errorf("unpack %s: %w", f.name, err)
	}
	return sum, errors.Join(err, r.Close())
}

// write makes a new file of so many bytes, flushes it, and returns its SHA-256.
func write(ctx context.Context, to string, from io.Reader, bytes int64) (string, error) {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, h), io.LimitReader(reader{ctx, from}, bytes+1))
	switch {
	case err == nil && n != bytes:
		err = fmt.Errorf("it has %d bytes or more, and should have %d", n, bytes)
	case err == nil:
		err = f.Sync()
	}
	return hexOf(h), errors.Join(err, f.Close())
}
