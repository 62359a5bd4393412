package library

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// aPull is a pull into a folder of its own, with room for so many bytes.
func aPull(t *testing.T, room int64) *pull {
	t.Helper()
	return &pull{dir: t.TempDir(), budget: room, limits: limits{file: 1 << 40}}
}

// A tar file is read once, however many files a model has, and until its context ends.
func TestTarFilesAreReadOnce(t *testing.T) {
	var parts []string
	for i := range 20 {
		parts = append(parts, "m/model-"+strconv.Itoa(i)+".safetensors", string(aGGUF(t, 20_000)))
	}
	b := tarOf(t, append(parts, "m/config.json", "{}", "m/readme.txt", "x")...)
	name := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	p := aPull(t, 1<<20)
	a, err := openArchive(p, name, "a-1.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	files, err := a.files(t.Context())
	if err != nil || len(files) != 22 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := a.(*tarred).Seek(0, io.SeekEnd); err != nil { // nothing is read any more
		t.Fatal(err)
	}
	left := p.budget
	for i, f := range files {
		_, err := a.extract(t.Context(), f, filepath.Join(p.dir, strconv.Itoa(i)), nil)
		if matters := f.Name != "m/readme.txt"; (err == nil) != matters {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	if p.budget <= left {
		t.Error("what moved is counted twice")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := openArchive(p, name, "a-1.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.files(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	p.budget = 1000
	poor, err := openArchive(p, name, "a-1.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer poor.Close()
	if _, err := poor.files(t.Context()); err == nil {
		t.Error("more was unpacked than there was room for")
	}
}

// How many files a zip file says that it has is compared with the bound before memory is taken for them.
func TestZipFilesWithManyFiles(t *testing.T) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := range maxOffered + 1 {
		if _, err := z.CreateHeader(&zip.FileHeader{Name: strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := openZip(bytes.NewReader(out.Bytes()), int64(out.Len())); !errors.Is(err, errCrowded) {
		t.Errorf("%v, of %d files", err, maxOffered+1)
	}
	end := bytes.LastIndex(out.Bytes(), []byte("PK\x06\x06"))
	if end < 0 {
		t.Fatal("there is no end of the form zip64")
	}
	lies := bytes.Clone(out.Bytes())
	binary.LittleEndian.PutUint64(lies[end+32:], 1<<40)
	if _, err := openZip(bytes.NewReader(lies), int64(len(lies))); !errors.Is(err, errCrowded) {
		t.Errorf("%v, of 2⁴⁰ files", err)
	}
}
