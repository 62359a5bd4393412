// Package parquet reads tables from Parquet files: numbers, truth values, texts, lists of numbers of one shape, and chats.
//
// Call [Read]. Columns keep the types of their elements; fields of a struct are columns of their
// own, with a dot between the names. A list, or lists in a list, are an array. What holds lists of texts, as a chat does, is JSON, as
// package jsonlines has it. Times are whole numbers of their units. What else there is (maps, decimals, bytes) is refused by name.
//
// Pages are read one after another, in versions 1 and 2, in the encodings that programs write, compressed
// by Snappy, gzip or zstd, whose decoders are libraries. The format around them is read here, as a
// few hundred lines: of the libraries of the whole format, the lighter takes 18 seconds to compile,
// and both allocate what a page claims, up to 2 GiB.
//
// Invariants: every length is compared with what is there before anything is allocated. What
// repeats, as runs and dictionaries do, may claim more than there is: a table takes at most a thousand times
// its file and 64 MB, and no more than 16 GiB.
//
// Source: the Parquet format, version 2.11 (parquet.apache.org/docs/file-format).
package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/table"
)

const (
	deflation = 1032     // bytes that a table takes for each of its file, at most
	slack     = 64 << 20 // and beside these
	cost      = 16       // bytes that a value takes while it is read, its levels counted
)

// Read returns the table in the first size bytes of src, with columns in memory of alloc.
func Read(src io.ReaderAt, size int64, alloc tensor.Allocator) (*table.Table, error) {
	r := &reader{src: src, size: size, alloc: alloc, budget: min(slack+deflation*size, tensor.MaxBytes)}
	t, err := r.read()
	if err != nil {
		return nil, fmt.Errorf("read Parquet: %w", err)
	}
	return t, nil
}

// reader reads a file.
type reader struct {
	src    io.ReaderAt
	size   int64
	alloc  tensor.Allocator
	budget int64 // bytes that may still be allocated
	meta   *metadata
	pages  []byte // of a chunk, as the file has them
	room   []byte // for a page that was compressed
}

var errBudget = fmt.Errorf("the table takes more than %d times its file: write what repeats less often, or several files", deflation)

// spend takes n values of some bytes from the budget.
func (r *reader) spend(n, each int64) error {
	if n < 0 || n > r.budget/max(each, 1) {
		return errBudget
	}
	r.budget -= n * each
	return nil
}

func (r *reader) read() (*table.Table, error) {
	var err error
	if r.meta, err = readMetadata(r.src, r.size); err != nil {
		return nil, err
	}
	leaves, err := r.meta.leaves()
	if err != nil {
		return nil, err
	}
	rows, packed := int64(0), int64(0)
	for _, g := range r.meta.groups {
		if g.rows < 0 || g.rows > math.MaxInt32-rows || len(g.chunks) != len(leaves) {
			return nil, fmt.Errorf("a row group has %d rows, and %d of %d columns", g.rows, len(g.chunks), len(leaves))
		}
		rows += g.rows
		for i := range g.chunks {
			if packed += max(g.chunks[i].size, 0); packed > r.size {
				return nil, fmt.Errorf("its columns take more than the %d bytes of the file: they overlap", r.size)
			}
		}
	}
	if rows != r.meta.rows || rows == 0 {
		return nil, fmt.Errorf("there are %d rows in groups, %d in all: a table has some", rows, r.meta.rows)
	}
	var all []*table.Column
	for i := 0; i < len(leaves); i++ {
		if d := leaves[i].document; d != nil {
			c, err := r.document(d, leaves, i)
			if err != nil {
				return nil, fmt.Errorf("column %.40q: %w", d.name, err)
			}
			all = append(all, c)
			i += d.leaves - 1
			continue
		}
		c, err := r.column(&leaves[i], i)
		if err != nil {
			return nil, fmt.Errorf("column %.40q: %w", leaves[i].name, err)
		}
		all = append(all, c)
	}
	return table.New(all...)
}

// column is what is read of a column so far.
type column struct {
	*leaf
	r       *reader
	records int
	values  *tensor.Tensor // with room for all values
	n       int            // values so far
	texts   *table.TextBuilder
	missing []bool
	shape   shaper
	there   []bool           // of what is left of a page, which values are there; nil: all
	dict    []byte           // the words of a dictionary,
	words   table.Dictionary // or its texts
	sound   []bool           // of them, those that are known to be UTF-8
	hasDict bool
	nested  *stream // of a column that is part of a document; shape, texts and missing are not used then
}

// column reads a column.
func (r *reader) column(l *leaf, i int) (*table.Column, error) {
	c, err := r.values(l, i, nil)
	if err != nil {
		return nil, err
	}
	return c.table()
}

// values reads the values of a column.
func (r *reader) values(l *leaf, i int, nested *stream) (*column, error) {
	c, total := &column{leaf: l, r: r, records: int(r.meta.rows), shape: shaper{depth: l.rep}, nested: nested}, int64(0)
	for _, g := range r.meta.groups {
		n := g.chunks[i].values
		if n < g.rows || l.rep == 0 && n != g.rows { // an empty list has a value, too
			return nil, fmt.Errorf("%d values in %d rows", n, g.rows)
		}
		if err := r.spend(n, cost); err != nil {
			return nil, err
		}
		total += n
	}
	var err error
	if l.typ == 0 && nested == nil {
		c.texts = table.NewTextBuilder(0, int(total), 0, r.alloc)
	} else if l.typ == 0 {
	} else if c.values, err = r.alloc.New(l.typ, tensor.Shape{int(total)}); err != nil {
		return nil, err
	}
	for _, g := range r.meta.groups {
		if g.rows == 0 {
			continue
		}
		if err := c.chunk(g.chunks[i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// chunk reads the pages of a column in a row group.
func (c *column) chunk(k chunk) error {
	if k.outside || !k.any {
		return errors.New("its values lie in another file, or are encrypted: write one file without encryption")
	}
	start := k.data
	if k.dict > 0 && k.dict < start {
		start = k.dict
	}
	if start < 4 || k.size < 0 || start > c.r.size || k.size > c.r.size-start {
		return fmt.Errorf("its pages lie from byte %d on, %d bytes, in a file of %d", start, k.size, c.r.size)
	}
	if int64(cap(c.r.pages)) < k.size {
		c.r.pages = make([]byte, k.size)
	}
	b := c.r.pages[:k.size]
	if err := readAt(c.r.src, b, start); err != nil {
		return err
	}
	c.dict, c.words, c.sound, c.hasDict = nil, table.Dictionary{}, nil, false
	for left := k.values; left > 0; {
		t := &thrift{b: b}
		h := t.header()
		if t.err != nil {
			return t.err
		}
		if b = b[t.at:]; h.packed < 0 || h.packed > int64(len(b)) {
			return errPage
		}
		page := b[:h.packed]
		b = b[h.packed:]
		switch h.kind {
		case dictionaryPage:
			if err := c.dictionary(h, k.codec, page); err != nil {
				return err
			}
		case dataPage, dataPageV2:
			if left -= h.values; h.values < 1 || left < 0 || !h.hasLayout {
				return errMany
			}
			if err := c.page(h, k.codec, page); err != nil {
				return err
			}
		}
	}
	return nil
}

// dictionary reads the values that pages of a chunk name by number.
func (c *column) dictionary(h header, codec int64, b []byte) error {
	b, err := unpackPage(codec, b, h.size, new([]byte))
	if err != nil {
		return err
	}
	if h.encoding != plain && h.encoding != plainDictionary || c.hasDict || h.values < 0 || h.values > 8*int64(len(b)) {
		return errPage
	}
	c.hasDict = true
	if c.typ == 0 {
		err := texts(plain, b, int(h.values), func(text []byte) error {
			c.words.Words = append(c.words.Words, text)
			return c.r.spend(1, 32)
		})
		c.sound = make([]bool, len(c.words.Words))
		return err
	}
	if err := c.r.spend(h.values, 8); err != nil {
		return err
	}
	return c.numbers(plain, b, int(h.values), func(words []byte) error {
		c.dict = append(c.dict, words...)
		return nil
	})
}

// page reads the values of a page.
func (c *column) page(h header, codec int64, b []byte) error {
	var levels [2][]byte // repetition, definition
	var err error
	if h.kind == dataPageV2 {
		if h.repBytes < 0 || h.defBytes < 0 || h.repBytes > int64(len(b)) || h.defBytes > int64(len(b))-h.repBytes {
			return errPage
		}
		both := h.repBytes + h.defBytes
		levels[0], levels[1] = b[:h.repBytes], b[h.repBytes:both]
		if h.plain {
			codec = 0
		}
		if b = b[both:]; len(b) > 0 || h.size > both {
			if b, err = unpackPage(codec, b, h.size-both, &c.r.room); err != nil {
				return err
			}
		}
	} else {
		if b, err = unpackPage(codec, b, h.size, &c.r.room); err != nil {
			return err
		}
		for i, most := range []int{c.rep, c.def} {
			if most == 0 {
				continue
			}
			if len(b) < 4 || uint64(uint32le(b)) > uint64(len(b)-4) {
				return errPage
			}
			end := 4 + uint32le(b)
			levels[i], b = b[4:end], b[end:]
		}
	}
	present, err := c.levels(levels, int(h.values))
	if err != nil {
		return err
	}
	return c.fill(h.encoding, b, present)
}

func uint32le(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// levels reads which of n values are there, and counts them. Of a part of a document they are kept.
func (c *column) levels(levels [2][]byte, n int) (present int, err error) {
	if c.rep > 0 {
		err := hybrid(levels[0], levelWidth(c.rep), n, func(block []uint32) error {
			for _, v := range block {
				if int(v) > c.rep {
					return errPage
				}
				if c.nested != nil {
					c.nested.rep = append(c.nested.rep, uint8(v))
				} else {
					c.shape.add(int(v))
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	} else if c.nested != nil {
		c.nested.rep = append(c.nested.rep, make([]uint8, n)...)
	}
	if c.there = nil; c.def == 0 {
		if c.nested != nil {
			c.nested.def = append(c.nested.def, make([]uint8, n)...)
		}
		return n, nil
	}
	there := make([]bool, 0, n)
	err = hybrid(levels[1], levelWidth(c.def), n, func(block []uint32) error {
		for _, v := range block {
			if int(v) > c.def {
				return errPage
			}
			if c.nested != nil {
				c.nested.def = append(c.nested.def, uint8(v))
			}
			is := int(v) == c.def
			if there = append(there, is); is {
				present++
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return 0, err
	case c.nested != nil: // where there are none, its levels say
	case c.rep > 0 && present < n:
		return 0, errors.New("a list is missing or empty, or lacks a number: nothing stands for one, so take the record out")
	case present < n:
		c.there = there
	}
	return present, nil
}

// table returns the column that was read.
func (c *column) table() (*table.Column, error) {
	if c.texts != nil {
		return c.texts.Column(c.name)
	}
	if err := c.values.Canon(); err != nil {
		return nil, err
	}
	if c.rep > 0 {
		shape, err := c.shape.total(c.records)
		if err != nil {
			return nil, err
		}
		if c.values, err = c.values.Part(0, c.typ, shape); err != nil {
			return nil, err
		}
	}
	out, err := table.Of(c.name, c.values)
	if err == nil && c.missing != nil {
		out.Missing = c.missing
	}
	return out, err
}
