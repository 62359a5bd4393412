package library

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/fetch"
	"github.com/tally-network/tally/internal/filelock"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/model/encoder"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
)

// Step is what a pull does.
type Step string

// The steps of a pull.
const (
	Waiting   Step = "waiting" // for another process that changes the same model
	Fetching  Step = "fetching"
	Unpacking Step = "unpacking"
	Checking  Step = "checking"
)

// Progress is how far a pull has come.
type Progress struct {
	Step        Step
	File        string
	Done, Total int64 // bytes of the file; Total is -1 if nobody has said it
}

// Options are what a pull can be told.
type Options struct {
	Name string         // of the model; "" takes the source's
	Tell func(Progress) // called often, by the goroutine that pulls; nil for nobody
	// Public says that the source is of somebody elsewhere, who shall not reach this machine's network by it.
	Public bool
}

// Pull brings a model from a source, or a newer release of one that is here. After an error, the next pull of the source goes
// on from what has come.
func (l *Library) Pull(ctx context.Context, text string, o Options) (_ *Entry, err error) {
	s, err := parseSource(text)
	if err != nil {
		return nil, err
	}
	name, err := o.Name, error(nil)
	if name == "" {
		name, err = s.name()
	} else {
		name, err = cleanName(name)
	}
	if err != nil {
		return nil, err
	}
	unlock, err := l.lock(ctx, name, o.Tell)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	old, err := l.read(name)
	if err != nil {
		return nil, err
	}
	if old != nil {
		if from, err := parseSource(old.Source); err != nil || !s.same(from) {
			return nil, fmt.Errorf("model %s %w, %s: tally rm %s, or give this one another name", name, ErrTaken, old.Source, name)
		}
	}
	net := l.net
	if s.kind == fromAddress && !o.Public {
		net = net.Naming(s.base)
	}
	e, err := l.pull(ctx, &pull{net: net, dir: l.folder(name), source: s, limits: l.limits, tell: o.Tell}, old)
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", s, err)
	}
	if e == old {
		if old.Problem == "" {
			return old, nil
		}
		old.describe() // more may be read than when it was pulled
		return old, l.write(old)
	}
	e.Name = name
	return e, l.commit(e, old)
}

// lock keeps others from changing a model, after they have done.
func (l *Library) lock(ctx context.Context, name string, tell func(Progress)) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(l.dir, lockFolder, filepath.Base(l.folder(name))), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		taken, err := filelock.Try(f)
		if err == nil && !taken {
			return f.Close, nil
		}
		if err == nil {
			if tell != nil {
				tell(Progress{Step: Waiting, Total: -1})
			}
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock model %s: %w", name, err), f.Close())
		}
	}
}

// pull is one pull under way.
type pull struct {
	net    *fetch.Network
	dir    string // of the model
	source source
	limits limits
	budget int64 // bytes that may yet be written
	tell   func(Progress)
	files  []File
}

func (p *pull) partial() string { return filepath.Join(p.dir, partialFolder) }
func (p *pull) staged() string  { return filepath.Join(p.partial(), "files") }

// pull brings what a source has now, unless that is the old entry. What it brings is not yet a model of the library.
func (l *Library) pull(ctx context.Context, p *pull, old *Entry) (_ *Entry, err error) {
	o, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	if old != nil && o.release() != "" && o.release() == old.Release {
		return old, os.RemoveAll(p.partial())
	}
	if err := p.begin(); err != nil {
		return nil, err
	}
	files, err := o.list(ctx)
	if err == nil {
		err = checkListing(files)
	}
	if err != nil {
		return nil, err
	}
	c, err := choose(files, p.source.part)
	if err != nil {
		return nil, err
	}
	e := &Entry{Source: p.source.String(), Release: o.release(), Pulled: time.Now().UTC().Truncate(time.Second)}
	if c.gguf {
		e.GGUF = path.Base(c.path)
		err = p.take(ctx, o, pick(files, path.Dir(c.path), []string{e.GGUF}))
	} else {
		err = p.takeFolder(ctx, o, c.path, files)
	}
	e.Files, e.Digest = p.files, Digest(p.files)
	for _, f := range p.files {
		e.Bytes += f.Bytes
	}
	if err == nil {
		err = p.check(e.GGUF)
	}
	return e, err
}

// check reads weights as whoever serves the model would. Those that are broken are not kept: nobody could go on from them. A model of which
// nothing is known here may be what others read.
func (p *pull) check(file string) error {
	path := filepath.Join(p.staged(), file)
	p.told(Checking, cmp.Or(file, "weights"), -1)(0)
	var err error
	if _, unknown := files.Describe(path); unknown == nil {
		err = lm.Check(path)
	} else if _, unknown := encoder.Describe(path); unknown == nil {
		_, err = encoder.Open(path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("the model is broken: %w", err), os.RemoveAll(p.partial()))
	}
	return nil
}

func (p *pull) open(ctx context.Context) (origin, error) {
	switch p.source.kind {
	case fromIndex:
		return openIndex(ctx, p)
	case fromHub:
		return openHub(ctx, p)
	case fromAddress:
		return openAddress(ctx, p)
	}
	return openLocal(p.source.base)
}

// begin makes the folder in which files are gathered, and sees what room there is. What was begun of another source goes, and
// so does what is not fetched: second names of somebody's files are there, which must not be written to.
func (p *pull) begin() error {
	mark := filepath.Join(p.partial(), "source")
	was, err := bounded.ReadFile(mark, maxSource)
	if err != nil || string(was) != p.source.String() {
		if err := os.RemoveAll(p.partial()); err != nil {
			return err
		}
	}
	if p.source.kind == fromDisk || p.source.kind == fromIndex {
		if err := os.RemoveAll(p.staged()); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(p.staged(), 0o700); err != nil {
		return err
	}
	free, err := freeSpace(p.dir)
	if err != nil {
		return fmt.Errorf("how full the disk of %s is: %w", p.dir, err)
	}
	p.budget = min(p.limits.total, free-p.limits.free)
	err = filepath.WalkDir(p.partial(), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				p.budget += info.Size() // it is paid for
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return replace.File(mark, []byte(p.source.String()))
}

// room returns an error if so many bytes are too many.
func (p *pull) room(bytes int64) error {
	switch {
	case bytes > p.limits.file:
		return fmt.Errorf("a file has %s, more than %s: choose a smaller model", size(bytes), size(p.limits.file))
	case bytes > p.budget:
		return fmt.Errorf("it takes %s, and the disk of %s has room for %s: make room there, or name another folder", size(bytes), p.dir, size(max(0, p.budget)))
	}
	return nil
}

// takeFolder takes a model's folder: its settings, and the weights that they name.
func (p *pull) takeFolder(ctx context.Context, o origin, folder string, files []fetch.Offered) error {
	if err := p.take(ctx, o, pick(files, folder, settings)); err != nil {
		return err
	}
	names, err := lm.WeightFiles(p.staged())
	if err != nil {
		return err
	}
	weights := pick(files, folder, names)
	if len(weights) != len(names) {
		return fmt.Errorf("of %d files of weights, such as %s, there are %d", len(names), names[0], len(weights))
	}
	return p.take(ctx, o, weights)
}

// picked is a file to take, and its name in the model's folder.
type picked struct {
	fetch.Offered
	as string
}

// pick returns those files of a folder that have one of names.
func pick(files []fetch.Offered, folder string, names []string) (all []picked) {
	at := make(map[string]fetch.Offered, len(files))
	for _, f := range files {
		at[f.Name] = f
	}
	for _, name := range names {
		if f, ok := at[path.Join(folder, name)]; ok {
			all = append(all, picked{f, name})
		}
	}
	return all
}

// take brings files into the folder in which they are gathered.
func (p *pull) take(ctx context.Context, o origin, files []picked) error {
	total := int64(0)
	for _, f := range files {
		if !isSafe(f.as) {
			return fmt.Errorf("a file is called %.80q, which is no name on every system: choose another model", f.as)
		}
		if err := p.room(f.Bytes); err != nil {
			return err
		}
		if total += max(f.Bytes, 0); total > p.budget {
			return p.room(total)
		}
	}
	for _, f := range files {
		to := filepath.Join(p.staged(), filepath.FromSlash(f.as))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		sum, err := o.take(ctx, f.Offered, to)
		if err != nil {
			return err
		}
		bytes := fetch.SizeOf(to)
		p.budget -= bytes
		p.files = append(p.files, File{Name: f.as, Bytes: bytes, SHA256: sum})
	}
	return nil
}

// download fetches a file within the limits.
func (p *pull) download(ctx context.Context, w fetch.Wanted, name string) (string, error) {
	w.Limit = min(p.limits.file, max(0, p.budget))
	if p.tell != nil {
		w.Progress = func(done, total int64) { p.tell(Progress{Fetching, name, done, total}) }
	}
	return p.net.Download(ctx, w)
}

func (p *pull) told(step Step, file string, total int64) func(done int64) {
	return func(done int64) {
		if p.tell != nil {
			p.tell(Progress{step, file, done, total})
		}
	}
}
