package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ipfs/go-cid"

	"github.com/tally-network/tally/format/source"
	"github.com/tally-network/tally/internal/fetch"
	"github.com/tally-network/tally/node/consume/remote/unixfs"
)

const (
	ipfsScheme = "ipfs:"

	// defaultGateway gives blocks to everybody; what it gives is checked.
	defaultGateway = "https://trustless-gateway.link"
)

// fromIPFS finds the files below a CID.
func (c *Cache) fromIPFS(ctx context.Context, net *fetch.Network, from string) (*found, error) {
	rest, filename, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(from, ipfsScheme), "//"), "?filename=")
	text, below, _ := strings.Cut(rest, "/")
	root, err := unixfs.Parse(text)
	if err != nil {
		return nil, err
	}
	if filename, err = url.QueryUnescape(filename); err != nil {
		return nil, fmt.Errorf("its filename is %.80q: %w", filename, err)
	}
	limit, err := limitOf(c.env(limitName))
	if err != nil {
		return nil, err
	}
	gateway := strings.TrimRight(cmp.Or(c.env("IPFS_GATEWAY"), defaultGateway), "/")
	if !c.isTrusted(from) {
		gateway = fetch.WithoutUser(gateway)
	}
	p := &found{net: net.Anonymous().Naming(gateway), key: from, pinned: from}
	r := &unixfs.Reader{Get: func(ctx context.Context, c cid.Cid) ([]byte, error) { return p.block(ctx, gateway, c) }}
	pattern := ""
	if source.HasGlob(path.Base(below)) {
		below, pattern = path.Split(below)
	}
	e, err := r.Open(ctx, root, below)
	if err != nil {
		return nil, err
	}
	if !e.Folder {
		return p, p.add(r, e, cmp.Or(filename, path.Base(cmp.Or(below, text))), filename == "" && below == "")
	}
	names, err := source.Select(e.Names(), pattern)
	if err != nil {
		return nil, err
	}
	if len(names) > maxFiles {
		return nil, tooMany(len(names)) // before each is asked for
	}
	for i, name := range names {
		if i > 0 && slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("two of its files are called %.80q", name)
		}
		file, err := r.Child(ctx, e, name)
		if err != nil {
			return nil, err
		}
		if len(names) > 1 {
			name = shardName(i, name)
		}
		if err := p.add(r, file, name, false); err != nil {
			return nil, err
		}
		if size := p.size(); size > limit {
			return nil, tooLarge(-1, limit)
		}
	}
	return p, nil
}

// add adds a file, which has to have a name.
func (p *found) add(r *unixfs.Reader, e *unixfs.Entry, name string, nameless bool) error {
	switch {
	case nameless:
		return fmt.Errorf("%.80q says nothing of its format: append ?filename= and a name, as in ?filename=data.csv", name)
	case !isName(name):
		return fmt.Errorf("%.80q is no name of a file", name)
	case e.Folder:
		return fmt.Errorf("%.80q is a folder", name)
	}
	root := e.CID() // what is in it is read again: many files may be named before one is fetched
	p.files = append(p.files, location{Expected: fetch.Expected{Bytes: e.Bytes}, name: name, copy: func(ctx context.Context, to *os.File, have int64, report func(done int64)) error {
		e, err := r.Open(ctx, root, "")
		if err != nil {
			return err
		}
		return r.Copy(ctx, e, to, have, report)
	}})
	return nil
}

// block asks a gateway for a block.
func (p *found) block(ctx context.Context, gateway string, c cid.Cid) (b []byte, err error) {
	for try := range p.net.Tries {
		var page *fetch.Page
		if page, err = p.net.Read(ctx, gateway+"/ipfs/"+c.String()+"?format=raw", "application/vnd.ipld.raw"); err == nil {
			return page.Body, nil
		}
		if ctx.Err() != nil || fetch.IsHidden(err) || errors.Is(err, fetch.ErrInside) {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(p.net.Pause << try):
		}
	}
	return nil, errors.Join(err, context.Cause(ctx))
}

// copy writes a file that is no download, and returns its SHA-256.
func (p *found) copy(ctx context.Context, file *location, w fetch.Wanted) (sum string, err error) {
	if err := os.MkdirAll(filepath.Dir(w.To), 0o700); err != nil {
		return "", err
	}
	f, err := os.OpenFile(w.To, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	have := fetch.SizeOf(w.To)
	ctx, heard, stop := p.net.Watch(ctx, 0)
	defer stop()
	err = file.copy(ctx, f, have, func(done int64) {
		heard(done)
		if w.Progress != nil {
			w.Progress(done, file.Bytes)
		}
	})
	if err != nil {
		return "", err
	}
	if err := errors.Join(f.Truncate(file.Bytes), f.Sync()); err != nil {
		return "", err
	}
	h := sha256.New()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if n, err := io.Copy(h, fetch.Reader(ctx, f)); err != nil || n != file.Bytes {
		return "", errors.Join(err, fmt.Errorf("%d bytes of %d are there", n, file.Bytes))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
