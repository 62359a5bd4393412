// Package remote brings the data that an order names on other machines.
//
// A source is [Remote] if it is one of these; [Cache.Fetch] fetches it and returns where its file is:
//
//	https://HOST/PATH                          a file; http of this machine alone
//	https://HOST/PATH#sha256=DIGEST            the file of this digest
//	hf:OWNER/NAME                              the data of a dataset on Hugging Face's hub
//	hf:OWNER/NAME:FILE@REVISION                one of its files, of one revision
//
// HF_ENDPOINT and HF_TOKEN say where the hub is and who asks.
//
// Invariants: what is fetched is whole, and has the digest that its source promises; what was fetched so far is kept, and the next
// time goes on from there. A file that is there is fetched again only when its source has another edition. An order
// file, which somebody else may have written, reaches no machine of the user's own network.
//
// Source: package fetch's.
package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/fetch"
	"github.com/tally-network/tally/internal/filelock"
	"github.com/tally-network/tally/internal/replace"
)

// Cache is where data of other machines are kept.
type Cache struct {
	Dir       string
	Ends      []string                             // of files that can be read: of a repository, one of these is taken
	Progress  func(name string, done, total int64) // how far a file is, in bytes; total is −1 while it is not known; may be nil
	Net       *fetch.Network                       // nil: that of the environment
	Addresses *fetch.Network                       // for https: nil: Net, but that nobody has named a host or is known
}

// MaxFile bounds a file in bytes.
const MaxFile = 64 << 30

const hubScheme = "hf:"

var (
	hubForm = regexp.MustCompile(`^hf:((?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*)(?::([^@]+))?(?:@([A-Za-z0-9][\w./-]*))?$`)
)

// Remote reports whether a source is on another machine.
func Remote(source string) bool {
	return strings.HasPrefix(source, hubScheme) || strings.HasPrefix(source, "https://") || strings.HasPrefix(source, "http://")
}

// Dir returns the user's folder for data of other machines.
func Dir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("where to keep data of other machines: %w: set HOME or XDG_CACHE_HOME", err)
	}
	return filepath.Join(dir, "tally", "data"), nil
}

// location is where one file comes from.
type location struct {
	fetch.Expected
	url    string
	name   string // of the file
	pinned string // a source that names this very file; "" if what is at the address may change
}

// Fetched is the file of a source.
type Fetched struct {
	Path   string
	Source string // what names this very file, whatever becomes of its address
}

// Fetch returns a source's file, which it fetches unless it is there.
func (c *Cache) Fetch(ctx context.Context, source string) (f Fetched, err error) {
	if f, err = c.fetch(ctx, source); err != nil {
		bare, _, _ := strings.Cut(source, "?") // what is behind it may let its reader in
		err = fmt.Errorf("fetch %.200s: %w", bare, err)
	}
	return f, err
}

func (c *Cache) fetch(ctx context.Context, source string) (f Fetched, err error) {
	net := c.Net
	if net == nil {
		net = fetch.New(os.Getenv)
	}
	var p *location
	if strings.HasPrefix(source, hubScheme) {
		p, err = c.fromHub(ctx, net, source)
	} else {
		if p, err = fromAddress(source); c.Addresses != nil {
			net = c.Addresses
		} else {
			net = net.Public()
		}
	}
	if err != nil {
		return f, err
	}
	key := sha256.Sum256([]byte(p.url))
	dir := filepath.Join(c.Dir, hex.EncodeToString(key[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return f, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return f, err
	}
	defer lock.Close()
	for { // one process fetches it
		taken, err := filelock.Try(lock)
		if err != nil {
			return f, err
		}
		if !taken {
			break
		}
		select {
		case <-ctx.Done():
			return f, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	f = Fetched{filepath.Join(dir, p.name), p.pinned}
	sum, err := c.get(ctx, net, p, f.Path)
	if f.Source == "" {
		f.Source = p.url + "#sha256=" + sum
	}
	return f, err
}

// Beside a file stand its edition and its digest, and what there is of the next one.
const (
	editionEnd = ".edition"
	digestEnd  = ".sha256"
	partialEnd = ".partial"
)

// get fetches a file unless it is there, and returns its SHA-256.
func (c *Cache) get(ctx context.Context, net *fetch.Network, p *location, to string) (string, error) {
	sum, err := p.there(ctx, net, to)
	if sum != "" || err != nil {
		return sum, err
	}
	partial := to + partialEnd
	w := fetch.Wanted{Expected: p.Expected, URL: p.url, To: partial, Most: MaxFile, Mark: partial + editionEnd}
	if c.Progress != nil {
		w.Told = func(done, total int64) { c.Progress(p.name, done, total) }
	}
	if sum, err = net.Download(ctx, w); err != nil {
		return "", err
	}
	// The digest comes last, and goes first: without it nothing is there.
	if err := os.Remove(to + digestEnd); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, end := range []string{"", editionEnd} {
		if err := os.Rename(partial+end, to+end); err != nil {
			return "", err
		}
	}
	return sum, replace.File(to+digestEnd, []byte(sum))
}

// there returns the digest of the file if it is there, in the edition that its address has now.
func (p *location) there(ctx context.Context, net *fetch.Network, to string) (string, error) {
	sum, err := bounded.ReadFile(to+digestEnd, 64)
	if errors.Is(err, fs.ErrNotExist) || fetch.SizeOf(to) < 0 {
		return "", nil
	}
	if err != nil || p.pinned != "" {
		return string(sum), err
	}
	ctx, cancel := context.WithTimeout(ctx, net.Patience)
	defer cancel()
	answer, err := net.Ask(ctx, http.MethodHead, p.url, http.Header{"Accept-Encoding": {"identity"}}, http.StatusOK)
	if err != nil {
		return "", fmt.Errorf("whether it has changed since the last time cannot be asked: %w; to use the copy of then, name %s", err, to)
	}
	if err := answer.Body.Close(); err != nil {
		return "", err
	}
	had, err := bounded.ReadFile(to+editionEnd, 1<<12)
	if err != nil {
		return "", err
	}
	if now := fetch.EditionOf(answer); now == "" || now != string(had) {
		return "", nil
	}
	return string(sum), nil
}

// fromAddress reads an address.
func fromAddress(source string) (*location, error) {
	u, err := url.Parse(source)
	if err != nil {
		return nil, err
	}
	if err := fetch.CheckAddress(u); err != nil {
		return nil, err
	}
	p := &location{Expected: fetch.Expected{Bytes: -1}, name: path.Base(u.Path)}
	if u.Fragment != "" {
		sum, ok := strings.CutPrefix(u.Fragment, "sha256=")
		if p.SHA256 = strings.ToLower(sum); !ok || !fetch.IsSHA256(p.SHA256) {
			return nil, fmt.Errorf("behind # stands %.80q: write sha256= and 64 hexadecimal digits, or nothing", u.Fragment)
		}
		p.pinned = source
	}
	if u.User != nil {
		return nil, errors.New("the address holds a password, which all who see the order would know: take it out")
	}
	if !isName(p.name) {
		return nil, fmt.Errorf("its path ends in %.80q, which is no name of a file", p.name)
	}
	u.Fragment = ""
	if p.url = u.String(); p.pinned != "" {
		p.url += "#" + p.SHA256 // another digest is another file
	}
	return p, nil
}

// isName reports whether a name is one of a file on every system.
func isName(name string) bool {
	return len(name) <= 200 && filepath.IsLocal(name) && name != "." && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune(`/\:*?"<>|`, r) })
}

// fromHub finds the file of a dataset.
func (c *Cache) fromHub(ctx context.Context, net *fetch.Network, source string) (*location, error) {
	m := hubForm.FindStringSubmatch(source)
	if m == nil || strings.Contains(source, "..") {
		return nil, fmt.Errorf("%.80q is no dataset: write hf:OWNER/NAME, hf:OWNER/NAME:FILE or hf:OWNER/NAME:FILE@REVISION", source)
	}
	r, err := net.Repository(ctx, fetch.Datasets, m[1], m[3])
	if err != nil {
		return nil, err
	}
	f, err := c.choose(r.Files, m[2])
	if err != nil {
		return nil, err
	}
	if !isName(path.Base(f.Name)) {
		return nil, fmt.Errorf("its file %.80q has no name of a file on every system", f.Name)
	}
	return &location{Expected: f.Expected, url: r.URL(f.Name), name: path.Base(f.Name), pinned: fmt.Sprintf("%s%s:%s@%s", hubScheme, m[1], f.Name, r.Commit)}, nil
}

// choose takes the file that is named, or else the only one that can be read, or the only such one for training.
func (c *Cache) choose(files []fetch.Offered, name string) (*fetch.Offered, error) {
	var readable, training []fetch.Offered
	for _, f := range files {
		if name == f.Name {
			return &f, nil
		}
		if !slices.Contains(c.Ends, strings.ToLower(path.Ext(f.Name))) {
			continue
		}
		readable = append(readable, f)
		if strings.Contains(strings.ToLower(f.Name), "train") {
			training = append(training, f)
		}
	}
	switch {
	case name == "" && len(readable) == 1:
		return &readable[0], nil
	case name == "" && len(training) == 1:
		return &training[0], nil
	}
	var names []string
	for _, f := range readable[:min(len(readable), 12)] {
		names = append(names, f.Name)
	}
	if name != "" {
		return nil, fmt.Errorf("it has no file %.80q, but %q", name, names)
	}
	return nil, fmt.Errorf("it has %d files that can be read: choose one, as in hf:OWNER/NAME:FILE, of %q", len(readable), names)
}
