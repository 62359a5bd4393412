package local

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tally-network/tally/model/library"
)

// Digest returns the digest of the model at a path, as a library has it: of the file, or of the folder's .json, .jinja and .safetensors files.
func Digest(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	paths := []string{path}
	if info.IsDir() {
		if paths, err = filepath.Glob(filepath.Join(path, "*")); err != nil {
			return "", err
		}
		paths = slices.DeleteFunc(paths, func(p string) bool {
			return !slices.Contains([]string{".json", ".jinja", ".safetensors"}, strings.ToLower(filepath.Ext(p)))
		})
	}
	var files []library.File
	for _, p := range paths {
		f, err := digestOf(p)
		if err != nil {
			return "", err
		}
		files = append(files, f)
	}
	return library.Digest(files), nil
}

func digestOf(path string) (library.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return library.File{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return library.File{Name: filepath.Base(path), Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))}, err
}
