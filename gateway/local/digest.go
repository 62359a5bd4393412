package local

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Digest returns a digest of the model at a path, in hexadecimal: SHA-256 of a file; of a folder SHA-256 of lines
//
//	SHA-256 of a file, two spaces, its name
//
// of its .json, .jinja and .safetensors files in the order of their names, as sha256sum writes them.
func Digest(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return digestOf(path)
	}
	entries, err := os.ReadDir(path) // in the order of names
	if err != nil {
		return "", err
	}
	all := sha256.New()
	for _, e := range entries {
		if e.IsDir() || !slices.Contains([]string{".json", ".jinja", ".safetensors"}, strings.ToLower(filepath.Ext(e.Name()))) {
			continue
		}
		sum, err := digestOf(filepath.Join(path, e.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(all, "%s  %s\n", sum, e.Name())
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
