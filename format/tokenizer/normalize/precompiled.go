package normalize

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// maxCharsmap bounds the bytes of a character map. That of sentencepiece's rule nmt_nfkc has 240,007.
const maxCharsmap = 4 << 20

// Precompiled replaces characters, and short clusters of them, by a map that sentencepiece has
// compiled: a trie in a double array, and the texts that its values point to.
//
// What a cluster starts with decides. If that is in the map, the whole cluster becomes
// what the map says, with its marks; so does the reference.
type Precompiled struct {
	units []uint32
	texts []byte
}

// NewPrecompiled reads a character map.
func NewPrecompiled(charsmap []byte) (*Precompiled, error) {
	if len(charsmap) > maxCharsmap || len(charsmap) < 8 {
		return nil, fmt.Errorf("a character map of %d bytes, want 8 to %d", len(charsmap), maxCharsmap)
	}
	n := uint64(binary.LittleEndian.Uint32(charsmap))
	if n%4 != 0 || n < 4 || n > uint64(len(charsmap)-4) {
		return nil, fmt.Errorf("a character map of %d bytes with a trie of %d", len(charsmap), n)
	}
	p := &Precompiled{units: make([]uint32, n/4), texts: charsmap[4+n:]}
	for i := range p.units {
		p.units[i] = binary.LittleEndian.Uint32(charsmap[4+4*i:])
	}
	if !utf8.Valid(p.texts) {
		return nil, errors.New("the texts of a character map are not UTF-8")
	}
	return p, nil
}

// offset returns how far a unit's children are.
func offset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

// lookup returns what the map says of the shortest beginning of a text that is in it.
func (p *Precompiled) lookup(text string) (string, bool) {
	at := offset(p.units[0])
	for i := 0; i < len(text) && text[i] != 0; i++ {
		at ^= uint32(text[i])
		if uint64(at) >= uint64(len(p.units)) {
			return "", false
		}
		unit := p.units[at]
		if unit&(1<<31|0xff) != uint32(text[i]) {
			return "", false
		}
		if at ^= offset(unit); uint64(at) >= uint64(len(p.units)) {
			return "", false
		}
		if unit>>8&1 == 1 {
			return p.text(p.units[at] & (1<<31 - 1))
		}
	}
	return "", false
}

// text returns the text at a place, which ends before a zero.
func (p *Precompiled) text(at uint32) (string, bool) {
	if uint64(at) > uint64(len(p.texts)) {
		return "", false
	}
	text := p.texts[at:]
	end := bytes.IndexByte(text, 0)
	if end < 0 {
		end = len(text)
	}
	return string(text[:end]), utf8.Valid(text[:end])
}

// marks are code points that are marks since Unicode 16 and 17, first and last: the reference
// knows them, and package uniseg does not yet.
var marks = [...][2]rune{
	{0x897, 0x897}, {0x1acf, 0x1add}, {0x1ae0, 0x1aeb}, {0x10d69, 0x10d6d}, {0x10efa, 0x10efc}, {0x113b8, 0x113c0}, {0x113c2, 0x113c2}, {0x113c5, 0x113c5},
	{0x113c7, 0x113ca}, {0x113cc, 0x113d0}, {0x113d2, 0x113d2}, {0x113e1, 0x113e2}, {0x11b60, 0x11b67}, {0x11f5a, 0x11f5a}, {0x1611e, 0x1612f},
	{0x1e5ee, 0x1e5ef}, {0x1e6e3, 0x1e6e3}, {0x1e6e6, 0x1e6e6}, {0x1e6ee, 0x1e6ef}, {0x1e6f5, 0x1e6f5},
}

func isNewMark(r rune) bool {
	for _, m := range marks {
		if m[0] <= r && r <= m[1] {
			return true
		}
	}
	return false
}

// cluster returns the length of the extended grapheme cluster that a text starts with.
func cluster(text string) int {
	n := firstCluster(text)
	for n < len(text) {
		r, size := utf8.DecodeRuneInString(text[n:])
		if !isNewMark(r) || firstCluster(text[:n]+"\u0300") == n { // nothing joins a control character
			break
		}
		n += size
		if n < len(text) { // what joins any mark joins a known one
			n += firstCluster("\u0300"+text[n:min(n+64, len(text))]) - len("\u0300")
		}
	}
	return n
}

func firstCluster(text string) int {
	c, _, _, _ := uniseg.FirstGraphemeClusterInString(text, -1)
	return len(c)
}

// shortCluster is more bytes than a cluster has that is looked up as a whole.
const shortCluster = 6

// Normalize replaces what is in the map.
func (p *Precompiled) Normalize(text string) (string, error) {
	var b strings.Builder
	b.Grow(len(text))
	for text != "" {
		n := 1
		if text[0] >= utf8.RuneSelf || text[0] == '\r' || len(text) > 1 && text[1] >= utf8.RuneSelf {
			n = cluster(text)
		}
		whole := text[:n]
		text = text[n:]
		if b.Len() > maxText {
			return "", fmt.Errorf("precompiled map: the text becomes longer than %d bytes", maxText)
		}
		if n < shortCluster {
			if out, ok := p.lookup(whole); ok {
				b.WriteString(out)
				continue
			}
		}
		for _, r := range whole {
			if out, ok := p.lookup(string(r)); ok {
				b.WriteString(out)
			} else {
				b.WriteRune(r)
			}
		}
	}
	return b.String(), nil
}
