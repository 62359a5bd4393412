// Package parquet reads tables from Parquet files: numbers, truth values, texts, and lists of numbers of one shape.
//
// Call [Read]. Columns keep the types of their elements; fields of a struct are columns of their
// own, with a dot between the names. A list, or lists in a list, are an array. Times are whole
// numbers of their units. What else there is (maps, decimals, bytes) is refused by name.
//
// Pages are read one after another, in versions 1 and 2, in the encodings that programs write, compressed
// by Snappy, gzip or zstd, whose decoders are libraries. The format around them is read here, as a
// few hundred lines: of the libraries of the whole format, the lighter takes 18 seconds to compile,
// and both allocate what a page claims, up to 2 GiB.
//
// Invariants: every length is compared with what is there before anything is allocated. What
// repeats, as runs and dictionaries do, may claim more than there is: a table takes at most a thousand times
// its file, and 64 MB.
//
// Source: the Parquet format, version 2.11 (parquet.apache.org/docs/file-format).
package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/table"
)

const (
	deflation = 1032     // bytes that a table takes for each of its file, at most
	slack     = 64 << 20 // and beside these
	cost      = 16       // bytes that a value takes while it is read, its levels counted
)

// Read returns the table in the first size bytes of src.
func Read(src io.ReaderAt, size int64) (*table.Table, error) {
	r := &reader{src: src, size: size, budget: slack + deflation*size}
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
	budget int64 // bytes that may still be allocated
	meta   *metadata
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
	rows := int64(0)
	for _, g := range r.meta.groups {
		if g.rows < 0 || g.rows > math.MaxInt32-rows || len(g.chunks) != len(leaves) {
			return nil, fmt.Errorf("a row group has %d rows, and %d of %d columns", g.rows, len(g.chunks), len(leaves))
		}
		rows += g.rows
	}
	if rows != r.meta.rows || rows == 0 {
		return nil, fmt.Errorf("there are %d rows in groups, %d in all: a table has some", rows, r.meta.rows)
	}
	var all []*table.Column
	for i := range leaves {
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
	dict    []uint64 // the words of a dictionary,
	words   [][]byte // or its texts
	hasDict bool
}

// column reads a column.
func (r *reader) column(l *leaf, i int) (*table.Column, error) {
	if l.rep > 0 && l.typ == 0 {
		return nil, errors.New("it holds lists of texts: write each as a column")
	}
	c, total := &column{leaf: l, r: r, records: int(r.meta.rows), shape: shaper{depth: l.rep}}, int64(0)
	for _, g := range r.meta.groups {
		n := g.chunks[i].values
		if l.rep == 0 && n != g.rows {
			return nil, fmt.Errorf("%d values in %d rows", n, g.rows)
		}
		if err := r.spend(n, cost); err != nil {
			return nil, err
		}
		total += n
	}
	var err error
	if l.typ == 0 {
		c.texts = table.NewTextBuilder(0, int(total), 0)
	} else if c.values, err = tensor.New(l.typ, tensor.Shape{int(total)}); err != nil {
		return nil, err
	}
	for _, g := range r.meta.groups {
		if err := c.chunk(g.chunks[i]); err != nil {
			return nil, err
		}
	}
	return c.table()
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
	b := make([]byte, k.size)
	if err := readAt(c.r.src, b, start); err != nil {
		return err
	}
	c.dict, c.words, c.hasDict = nil, nil, false
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
	b, err := unpackPage(codec, b, h.size)
	if err != nil {
		return err
	}
	if h.encoding != plain && h.encoding != plainDictionary || c.hasDict || h.values < 0 || h.values > 8*int64(len(b)) {
		return errPage
	}
	c.hasDict = true
	if c.typ == 0 {
		return texts(plain, b, int(h.values), func(text []byte) error {
			c.words = append(c.words, text)
			return c.r.spend(1, 24)
		})
	}
	return c.numbers(plain, b, int(h.values), func(w uint64) error {
		c.dict = append(c.dict, w)
		return c.r.spend(1, 8)
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
			if b, err = unpackPage(codec, b, h.size-both); err != nil {
				return err
			}
		}
	} else {
		if b, err = unpackPage(codec, b, h.size); err != nil {
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
	n := int(h.values)
	there := make([]bool, n)
	present, err := c.levels(levels, there)
	if err != nil {
		return err
	}
	return c.fill(h.encoding, b, there, present)
}

func uint32le(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// levels reads which values are there, and counts them.
func (c *column) levels(levels [2][]byte, there []bool) (present int, err error) {
	if c.rep > 0 {
		if err := hybrid(levels[0], levelWidth(c.rep), len(there), func(v uint32) { c.shape.add(int(v)) }); err != nil {
			return 0, err
		}
	}
	i := 0
	put := func(v uint32) {
		if there[i] = int(v) == c.def; there[i] {
			present++
		}
		i++
	}
	if c.def == 0 {
		for range there {
			put(0)
		}
		return present, nil
	}
	if err := hybrid(levels[1], levelWidth(c.def), len(there), put); err != nil {
		return 0, err
	}
	if c.rep > 0 && present < len(there) {
		return 0, errors.New("a list is missing or empty, or lacks a number: nothing stands for one, so take the record out")
	}
	return present, nil
}

// fill adds the values of a page, and where there are none.
func (c *column) fill(encoding int64, b []byte, there []bool, present int) error {
	i := 0
	lacking := func() error { // passes records without a value
		for ; i < len(there) && !there[i]; i++ {
			if c.texts != nil {
				if err := c.texts.AppendMissing(); err != nil {
					return err
				}
				continue
			}
			if c.missing == nil {
				c.missing = make([]bool, c.records)
			}
			c.missing[c.n] = true
			if c.typ.Float() {
				c.values.Set(c.n, tensor.FloatWord(c.typ, math.NaN()))
			}
			c.n++
		}
		return nil
	}
	text := func(text []byte) error {
		if err := errors.Join(lacking(), c.r.spend(1, int64(len(text)))); err != nil {
			return err
		}
		if i++; !utf8.Valid(text) {
			return errors.New("it holds bytes that are no text in UTF-8: write it as numbers or texts, or without it")
		}
		return c.texts.Append(text)
	}
	number := func(w uint64) error {
		if err := lacking(); err != nil {
			return err
		}
		i++
		if wrapped := narrow(c.typ, w); c.typ.Integer() && c.typ.Size() < c.width && wrapped != w&(1<<(8*c.width)-1) {
			return fmt.Errorf("a value lies outside %v", c.typ)
		}
		c.values.Set(c.n, w)
		c.n++
		return nil
	}
	var err error
	switch {
	case present == 0:
	case encoding == plainDictionary || encoding == dictionary:
		err = c.indices(b, present, number, text)
	case c.typ == 0:
		err = texts(encoding, b, present, text)
	default:
		err = c.numbers(encoding, b, present, number)
	}
	return errors.Join(err, lacking())
}

// narrow returns a word as one of its physical type has it that a type of fewer bits holds.
func narrow(typ tensor.DType, w uint64) uint64 {
	switch typ {
	case tensor.Int8:
		return uint64(uint32(int8(w)))
	case tensor.Int16:
		return uint64(uint32(int16(w)))
	case tensor.Uint8:
		return uint64(uint8(w))
	case tensor.Uint16:
		return uint64(uint16(w))
	}
	return uint64(uint32(w))
}

// indices reads values by their numbers in the dictionary.
func (c *column) indices(b []byte, n int, number func(uint64) error, text func([]byte) error) error {
	if len(b) == 0 || !c.hasDict {
		return errPage
	}
	var failed error
	err := hybrid(b[1:], uint(b[0]), n, func(v uint32) {
		switch {
		case failed != nil:
		case c.typ == 0 && int64(v) < int64(len(c.words)):
			failed = text(c.words[v])
		case c.typ != 0 && int64(v) < int64(len(c.dict)):
			failed = number(c.dict[v])
		default:
			failed = errPage
		}
	})
	return errors.Join(err, failed)
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
		if c.typ.Float() { // what is NaN is missing too
			for i := range c.missing {
				x := tensor.FloatOf(c.typ, c.values.At(i))
				c.missing[i] = x != x
			}
		}
	}
	return out, err
}
