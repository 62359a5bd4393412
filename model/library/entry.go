package library

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/fetch"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/model/encoder"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
)

const maxManifest = 4 << 20 // bytes

// Entry is a model of a library.
type Entry struct {
	Name    string               `json:"name"`
	Source  string               `json:"source"`
	Release string               `json:"release,omitempty"` // which one the source had: a version, a commit, a tag of HTTP
	Path    string               `json:"-"`                 // of the GGUF file, or of the folder
	GGUF    string               `json:"gguf,omitempty"`    // the file's name, if it is one
	Bytes   int64                `json:"bytes"`
	Digest  string               `json:"digest"` // of the list of files, as Digest makes it
	Pulled  time.Time            `json:"pulled"`
	Files   []File               `json:"files"`
	Model   *files.Description   `json:"model,omitempty"`
	Encoder *encoder.Description `json:"encoder,omitempty"` // of a sentence encoder
	Problem string               `json:"problem,omitempty"` // why it is neither
}

// File is a file of a model.
type File struct {
	Name   string `json:"name"` // with slashes, from the model's folder
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Stamp  *Stamp `json:"stamp,omitempty"` // nil of models that were pulled before there were stamps
}

// Stamp changes when somebody writes to a file, as far as its disk tells.
type Stamp struct {
	Modified int64  `json:"modified"` // nanoseconds since 1970
	Inode    uint64 `json:"inode,omitempty"`
}

func stampOf(info fs.FileInfo) *Stamp { return &Stamp{info.ModTime().UnixNano(), inodeOf(info)} }

// Digest returns the SHA-256 of a list of files, in hexadecimal: a line for each file, by name, of its SHA-256, bytes and
// name.
func Digest(files []File) string {
	files = slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%s %d %q\n", f.SHA256, f.Bytes, f.Name)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// DigestOf returns the digest that the model at a path would have in a library.
func DigestOf(ctx context.Context, name string) (string, error) {
	o, err := openLocal(name)
	if err != nil {
		return "", err
	}
	offers, err := o.list(ctx)
	if err != nil {
		return "", err
	}
	all := pick(offers, "", []string{o.only})
	if o.only == "" {
		weights, err := lm.WeightFiles(name)
		if err != nil {
			return "", err
		}
		all = pick(offers, "", append(slices.Clone(settings), weights...))
	}
	var files []File
	for _, f := range all {
		sum, n, err := sumFile(ctx, filepath.Join(o.folder, filepath.FromSlash(f.Name)))
		if err != nil {
			return "", err
		}
		files = append(files, File{Name: f.as, Bytes: n, SHA256: sum})
	}
	return Digest(files), nil
}

// DigestOfAdapted returns a digest of the model that has a digest, with the adapter in a folder.
func DigestOfAdapted(ctx context.Context, base, dir string) (string, error) {
	all := []File{{Name: "base", SHA256: base}}
	for _, name := range files.AdapterFiles {
		sum, n, err := sumFile(ctx, filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		all = append(all, File{Name: name, Bytes: n, SHA256: sum})
	}
	return Digest(all), nil
}

// Usable fails for what Tally does not run, and if a file is not the one that was pulled any more, as far as its size and its stamp tell.
func (e *Entry) Usable() error {
	if e.Problem != "" {
		return fmt.Errorf("%s is no model that can be asked: %s", e.Name, e.Problem)
	}
	return e.eachFile(func(f *File, at string) error {
		info, err := os.Stat(at)
		if err == nil && (info.Size() != f.Bytes || f.Stamp != nil && *f.Stamp != *stampOf(info)) {
			err = e.changed(f, "somebody has touched it; tally model verify "+e.Name+" compares it")
		}
		return err
	})
}

// eachFile visits the files of a model, with their paths.
func (e *Entry) eachFile(visit func(f *File, at string) error) error {
	folder := e.Path
	if e.GGUF != "" {
		folder = filepath.Dir(e.Path)
	}
	for i := range e.Files {
		if err := visit(&e.Files[i], filepath.Join(folder, filepath.FromSlash(e.Files[i].Name))); err != nil {
			return err
		}
	}
	return nil
}

// describe says what kind of model its files are.
func (e *Entry) describe() {
	e.Problem = ""
	var err error
	if e.Model, err = files.Describe(e.Path); err == nil {
		return
	}
	e.Problem = err.Error()
	if e.Encoder, err = encoder.Describe(e.Path); err == nil {
		e.Problem = ""
	}
}

// changed says that a file is another one.
func (e *Entry) changed(f *File, hint string) error {
	return fmt.Errorf("%s of model %s has changed since it was pulled: %s", f.Name, e.Name, hint)
}

// stamp notes what its files are like, which have been compared with their digests.
func (e *Entry) stamp() error {
	return e.eachFile(func(f *File, at string) error {
		info, err := os.Stat(at)
		if err == nil {
			f.Stamp = stampOf(info)
		}
		return err
	})
}

// read returns the entry of a name, or nil if there is none.
func (l *Library) read(name string) (*Entry, error) {
	folder := l.folder(name)
	text, err := bounded.ReadFile(filepath.Join(folder, manifest), maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	e := &Entry{}
	if err = json.Unmarshal(text, e); err == nil {
		err = e.check(name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: tally rm %s, and pull the model again", filepath.Join(folder, manifest), err, name)
	}
	e.Path = filepath.Join(folder, e.Digest, e.GGUF)
	return e, nil
}

// check returns an error unless an entry could have been written here. Its files are not looked at.
func (e *Entry) check(name string) error {
	if e.Name != name {
		return fmt.Errorf("it is of model %.40q", e.Name)
	}
	for _, f := range e.Files {
		if !isSafe(f.Name) || !fetch.IsSHA256(f.SHA256) || f.Bytes < 0 {
			return fmt.Errorf("file %.40q is none", f.Name)
		}
	}
	if e.Digest != Digest(e.Files) {
		return errors.New("its digest is not that of its files")
	}
	if e.GGUF != "" && !slices.ContainsFunc(e.Files, func(f File) bool { return f.Name == e.GGUF }) {
		return fmt.Errorf("gguf is %.40q, and there is no such file", e.GGUF)
	}
	return nil
}

// write makes an entry what the library has under its name: the moment at which a model is there.
func (l *Library) write(e *Entry) error {
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	folder := l.folder(e.Name)
	err = replace.With(filepath.Join(folder, manifest), func(f *os.File) error {
		_, err := f.Write(append(text, '\n'))
		return errors.Join(err, f.Sync())
	})
	return errors.Join(err, replace.Flush(folder))
}

// isSafe reports whether a path with slashes names a file below a folder, on every system.
func isSafe(name string) bool {
	return len(name) <= 512 && filepath.IsLocal(name) && path.Clean(name) == name && name != "." &&
		!strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune(`\:*?"<>|`, r) })
}

// sumFile returns the SHA-256 of a file, and its size.
func sumFile(ctx context.Context, name string) (string, int64, error) {
	f, _, err := bounded.Open(name)
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	n, err := io.Copy(h, fetch.Reader(ctx, f))
	return hexOf(h), n, errors.Join(err, f.Close())
}

func hexOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// manifestsDir has the manifests of models, by their digests: it takes seconds to make one, and more for large weights and long contexts.
const manifestsDir = ".manifests"

// Manifest returns what a language model is, as it is bought and sold. Files are those of e, if they are open already.
func (l *Library) Manifest(e *Entry, f *files.Files, threads int) (*files.Manifest, error) {
	if err := e.Usable(); err != nil {
		return nil, err
	}
	kept := filepath.Join(l.dir, manifestsDir, filepath.Base(e.Digest))
	m := &files.Manifest{}
	if text, err := bounded.ReadFile(kept, files.MaxStored); err == nil && canon.Unmarshal(text, m) == nil {
		return m, nil
	}
	err := error(nil)
	if f == nil {
		f, err = files.Open(e.Path)
	}
	if err == nil {
		m, err = f.Manifest(threads)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		return nil, err
	}
	return m, replace.File(kept, canon.Marshal(m))
}
