package fetch

import (
	"context"
	"crypto/sha1" // as git names its blobs
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tally-network/tally/internal/bounded"
)

// Expected is what a source says of a file.
type Expected struct {
	Bytes  int64  // -1 if it is not said
	SHA256 string // or ""
	Blob   string // SHA-1 of git's blob, or ""
}

// Wanted is a file to download.
type Wanted struct {
	Expected
	URL         string
	To          string
	Limit       int64  // bytes that are taken
	VersionFile string // remembers which version of the address was begun; "" if a digest tells that
	Progress    func(done, total int64)
}

// String names a file in messages, without what lets its reader in.
func (w Wanted) String() string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return filepath.Base(w.To)
	}
	return Redact(u)
}

// ErrDiffers says that a whole file is not what its source promises.
var ErrDiffers = errors.New("is not what the source promises")

// errAgain says that a file has to be fetched from its beginning.
var errAgain = errors.New("the server sends another part than was asked for")

// errSlow says that a server keeps whoever asks waiting.
var errSlow = errors.New("the server sends next to nothing: try again later, which goes on from here")

// Download fetches a file, going on from what there is of it, and returns its SHA-256. What it has got before an error stays
// for the next time, unless it is known to be wrong.
func (n *Network) Download(ctx context.Context, w Wanted) (string, error) {
	pause, idle, again := n.Pause, 0, false
	most := SizeOf(w.To) // that there ever was of it
	for {
		had := SizeOf(w.To)
		sum, err := n.attempt(ctx, w)
		switch {
		case err == nil || ctx.Err() != nil:
			return sum, err
		case errors.Is(err, ErrDiffers) || errors.Is(err, errAgain):
			if err := os.Remove(w.To); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
		if idle++; SizeOf(w.To)-max(most, 0) >= n.MinBytes { // less, or the same again, would take for ever
			idle, most = 0, SizeOf(w.To)
		}
		if idle >= n.Tries {
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
	if errors.Is(err, ErrInside) {
		return false
	}
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errSlow) || isNetwork(err)
}

// SizeOf returns the size of a file, −1 if there is none.
func SizeOf(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return -1
	}
	return info.Size()
}

// attempt is one request for what is missing.
func (n *Network) attempt(ctx context.Context, w Wanted) (_ string, err error) {
	if err := os.MkdirAll(filepath.Dir(w.To), 0o700); err != nil {
		return "", err
	}
	f, err := os.OpenFile(w.To, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := newSummer(w.Expected)
	have, err := io.Copy(sum, Reader(ctx, f))
	if err != nil {
		return "", err
	}
	version := w.version()
	switch {
	case have > 0 && w.SHA256 == "" && version == "", w.Bytes >= 0 && have > w.Bytes:
		have = 0
	case w.SHA256 != "" && have > 0 && have == w.Bytes:
		if err := sum.check(w.To); err == nil {
			return sum.hex(), nil
		}
		have = 0
	}
	header := http.Header{"Accept-Encoding": {"identity"}} // ranges are of the file itself
	if have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if version != "" {
			header.Set("If-Range", version)
		}
	}
	ctx, heard, stop := n.Watch(ctx, have)
	defer stop()
	answer, err := n.Do(ctx, http.MethodGet, w.URL, header, http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable)
	if err != nil {
		return "", errors.Join(err, context.Cause(ctx))
	}
	defer answer.Body.Close()
	return w.take(f, sum, have, answer, heard, func() error { return context.Cause(ctx) })
}

// Watch returns a context that ends when a server sends less than MinBytes in an IdleTimeout. It is told how many bytes there are, of which
// some were there before.
func (n *Network) Watch(ctx context.Context, have int64) (_ context.Context, heard func(done int64), stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	alarm := time.AfterFunc(n.IdleTimeout, func() { cancel(errSlow) })
	heard = func(done int64) {
		if done-have >= n.MinBytes {
			have = done
			alarm.Reset(n.IdleTimeout)
		}
	}
	return ctx, heard, func() { alarm.Stop(); cancel(nil) }
}

// take writes what a server sends behind what there is.
func (w Wanted) take(f *os.File, sum *summer, have int64, answer *http.Response, heard func(done int64), cause func() error) (string, error) {
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
		*sum = *newSummer(w.Expected)
	}
	if _, err := f.Seek(have, io.SeekStart); err != nil {
		return "", err
	}
	total := int64(-1)
	if answer.ContentLength >= 0 {
		total = have + answer.ContentLength
	}
	switch {
	case total >= 0 && w.Bytes >= 0 && total != w.Bytes:
		return "", fmt.Errorf("%s has %d bytes, and %w: %d", w, total, ErrDiffers, w.Bytes)
	case total > w.Limit:
		return "", w.tooLarge(total)
	case total < 0:
		total = w.Bytes
	}
	body := Counting(answer.Body, have, func(done int64) {
		heard(done)
		if w.Progress != nil {
			w.Progress(done, total)
		}
	})
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(body, w.Limit-have+1))
	switch {
	case err != nil:
		return "", errors.Join(err, cause())
	case have+n > w.Limit:
		return "", errors.Join(w.tooLarge(-1), f.Truncate(0))
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	return sum.hex(), sum.check(w.String())
}

// ErrTooLarge says that a file has more bytes than are taken.
var ErrTooLarge = errors.New("there is room for")

func (w Wanted) tooLarge(bytes int64) error {
	if bytes < 0 {
		return fmt.Errorf("%s has more bytes than %w %d: make room, or choose a smaller one", w, ErrTooLarge, w.Limit)
	}
	return fmt.Errorf("%s has %d bytes, and %w %d: make room, or choose a smaller one", w, bytes, ErrTooLarge, w.Limit)
}

// version returns which one of an address was begun.
func (w Wanted) version() string {
	if w.VersionFile == "" {
		return ""
	}
	b, err := bounded.ReadFile(w.VersionFile, 1<<12)
	if err != nil {
		return "" // it is fetched from its beginning
	}
	return string(b)
}

// remember notes which version of an address is begun, if it can be asked for again.
func (w Wanted) remember(answer *http.Response) error {
	if w.VersionFile == "" {
		return nil
	}
	return os.WriteFile(w.VersionFile, []byte(VersionOf(answer)), 0o600)
}

// VersionOf names the version of what an answer holds, or is "" if the server does not. A weak tag says nothing of bytes.
func VersionOf(answer *http.Response) string {
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
	Expected
	sha  hash.Hash
	blob hash.Hash // nil if it is not asked for
	n    int64
}

func newSummer(e Expected) *summer {
	s := &summer{Expected: e, sha: sha256.New()}
	if e.Blob != "" && e.Bytes >= 0 {
		s.blob = sha1.New()
		fmt.Fprintf(s.blob, "blob %d\x00", e.Bytes)
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

func hexOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// IsSHA256 reports whether a text is a digest.
func IsSHA256(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && strings.ToLower(s) == s
}

// check returns an error unless what was written is what was expected.
func (s *summer) check(what string) error {
	switch {
	case s.Bytes >= 0 && s.n != s.Bytes:
		return fmt.Errorf("%s has %d bytes, and %w: %d", what, s.n, ErrDiffers, s.Bytes)
	case s.SHA256 != "" && s.hex() != s.SHA256:
		return fmt.Errorf("%s has SHA-256 %s, and %w: %s", what, s.hex(), ErrDiffers, s.SHA256)
	case s.blob != nil && hexOf(s.blob) != s.Expected.Blob:
		return fmt.Errorf("%s is git's blob %s, and %w: %s", what, hexOf(s.blob), ErrDiffers, s.Expected.Blob)
	}
	return nil
}

// Reader reads until a context ends.
func Reader(ctx context.Context, from io.Reader) io.Reader { return reader{ctx, from} }

type reader struct {
	ctx  context.Context
	from io.Reader
}

// Read implements io.Reader.
func (r reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(b)
}

// Counting reports how far something has been read, what was read before counted too.
func Counting(from io.Reader, before int64, report func(done int64)) io.Reader {
	return &counting{from, before, report}
}

type counting struct {
	from   io.Reader
	done   int64
	report func(done int64)
}

// Read implements io.Reader.
func (c *counting) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.done += int64(n)
	c.report(c.done)
	return n, err
}

// isNetwork reports whether an error is of a connection, and not of what was asked.
func isNetwork(err error) bool {
	if disk := (*fs.PathError)(nil); errors.As(err, &disk) {
		return false
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	var n net.Error
	return errors.As(err, &n)
}
