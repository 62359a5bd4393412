// Package remote brings the data that an order names on other machines.
//
// A source is [Remote] if it is one of these; [Cache.Fetch] fetches it and returns where its files are:
//
//	https://HOST/PATH                          a file; of this machine itself by http, too, where it may be reached
//	https://HOST/PATH#sha256=DIGEST            the file of this digest
//	hf:OWNER/NAME                              the data for training of a dataset on Hugging Face's hub
//	hf:OWNER/NAME:PATTERN@REVISION             a file, a folder or several files of it, of one revision
//	s3://BUCKET/KEY                            a file of a bucket of S3, or of a server that speaks as S3 does; a digest may follow as above
//	s3://BUCKET/PATTERN                        several; a folder ends in a slash
//	ipfs:CID/PATH                              a file, or the files of a folder, of IPFS, from any gateway
//	ipfs:CID?filename=NAME                     a file, and the name by whose end it is read
//	tally:CID.SIZE?filename=NAME&peer=ADDRESS  a file that a peer shares (package sharing)
//
// IPFS_GATEWAY names a gateway, which need not be trusted.
// HF_ENDPOINT and HF_TOKEN say where the hub is and who asks; AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
// and AWS_SESSION_TOKEN do of S3. What is meant of several files, [source.Select] says. TALLY_DATA_LIMIT bounds the bytes of a source.
//
// Invariants: what is fetched is whole, and has the digest that its source promises. What was fetched so far is kept, and the next
// time goes on from there. A file that is there is fetched again only when its source has another version. Somebody else may have
// written an order file. So it reaches no machine of the user's own network but those of the environment, and fetches no more than
// the limit. It has nothing of the user's credentials but for what is [Cache.Trusted]. No error holds what lets its reader in.
//
// Source: package fetch's.
package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/fetch"
	"github.com/tally-network/tally/internal/filelock"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/node/consume/sharing"
)

// Cache is where data of other machines are kept.
type Cache struct {
	Dir       string
	Trusted   []string                             // sources, or how they begin, that are asked for by the user's credentials; others by nobody's
	Progress  func(name string, done, total int64) // how far a file is, in bytes; total is −1 while it is not known; may be nil
	Env       func(string) string                  // nil: os.Getenv
	Net       *fetch.Network                       // nil: that of the environment
	Addresses *fetch.Network                       // for https; nil: the public part of Net
}

// scheme is a way to name data.
type scheme struct {
	prefix string
	knows  bool // who asks, by credentials
	find   func(c *Cache, ctx context.Context, net *fetch.Network, source string) (*found, error)
}

// schemes are the ways to name data on other machines.
var schemes = []scheme{
	{"https://", false, (*Cache).fromAddress}, {"http://", false, (*Cache).fromAddress},
	{hubScheme, true, (*Cache).fromHub},
	{s3Scheme, true, (*Cache).fromS3},
	{ipfsScheme, false, (*Cache).fromIPFS},
	{sharing.Scheme, false, (*Cache).fromPeers},
}

// schemeOf returns the way in which a source is named, nil if it lies here.
func schemeOf(source string) *scheme {
	for i := range schemes {
		if strings.HasPrefix(source, schemes[i].prefix) {
			return &schemes[i]
		}
	}
	return nil
}

// Remote reports whether a source is on another machine.
func Remote(source string) bool { return schemeOf(source) != nil }

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
	url  string
	name string // in the cache
	copy copier // nil: the url is downloaded
}

// copier writes a file behind the bytes that there are, and reports how many there are.
type copier func(ctx context.Context, to *os.File, have int64, report func(done int64)) error

// found is what a source stands for.
type found struct {
	files  []location
	net    *fetch.Network // by which they come
	key    string         // what no other files have
	pinned string         // a source that names these very files; "" if what is at the address may change
	named  string         // the source without a digest, where that is missing
}

// Fetched is what a source has brought.
type Fetched struct {
	Path   string // a file, or the pattern of several
	Source string // what names these very files, whatever becomes of their address
}

// Fetch returns the files of a source, which it fetches unless they are there.
func (c *Cache) Fetch(ctx context.Context, source string) (f Fetched, err error) {
	if f, err = c.fetch(ctx, source); fetch.IsHidden(err) && schemeOf(source).knows && !c.isTrusted(source) {
		err = fmt.Errorf("%w. An order file names it, so it was asked for without your credentials: to use them, add --allow %.200s", err, fetch.RedactText(source))
	}
	if err != nil {
		err = fmt.Errorf("fetch %.200s: %w", fetch.RedactText(source), err)
	}
	return f, err
}

func (c *Cache) fetch(ctx context.Context, source string) (f Fetched, err error) {
	net, s := c.Net, schemeOf(source)
	if s == nil {
		return f, errors.New("it lies on no other machine")
	}
	if net == nil {
		net = fetch.New(c.env)
	}
	limit, err := limitOf(c.env(limitName))
	if err != nil {
		return f, err
	}
	p, err := s.find(c, ctx, net, source)
	if err != nil {
		return f, err
	}
	if len(p.files) > maxFiles {
		return f, tooMany(len(p.files))
	}
	total := int64(0)
	for _, file := range p.files {
		if file.Bytes > limit-total {
			return f, tooLarge(p.size(), limit)
		}
		total += max(file.Bytes, 0)
	}
	key := sha256.Sum256([]byte(p.key))
	dir := filepath.Join(c.Dir, hex.EncodeToString(key[:]))
	lock, err := c.lock(ctx, dir, p)
	if err != nil {
		return f, err
	}
	defer lock.Close()
	f = Fetched{filepath.Join(dir, p.files[0].name), cmp.Or(p.pinned, p.named)}
	if len(p.files) > 1 {
		f.Path = filepath.Join(dir, "*"+filepath.Ext(p.files[0].name))
	}
	for i := range p.files {
		file, to := &p.files[i], filepath.Join(dir, p.files[i].name)
		sum, err := c.get(ctx, p, file, to, limit)
		switch {
		case errors.Is(err, fetch.ErrTooLarge):
			return f, fmt.Errorf("%w, or set the limit, as in %s=64GiB", err, limitName)
		case err != nil:
			return f, err
		}
		limit -= max(fetch.SizeOf(to), 0)
		if p.pinned == "" && len(p.files) == 1 {
			f.Source = p.named + digestMark + sum
		}
	}
	return f, nil
}

// isTrusted reports whether a source may have the user's credentials. What is trusted ends where a name does.
func (c *Cache) isTrusted(source string) bool {
	return slices.ContainsFunc(c.Trusted, func(t string) bool {
		rest, ok := strings.CutPrefix(source, t)
		return ok && (rest == "" || strings.ContainsRune("/:@?&", rune(rest[0])) || strings.HasSuffix(t, "/"))
	})
}

func (c *Cache) env(name string) string {
	if c.Env == nil {
		return os.Getenv(name)
	}
	return c.Env(name)
}

// size returns how many bytes all files have together, −1 if that is not known.
func (p *found) size() (n int64) {
	for _, file := range p.files {
		if file.Bytes < 0 {
			return -1
		}
		n += file.Bytes
	}
	return n
}

// lock makes a folder of the cache, and keeps other processes off it. While another has it, Progress tells how far that is.
func (c *Cache) lock(ctx context.Context, dir string, p *found) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for { // one process fetches it
		taken, err := filelock.Try(lock)
		if err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		if !taken {
			return lock, nil
		}
		if c.Progress != nil {
			for _, file := range p.files {
				if n := fetch.SizeOf(filepath.Join(dir, file.name) + partialEnd); n >= 0 {
					c.Progress(file.name+" by another process", n, file.Bytes)
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), lock.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Beside a file stand its version and its digest, and what there is of the next one.
const (
	versionEnd = ".version"
	digestEnd  = ".sha256"
	partialEnd = ".partial"
)

// get fetches a file unless it is there, and returns its SHA-256.
func (c *Cache) get(ctx context.Context, p *found, file *location, to string, limit int64) (string, error) {
	sum, err := p.there(ctx, file, to)
	if sum != "" || err != nil {
		return sum, err
	}
	partial := to + partialEnd
	w := fetch.Wanted{Expected: file.Expected, URL: file.url, To: partial, Limit: limit, VersionFile: partial + versionEnd}
	if c.Progress != nil {
		w.Progress = func(done, total int64) { c.Progress(file.name, done, total) }
	}
	if file.copy != nil {
		sum, err = p.copy(ctx, file, w)
	} else {
		sum, err = p.net.Download(ctx, w)
	}
	if err != nil {
		return "", err
	}
	// The digest comes last, and goes first: without it nothing is there.
	if err := os.Remove(to + digestEnd); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.Rename(partial, to); err != nil {
		return "", err
	}
	if err := os.Rename(partial+versionEnd, to+versionEnd); err != nil && !errors.Is(err, fs.ErrNotExist) { // not all have one
		return "", err
	}
	return sum, replace.File(to+digestEnd, []byte(sum))
}

// there returns the digest of the file if it is there, in the version that its address has now.
func (p *found) there(ctx context.Context, file *location, to string) (string, error) {
	sum, err := bounded.ReadFile(to+digestEnd, 64)
	if errors.Is(err, fs.ErrNotExist) || fetch.SizeOf(to) < 0 {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if p.pinned != "" {
		if file.SHA256 != "" && file.SHA256 != string(sum) {
			return "", nil
		}
		return string(sum), nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.net.IdleTimeout)
	defer cancel()
	answer, err := p.net.Do(ctx, http.MethodHead, file.url, http.Header{"Accept-Encoding": {"identity"}}, http.StatusOK)
	if err != nil {
		return "", fmt.Errorf("whether it has changed since the last time cannot be asked: %w; to use the copy of then, name %s", err, to)
	}
	if err := answer.Body.Close(); err != nil {
		return "", err
	}
	had, err := bounded.ReadFile(to+versionEnd, 1<<12)
	if err != nil {
		return "", err
	}
	if now := fetch.VersionOf(answer); now == "" || now != string(had) {
		return "", nil
	}
	return string(sum), nil
}

// maxFiles bounds the files of a source.
const maxFiles = 1 << 12

// tooMany says that a source has more files than that.
func tooMany(files int) error {
	return fmt.Errorf("it has %d files for training, the limit is %d: name a pattern", files, maxFiles)
}

// shardName returns what one of several files is called here: in their order, and all with the same end.
func shardName(i int, name string) string {
	end := filepath.Ext(name)
	return fmt.Sprintf("%05d-%s", i, strings.TrimSuffix(name, end)+strings.ToLower(end))
}

// isName reports whether a name is one of a file on every system, and of none that the cache has for itself.
func isName(name string) bool {
	return len(name) <= 200 && filepath.IsLocal(name) && !strings.HasPrefix(name, ".") && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune(`/\:*?"<>|`, r) })
}
