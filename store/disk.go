package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// The directory of a store:
//
//	blocks/CID        one block
//	pins/NAME/REF     an empty file: NAME pins the blob REF
//	tmp/              blocks being written; emptied by Open
const (
	blocksDir = "blocks"
	pinsDir   = "pins"
	tmpDir    = "tmp"
)

// errDamaged says that a file does not hold the block it is named after.
var errDamaged = errors.New("block is damaged")

func (s *Store) path(d digest) string {
	return filepath.Join(s.dir, blocksDir, d.CID().String())
}

// readBlock reads the file at path if it holds the block with digest d.
func readBlock(path string, d digest) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > BlockSize {
		return nil, errDamaged
	}
	b := make([]byte, info.Size())
	if _, err := io.ReadFull(f, b); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errDamaged
	} else if err != nil {
		return nil, err
	}
	if sha256.Sum256(b) != d {
		return nil, errDamaged
	}
	return b, nil
}

// writeTemp writes b to a new file in tmp/, flushed to the disk, and returns
// its path.
func (s *Store) writeTemp(b []byte) (path string, err error) {
	f, err := os.CreateTemp(filepath.Join(s.dir, tmpDir), "block-")
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be flushed; the file system journals names
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// scan makes the directories of a new store, and reads which blocks an old
// one has. Files that are not blocks are left alone.
func (s *Store) scan() error {
	if err := os.RemoveAll(filepath.Join(s.dir, tmpDir)); err != nil {
		return err
	}
	for _, sub := range []string{blocksDir, pinsDir, tmpDir} {
		if err := os.MkdirAll(filepath.Join(s.dir, sub), 0o700); err != nil {
			return err
		}
	}
	if err := syncDir(s.dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, blocksDir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		// A block's name is a reference without its size.
		r, err := ParseRef(e.Name() + ".0")
		if err != nil {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return fmt.Errorf("scan blocks: %w", err)
		}
		s.blocks[r.Sum()] = info.Size()
		s.used += info.Size()
	}
	return nil
}
