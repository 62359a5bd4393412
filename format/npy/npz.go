package npy

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tally-network/tally/core/tensor"
)

// Limits on an archive.
const (
	MaxArrays  = 1 << 12
	MaxArchive = tensor.MaxBytes // bytes of all arrays together

	deflation = 1032 // bytes that one compressed byte stands for, at most
)

// ReadArchive returns the tensors in an .npz file, the first size bytes of src, by name, in memory of alloc.
func ReadArchive(src io.ReaderAt, size int64, alloc tensor.Allocator) (map[string]*tensor.Tensor, error) {
	z, err := zip.NewReader(io.NewSectionReader(src, 0, size), size)
	if err != nil {
		return nil, fmt.Errorf("read .npz: %w", err)
	}
	if len(z.File) > MaxArrays {
		return nil, fmt.Errorf("read .npz: %d arrays, limit %d", len(z.File), MaxArrays)
	}
	out, left, packed := map[string]*tensor.Tensor{}, uint64(MaxArchive), uint64(size)
	for _, f := range z.File {
		name, ok := strings.CutSuffix(f.Name, ".npy")
		switch {
		case !ok:
			return nil, fmt.Errorf("read .npz: %.80q is no .npy file", f.Name)
		case out[name] != nil:
			return nil, fmt.Errorf("read .npz: two arrays are called %.80q", name)
		case f.UncompressedSize64 > left || f.CompressedSize64 > packed || f.UncompressedSize64 > deflation*f.CompressedSize64:
			return nil, fmt.Errorf("read .npz: array %.80q has %d bytes, compressed %d: it is damaged, or the arrays have more than %d bytes", name, f.UncompressedSize64, f.CompressedSize64, int64(MaxArchive))
		}
		left, packed = left-f.UncompressedSize64, packed-f.CompressedSize64 // entries may overlap
		if out[name], err = member(f, alloc); err != nil {
			return nil, fmt.Errorf("read .npz: array %.80q: %w", name, err)
		}
	}
	return out, nil
}

func member(f *zip.File, alloc tensor.Allocator) (*tensor.Tensor, error) {
	src, err := f.Open()
	if err != nil {
		return nil, err
	}
	t, err := read(src, int64(f.UncompressedSize64), alloc)
	if err == nil { // its checksum is compared at the end
		if n, last := io.Copy(io.Discard, src); last != nil || n > 0 {
			err = errors.Join(fmt.Errorf("%d bytes follow", n), last)
		}
	}
	return t, errors.Join(err, src.Close())
}
