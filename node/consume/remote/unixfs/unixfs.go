// Package unixfs reads files and folders of IPFS from blocks that nobody has to be trusted for.
//
// Make a [Reader] with what gets a block. [Reader.Open] finds a file or a folder, [Entry.Names] lists a folder, and [Reader.Copy]
// writes a file.
//
// Invariants: every block has the hash that its CID names; the sizes that a node states are those of what lies below it. So a
// file takes as many bytes as its root says and no more, and each block brings at least one of them.
//
// Source: UnixFS and DAG-PB, specs.ipfs.tech, as of 2026.
package unixfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// MaxBlock bounds a block in bytes, as peers of IPFS do.
	MaxBlock = 2 << 20
	maxDepth = 32
)

// Reader reads what blocks hold.
type Reader struct {
	Get func(ctx context.Context, c cid.Cid) ([]byte, error) // a block, which is checked here
}

// Types of nodes.
const (
	typeRaw, typeFolder, typeFile = 0, 1, 2
	typeShardedFolder             = 5
)

// link names a block below another.
type link struct {
	name string
	cid  cid.Cid
	size int64 // of the part of a file that lies there; of entries of folders, 0
}

// Entry is a file or a folder.
type Entry struct {
	Bytes  int64 // of a file
	Folder bool
	cid    cid.Cid
	data   []byte
	links  []link
}

// Parse reads a CID whose hash can be checked.
func Parse(text string) (cid.Cid, error) {
	c, err := cid.Decode(text)
	if err != nil {
		return c, fmt.Errorf("%.80q is no CID: it begins with Qm or baf", text)
	}
	p := c.Prefix()
	if p.MhType != multihash.SHA2_256 || p.MhLength != 32 || p.Codec != cid.Raw && p.Codec != cid.DagProtobuf {
		return c, fmt.Errorf("%.80q is of another kind than files of IPFS with SHA-256 have: add the file again, by ipfs add", text)
	}
	return c, nil
}

// Open returns what stands under a CID, or below it by the names of a path.
func (r *Reader) Open(ctx context.Context, c cid.Cid, path string) (*Entry, error) {
	e, err := r.open(ctx, c)
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name == "" {
			continue
		}
		if e, err = r.Child(ctx, e, name); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Child returns what has a name in a folder.
func (r *Reader) Child(ctx context.Context, e *Entry, name string) (*Entry, error) {
	for i := range e.links {
		if e.Folder && e.links[i].name == name {
			return r.open(ctx, e.links[i].cid)
		}
	}
	names := e.Names()
	return nil, fmt.Errorf("there is no %.80q in it, but %d files, such as %.80q", name, len(names), names[:min(len(names), 4)])
}

// CID returns what names the entry.
func (e *Entry) CID() cid.Cid { return e.cid }

// Names lists a folder.
func (e *Entry) Names() (all []string) {
	for _, l := range e.links {
		if e.Folder {
			all = append(all, l.name)
		}
	}
	return all
}

// open reads one node.
func (r *Reader) open(ctx context.Context, c cid.Cid) (*Entry, error) {
	b, err := r.Get(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(b) > MaxBlock {
		return nil, fmt.Errorf("block %v has %d bytes, limit %d", c, len(b), MaxBlock)
	}
	if is, err := c.Prefix().Sum(b); err != nil || !is.Equals(c) {
		return nil, fmt.Errorf("block %v has another hash: the gateway is not to be trusted, so name another", c)
	}
	e := &Entry{cid: c, data: b, Bytes: int64(len(b))}
	if c.Prefix().Codec == cid.DagProtobuf {
		if e, err = parse(b); err != nil {
			return nil, fmt.Errorf("block %v: %w", c, err)
		}
		e.cid = c
	}
	return e, nil
}

// errNode says that a block holds something else.
var errNode = errors.New("it is no node of UnixFS")

// fields calls put for each field of a message: with its number, and the bytes or the number that it holds.
func fields(b []byte, put func(n protowire.Number, text []byte, v uint64) error) error {
	for len(b) > 0 {
		n, typ, size := protowire.ConsumeTag(b)
		if size < 0 {
			return errNode
		}
		b = b[size:]
		var text []byte
		var v uint64
		switch typ {
		case protowire.BytesType:
			text, size = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			v, size = protowire.ConsumeVarint(b)
		default:
			return errNode
		}
		if size < 0 {
			return errNode
		}
		b = b[size:]
		if err := put(n, text, v); err != nil {
			return err
		}
	}
	return nil
}

// parse reads a node of DAG-PB with UnixFS in it.
func parse(b []byte) (*Entry, error) {
	e := &Entry{}
	var inner []byte
	err := fields(b, func(n protowire.Number, text []byte, _ uint64) error {
		switch n {
		case 1:
			inner = text
		case 2:
			l, err := parseLink(text)
			e.links = append(e.links, l)
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	typ, total := uint64(1<<32), int64(-1)
	var sizes []uint64
	err = fields(inner, func(n protowire.Number, text []byte, v uint64) error {
		switch n {
		case 1:
			typ = v
		case 2:
			e.data = text
		case 3:
			if total = int64(v); total < 0 {
				return errNode
			}
		case 4:
			if text == nil {
				sizes = append(sizes, v)
			}
			for len(text) > 0 { // packed
				v, size := protowire.ConsumeVarint(text)
				if size < 0 {
					return errNode
				}
				sizes, text = append(sizes, v), text[size:]
				if len(sizes) > len(e.links)+1 {
					return errNode
				}
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case typ == typeFolder:
		e.Folder = true
		return e, nil
	case typ == typeShardedFolder:
		return nil, errors.New("it is a folder of so many files that it lies in parts: name a file by its own CID")
	case typ != typeFile && typ != typeRaw:
		return nil, fmt.Errorf("%w: neither a file nor a folder", errNode)
	}
	return e, e.enter(sizes, total)
}

// enter gives the links of a file their sizes, which make up the total.
func (e *Entry) enter(sizes []uint64, total int64) error {
	if len(sizes) != len(e.links) {
		return fmt.Errorf("%w: it has %d sizes of %d parts", errNode, len(sizes), len(e.links))
	}
	e.Bytes = int64(len(e.data))
	for i, size := range sizes {
		if size == 0 || size > 1<<50 || e.Bytes > 1<<50 {
			return fmt.Errorf("%w: a part has %d bytes", errNode, size)
		}
		e.links[i].size = int64(size)
		e.Bytes += int64(size)
	}
	if total >= 0 && total != e.Bytes {
		return fmt.Errorf("%w: %d bytes are %d of its parts", errNode, total, e.Bytes)
	}
	return nil
}

func parseLink(b []byte) (l link, err error) {
	err = fields(b, func(n protowire.Number, text []byte, _ uint64) error {
		switch n {
		case 1:
			c, err := cid.Cast(text)
			if err != nil {
				return errNode
			}
			l.cid, err = Parse(c.String())
			return err
		case 2:
			l.name = string(text)
		}
		return nil
	})
	if err == nil && !l.cid.Defined() {
		err = errNode
	}
	return l, err
}

// Copy writes a file. What stands in to already, the first bytes of it, is not fetched again if it has the right hash.
// report hears how many bytes are there, after each block.
func (r *Reader) Copy(ctx context.Context, e *Entry, to io.ReadWriteSeeker, have int64, report func(done int64)) error {
	if e.Folder {
		return errors.New("it is a folder: name one of its files")
	}
	w := &copier{Reader: r, to: to, have: have, report: report}
	return w.entry(ctx, e, 0)
}

// copier writes a file from its first byte on.
type copier struct {
	*Reader
	to       io.ReadWriteSeeker
	at, have int64
	report   func(done int64)
}

// entry writes what lies in a node and below it.
func (w *copier) entry(ctx context.Context, e *Entry, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%w: it is more than %d deep", errNode, maxDepth)
	}
	if _, err := w.to.Seek(w.at, io.SeekStart); err != nil {
		return err
	}
	if _, err := w.to.Write(e.data); err != nil {
		return err
	}
	w.at += int64(len(e.data))
	w.report(w.at)
	for _, l := range e.links {
		if there, err := w.isThere(l); err != nil {
			return err
		} else if there {
			w.at += l.size
			continue
		}
		below, err := w.open(ctx, l.cid)
		if err != nil {
			return err
		}
		if below.Folder || below.Bytes != l.size {
			return fmt.Errorf("%w: a part has %d bytes, and %d were promised", errNode, below.Bytes, l.size)
		}
		if err := w.entry(ctx, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// isThere reports whether the bytes of a part stand in the file, as its last block has them.
func (w *copier) isThere(l link) (bool, error) {
	if w.at+l.size > w.have || l.size > MaxBlock {
		return false, nil
	}
	b := make([]byte, l.size)
	if _, err := w.to.Seek(w.at, io.SeekStart); err != nil {
		return false, err
	}
	if _, err := io.ReadFull(w.to, b); err != nil {
		return false, err
	}
	forms := [][]byte{b}
	if l.cid.Prefix().Codec == cid.DagProtobuf {
		forms = [][]byte{leaf(typeFile, b), leaf(typeRaw, b)}
	}
	for _, form := range forms {
		if c, err := l.cid.Prefix().Sum(form); err == nil && bytes.Equal(c.Bytes(), l.cid.Bytes()) {
			return true, nil
		}
	}
	return false, nil
}

// leaf returns the block of UnixFS that holds some bytes alone.
func leaf(typ uint64, data []byte) []byte {
	inner := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), typ)
	inner = protowire.AppendBytes(protowire.AppendTag(inner, 2, protowire.BytesType), data)
	inner = protowire.AppendVarint(protowire.AppendTag(inner, 3, protowire.VarintType), uint64(len(data)))
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), inner)
}
