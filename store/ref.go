package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"

	"github.com/tally-network/tally/core/canon"
)

const (
	// BlockSize is the length in bytes of every block of a blob but the last.
	BlockSize = 1 << 20
	// MaxBlocks bounds the blocks of one blob, and so its index to 512 KiB.
	MaxBlocks = 1 << 14
	// MaxSize is the length in bytes of the longest blob: 16 GiB.
	MaxSize = MaxBlocks * BlockSize
)

// errLong says that a blob is too long.
var errLong = fmt.Errorf("longer than %d bytes, split it", int64(MaxSize))

// Ref names a blob. Up to BlockSize bytes, CID names the blob's only block;
// above, it names the index of its blocks. The zero Ref names nothing.
type Ref struct {
	CID  cid.Cid
	Size int64 // bytes of the blob, without its index
}

// digest is the SHA-256 of a block: the part of a CID that varies here.
type digest [sha256.Size]byte

// cidHead starts every CID of the store: version 1, raw, SHA2-256, 32 bytes.
const cidHead = "\x01\x55\x12\x20"

// CID returns the name of the block with digest d.
func (d digest) CID() cid.Cid {
	mh, err := multihash.Encode(d[:], multihash.SHA2_256)
	if err != nil {
		panic(err) // only for an unknown hash code
	}
	return cid.NewCidV1(cid.Raw, mh)
}

func digestOf(c cid.Cid) (d digest, err error) {
	tail, ok := strings.CutPrefix(c.KeyString(), cidHead)
	if !ok || len(tail) != len(d) {
		return d, fmt.Errorf("CID %.40q is not version 1, raw, SHA2-256", c.KeyString())
	}
	copy(d[:], tail)
	return d, nil
}

// NewRef makes a Ref of the SHA-256 of a blob's block or index, and its size.
func NewRef(sum [32]byte, size int64) (Ref, error) {
	r := Ref{digest(sum).CID(), size}
	_, err := r.digest()
	return r, err
}

// RefOf returns the Ref that Put would give the parts of a blob, one after the other.
func RefOf(parts ...[]byte) Ref {
	if len(parts) == 1 { // is not copied
		b, sums := parts[0], []digest(nil)
		for i := range blocks(int64(len(b))) {
			at := i * BlockSize
			sums = append(sums, sum(b[at:at+blockLen(int64(len(b)), i)]))
		}
		return blockList(int64(len(b)), sums).Ref
	}
	l, err := ListBlocks(Joined(parts))
	if err != nil {
		panic(err) // memory never fails
	}
	return l.Ref
}

// BlockList is how a blob is cut.
type BlockList struct {
	Ref    Ref
	Index  []byte // the block that CID names; nil if the blob has one block, which CID names
	Blocks []cid.Cid
}

// ListBlocks returns how Put would cut what r holds.
func ListBlocks(r io.Reader) (BlockList, error) {
	var sums []digest
	size, block := int64(0), make([]byte, BlockSize)
	for {
		n, err := io.ReadFull(r, block)
		if n > 0 && len(sums) == MaxBlocks {
			return BlockList{}, errLong
		}
		if n > 0 || size == 0 {
			sums, size = append(sums, sum(block[:n])), size+int64(n)
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return blockList(size, sums), nil
		case err != nil:
			return BlockList{}, err
		}
	}
}

func blockList(size int64, sums []digest) (l BlockList) {
	for _, d := range sums {
		l.Blocks = append(l.Blocks, d.CID())
	}
	if len(sums) == 1 {
		l.Ref = Ref{l.Blocks[0], size}
		return l
	}
	l.Index = encodeIndex(size, sums)
	l.Ref = Ref{digest(sha256.Sum256(l.Index)).CID(), size}
	return l
}

// BlockList returns how the blob of r is cut, from the block that r names. What does not belong to r is refused.
func (r Ref) BlockList(block []byte) (BlockList, error) {
	d, err := r.digest()
	if err != nil {
		return BlockList{}, err
	}
	if digest(sha256.Sum256(block)) != d {
		return BlockList{}, fmt.Errorf("%d bytes are not the block that %s names", len(block), r)
	}
	if !r.indexed() {
		if err := checkLen(block, r.Size, 0); err != nil {
			return BlockList{}, err
		}
		return blockList(r.Size, []digest{d}), nil
	}
	sums, err := decodeIndex(block, r.Size)
	if err != nil {
		return BlockList{}, err
	}
	return blockList(r.Size, sums), nil
}

// Sum returns the SHA-256 that the CID holds; it is zero if the Ref is invalid.
func (r Ref) Sum() [32]byte {
	d, _ := r.digest()
	return d
}

// digest checks r, which may come from anywhere, and returns its digest.
func (r Ref) digest() (digest, error) {
	if r.Size < 0 || r.Size > MaxSize {
		return digest{}, fmt.Errorf("blob of %d bytes: the size must be between 0 and %d", r.Size, int64(MaxSize))
	}
	return digestOf(r.CID)
}

// indexed reports whether the CID names an index.
func (r Ref) indexed() bool { return r.Size > BlockSize }

// blocks returns the number of blocks that size bytes make.
func blocks(size int64) int { return int(max(1, (size+BlockSize-1)/BlockSize)) }

// blockLen returns the length of block i of a blob of size bytes.
func blockLen(size int64, i int) int {
	return int(min(BlockSize, size-int64(i)*BlockSize))
}

// String returns the CID, a dot and the size.
func (r Ref) String() string { return r.CID.String() + "." + strconv.FormatInt(r.Size, 10) }

// ParseRef reads what String wrote, in that spelling only.
func ParseRef(s string) (Ref, error) {
	const longest = 80 // 59 of CID, a dot, and the digits of MaxSize
	name, size, _ := strings.Cut(s, ".")
	if len(s) > longest {
		return Ref{}, fmt.Errorf("blob reference %.20q… has %d characters", s, len(s))
	}
	c, err := cid.Decode(name)
	if err != nil {
		return Ref{}, fmt.Errorf("blob reference %q: %w", s, err)
	}
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		return Ref{}, fmt.Errorf("blob reference %q: give the size after a dot", s)
	}
	r := Ref{c, n}
	if _, err := r.digest(); err != nil {
		return Ref{}, fmt.Errorf("blob reference %q: %w", s, err)
	}
	if r.String() != s {
		return Ref{}, fmt.Errorf("blob reference %q: write it as %q", s, r)
	}
	return r, nil
}

// MarshalText implements encoding.TextMarshaler.
func (r Ref) MarshalText() ([]byte, error) {
	if _, err := r.digest(); err != nil {
		return nil, err
	}
	return []byte(r.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Ref) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRef(string(text))
	return err
}

// encodeIndex returns the index block of a blob of size bytes.
func encodeIndex(size int64, sums []digest) []byte {
	return canon.Encode(func(e *canon.Encoder) {
		e.String(string(canon.DomainBlob))
		e.Uint(uint64(size))
		canon.List(e, sums, func(e *canon.Encoder, d digest) { e.Raw(d[:]) })
	})
}

// decodeIndex reads the index block of a blob of size bytes.
func decodeIndex(b []byte, size int64) ([]digest, error) {
	var sums []digest
	err := canon.Decode(b, func(d *canon.Decoder) {
		if d.String(len(canon.DomainBlob)) != string(canon.DomainBlob) {
			d.Fail("not a blob index")
		}
		if n := int64(d.Uint(MaxSize)); n != size || n <= BlockSize {
			d.Fail("index is of %d bytes, the reference says %d", n, size)
		}
		sums = canon.ReadList(d, MaxBlocks, len(digest{}), func(d *canon.Decoder) (sum digest) {
			copy(sum[:], d.Raw(len(sum)))
			return sum
		})
		if len(sums) != blocks(size) {
			d.Fail("%d blocks for %d bytes", len(sums), size)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read blob index: %w", err)
	}
	return sums, nil
}
