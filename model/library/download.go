package library

import (
	"context"
	"crypto/sha1" // as git names its blobs
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tally-network/tally/internal/bounded"
)

// expected is what a source says of a file.
type expected struct {
	bytes  int64  // -1 if it is not said
	sha256 string // or ""
	blob   string // SHA-1 of git's blob, or ""
}

// wanted is a file to download.
type wanted struct {
	expected
	url  string
	to   string
	most int64  // bytes that are taken
	mark string // a file that remembers which edition of the address was begun; "" if a digest tells that
	told func(done, total int64)
}

// String names a file in messages, without what lets its reader in.
func (w wanted) String() string {
	u, err := url.Parse(w.url)
	if err != nil {
		return filepath.Base(w.to)
	}
	u.RawQuery = ""
	return u.Redacted()
}

// errDiffers says that a whole file is not what its source promises.
var errDiffers = errors.New("is not what the source promises")

// errAgain says that a file has to be fetched from its beginning.
var errAgain = errors.New("the server sends another part than was asked for")

var errSilent = errors.New("the server sends nothing any more: try again later")

// download fetches a file, going on from what there is of it, and returns its SHA-256. What it has got before an error stays
// for the next time, unless it is known to be wrong.
func (n *network) download(ctx context.Context, w wanted) (string, error) {
	pause, idle, again := n.pause, 0, false
	for {
		had := sizeOf(w.to)
		sum, err := n.attempt(ctx, w)
		switch {
		case err == nil || ctx.Err() != nil:
			return sum, err
		case errors.Is(err, errDiffers) || errors.Is(err, errAgain):
			if err := os.Remove(w.to); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
			if had <= 0 || again { // it was fetched as a whole
				return "", err
			}
			again = true
			continue
		case !isPassing(err):
			return "", err
		}
		if idle++; sizeOf(w.to) > had {
			idle = 0
		}
		if idle >= n.tries {
			return "", err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(pause << idle):
		}
	}
}

// isPassing reports whether an error may be gone at the next try.
func isPassing(err error) bool {
	if status := (*statusError)(nil); errors.As(err, &status) {
		return status.code >= 500 || status.code == http.StatusTooManyRequests || status.code == http.StatusRequestTimeout
	}
	if errors.Is(err, errInside) {
		return false
	}
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errSilent) || isNetwork(err)
}

func sizeOf(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return -1
	}
	return info.Size()
}

// attempt is one request for what is missing.
func (n *network) attempt(ctx context.Context, w wanted) (_ string, err error) {
	if err := os.MkdirAll(filepath.Dir(w.to), 0o700); err != nil {
		return "", err
	}
	f, err := os.OpenFile(w.to, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := newSummer(w.expected)
	have, err := io.Copy(sum, reader{ctx, f})
	if err != nil {
		return "", err
	}
	edition := w.edition()
	switch {
	case have > 0 && w.sha256 == "" && edition == "", w.bytes >= 0 && have > w.bytes:
		have = 0
	case w.sha256 != "" && have > 0 && have == w.bytes:
		if err := sum.check(w.to); err == nil {
			return sum.hex(), nil
		}
		have = 0
	}
	header := http.Header{"Accept-Encoding": {"identity"}} // ranges are of the file itself
	if have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if edition != "" {
			header.Set("If-Range", edition)
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	alarm := time.AfterFunc(n.patience, func() { stop(errSilent) })
	defer alarm.Stop()
	answer, err := n.ask(ctx, http.MethodGet, w.url, header, http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable)
	if err != nil {
		return "", errors.Join(err, context.Cause(ctx))
	}
	defer answer.Body.Close()
	return w.take(f, sum, have, answer, func() { alarm.Reset(n.patience) }, func() error { return context.Cause(ctx) })
}

// take writes what a server sends behind what there is.
func (w wanted) take(f *os.File, sum *summer, have int64, answer *http.Response, heard func(), cause func() error) (string, error) {
	switch answer.StatusCode {
	case http.StatusPartialContent:
		var from, to int64
		if _, err := fmt.Sscanf(answer.Header.Get("Content-Range"), "bytes %d-%d/", &from, &to); err != nil || from != have || have == 0 {
			return "", errAgain
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return "", errAgain
	default:
		have = 0
		if err := errors.Join(f.Truncate(0), w.remember(answer)); err != nil {
			return "", err
		}
		*sum = *newSummer(w.expected)
	}
	if _, err := f.Seek(have, io.SeekStart); err != nil {
		return "", err
	}
	total := int64(-1)
	if answer.ContentLength >= 0 {
		total = have + answer.ContentLength
	}
	switch {
	case total >= 0 && w.bytes >= 0 && total != w.bytes:
		return "", fmt.Errorf("%s has %d bytes, and %w: %d", w, total, errDiffers, w.bytes)
	case total > w.most:
		return "", fmt.Errorf("%s has %d bytes, and there is room for %d: make room, or choose a smaller model", w, total, w.most)
	case total < 0:
		total = w.bytes
	}
	body := &progress{from: answer.Body, done: have, told: func(done int64) {
		heard()
		if w.told != nil {
			w.told(done, total)
		}
	}}
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(body, w.most-have+1))
	switch {
	case err != nil:
		return "", errors.Join(err, cause())
	case have+n > w.most:
		return "", errors.Join(fmt.Errorf("%s has more than the %d bytes that there is room for: make room, or choose a smaller model", w, w.most), f.Truncate(0))
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	return sum.hex(), sum.check(w.String())
}

// edition returns which one of an address was begun.
func (w wanted) edition() string {
	if w.mark == "" {
		return ""
	}
	b, err := bounded.ReadFile(w.mark, 1<<12)
	if err != nil {
		return "" // it is fetched from its beginning
	}
	return string(b)
}

// remember notes which edition of an address is begun, if it can be asked for again.
func (w wanted) remember(answer *http.Response) error {
	if w.mark == "" {
		return nil
	}
	return os.WriteFile(w.mark, []byte(editionOf(answer)), 0o600)
}

// editionOf names the edition of what an answer holds, or is "" if the server does not. A weak tag says nothing of bytes.
func editionOf(answer *http.Response) string {
	if tag := answer.Header.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") && len(tag) < 1<<10 {
		return tag
	}
	if at := answer.Header.Get("Last-Modified"); len(at) < 1<<10 {
		return at
	}
	return ""
}

// summer sums what is written to it as a source does.
type summer struct {
	expected
	sha  hash.Hash
	blob hash.Hash // nil if it is not asked for
	n    int64
}

func newSummer(e expected) *summer {
	s := &summer{expected: e, sha: sha256.New()}
	if e.blob != "" && e.bytes >= 0 {
		s.blob = sha1.New()
		fmt.Fprintf(s.blob, "blob %d\x00", e.bytes)
	}
	return s
}

func (s *summer) Write(b []byte) (int, error) {
	s.n += int64(len(b))
	if s.blob != nil {
		s.blob.Write(b)
	}
	return s.sha.Write(b)
}

func (s *summer) hex() string { return hexOf(s.sha) }

// check returns an error unless what was written is what was expected.
func (s *summer) check(what string) error {
	switch {
	case s.bytes >= 0 && s.n != s.bytes:
		return fmt.Errorf("%s has %d bytes, and %w: %d", what, s.n, errDiffers, s.bytes)
	case s.sha256 != "" && s.hex() != s.sha256:
		return fmt.Errorf("%s has SHA-256 %s, and %w: %s", what, s.hex(), errDiffers, s.sha256)
	case s.blob != nil && hexOf(s.blob) != s.expected.blob:
		return fmt.Errorf("%s is git's blob %s, and %w: %s", what, hexOf(s.blob), errDiffers, s.expected.blob)
	}
	return nil
}

// progress tells how far something has been read.
type progress struct {
	from io.Reader
	done int64
	told func(done int64)
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	p.done += int64(n)
	p.told(p.done)
	return n, err
}
