package evidence

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/bundle"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/node/light"
	"github.com/tally-network/tally/node/replay"
)

// Names of the entries of an extract, beside the anchor of its bundle.
const (
	entryTerms   = "order"   // job.Order
	entryExtract = "extract" // extract

	extractEntries = 7
)

// Limits on an extract.
const (
	maxExtract     = 16 << 20 // bytes of its own entry, and so of a record with the records around it
	maxExtractFile = maxExtract + maxBlock + maxSettlement + 1<<20
	extractRoom    = 4 << 20 // bytes that its lists may take in memory, beside the entry
	extractVersion = 1
)

// extract is what shows one record of a batch: where its result stands under the final root,
// and the tiles that it is in.
type extract struct {
	Record  int
	Unit    []canon.Hash // path of the end of its unit, among those of all units
	Run     []canon.Hash // path of the result of its run, among those of the unit
	Inputs  []excerpt    // of the state of all records; none if they are kept back
	Outputs []excerpt    // of the result
}

// excerpt is the part of a tensor in which a record is: the tiles in order, each with its path.
type excerpt struct {
	Slot  graph.Slot
	Tiles []openTile
}

type openTile struct {
	Bytes []byte
	Path  []canon.Hash
}

// maxPath bounds a path in a tree of tiles or runs.
const maxPath = 48

// Code walks the fields of x.
func (x *extract) Code(w *canon.Codec) {
	version := uint8(extractVersion)
	if w.U8(&version); version != extractVersion {
		w.Fail("it has version %d, and this tally reads version %d", version, extractVersion)
	}
	w.Int(&x.Record, tensor.MaxDim)
	w.Hashes(&x.Unit, maxPath)
	w.Hashes(&x.Run, maxPath)
	for _, list := range []*[]excerpt{&x.Inputs, &x.Outputs} {
		canon.Seq(w, list, graph.MaxSlots, 4, codeExcerpt)
	}
}

func codeExcerpt(w *canon.Codec, e *excerpt) {
	w.String(&e.Slot.Name, canon.MaxKey)
	w.U8((*uint8)(&e.Slot.Type))
	canon.With(w, &e.Slot.Shape, tensor.Shape.Encode, tensor.DecodeShape)
	if w.Reading() && !e.Slot.Type.Valid() {
		w.Fail("tensor %.40q has element type %d", e.Slot.Name, e.Slot.Type)
	}
	canon.Seq(w, &e.Tiles, maxExtract, 3, func(w *canon.Codec, t *openTile) {
		w.Blob(&t.Bytes, tensor.TileSide*tensor.TileSide*8)
		w.Hashes(&t.Path, maxPath)
	})
}

// portion is where a record lies in a tensor of which the first axis counts so many, or else
// the whole of it: the shape, the elements, and the tiles that hold them.
type portion struct {
	layout     tensor.Layout
	shape      tensor.Shape
	from, to   int    // elements
	rows, cols [2]int // of tiles
}

func portionOf(s graph.Slot, count, at int) portion {
	p := portion{layout: tensor.LayoutOf(s.Type, s.Shape), shape: s.Shape}
	if len(s.Shape) > 0 && s.Shape[0] == count {
		p.shape = s.Shape[1:]
		p.from = at * p.shape.Elements()
	}
	p.to = p.from + p.shape.Elements()
	if p.from == p.to {
		return p
	}
	first, last := p.from/p.layout.Cols, (p.to-1)/p.layout.Cols
	p.rows, p.cols = [2]int{first / tensor.TileSide, last/tensor.TileSide + 1}, [2]int{0, p.layout.Side}
	if first == last {
		p.cols = [2]int{p.from % p.layout.Cols / tensor.TileSide, (p.to-1)%p.layout.Cols/tensor.TileSide + 1}
	}
	return p
}

// tiles returns how many tiles hold the portion.
func (p *portion) tiles() int { return (p.rows[1] - p.rows[0]) * (p.cols[1] - p.cols[0]) }

// tile returns the number of its i-th tile.
func (p *portion) tile(i int) int {
	wide := p.cols[1] - p.cols[0]
	return (p.rows[0]+i/wide)*p.layout.Side + p.cols[0] + i%wide
}

// show returns the excerpt of a tensor in which a portion is.
func (p *portion) show(name string, t *tensor.Tensor) excerpt {
	e := excerpt{Slot: graph.Slot{Name: name, Type: t.Type, Shape: t.Shape}}
	tree := canon.NewTree(t.Leaves())
	for i := range p.tiles() {
		e.Tiles = append(e.Tiles, openTile{t.Tile(nil, p.tile(i)), tree.Prove(p.tile(i))})
	}
	return e
}

// read returns the elements of the portion that e shows, and the root of the tensor to which
// its paths lead.
func (p *portion) read(e *excerpt) (t *tensor.Tensor, root canon.Hash, err error) {
	l := &p.layout
	if len(e.Tiles) != p.tiles() || len(e.Tiles) == 0 && l.Tiles() > 0 {
		return nil, root, wrong("%q has %d tiles, and the record is in %d", e.Slot.Name, len(e.Tiles), p.tiles())
	}
	all := canon.Root(nil)
	for i, open := range e.Tiles {
		n := p.tile(i)
		if len(open.Bytes) != l.TileBytes(n) {
			return nil, root, wrong("tile %d of %q has %d bytes", n, e.Slot.Name, len(open.Bytes))
		}
		top, err := canon.Full(l.Tiles()).Climb(n, tensor.TileHash(open.Bytes), open.Path)
		if err != nil {
			return nil, root, wrong("tile %d of %q: %v", n, e.Slot.Name, err)
		}
		if r := canon.RootOf(l.Tiles(), top); i > 0 && r != all {
			return nil, root, wrong("tiles of %q lead to two roots", e.Slot.Name)
		} else {
			all = r
		}
	}
	if t, err = tensor.New(e.Slot.Type, p.shape); err != nil {
		return nil, root, wrong("%q: %v", e.Slot.Name, err)
	}
	for i := range t.Len() {
		n, place := l.Find(p.from + i)
		at := (n/l.Side-p.rows[0])*(p.cols[1]-p.cols[0]) + n%l.Side - p.cols[0]
		t.Set(i, l.Word(e.Tiles[at].Bytes, place))
	}
	return t, l.Root(all), nil
}

// readExcerpts returns a record's tensors, and the root of the state that they are of.
func readExcerpts(all []excerpt, count, at int) (*graph.State, canon.Hash, error) {
	out := &graph.State{}
	var entries []canon.Entry
	for i := range all {
		e := &all[i]
		p := portionOf(e.Slot, count, at)
		t, root, err := p.read(e)
		if err != nil {
			return nil, root, err
		}
		entries = append(entries, canon.Entry{Key: e.Slot.Name, Value: root})
		out.Slots = append(out.Slots, graph.Slot{Name: e.Slot.Name, Type: t.Type, Shape: t.Shape})
		out.Tensors = append(out.Tensors, t)
	}
	tree, err := canon.NewKeyed(entries)
	if err != nil {
		return nil, canon.Hash{}, wrong("%v", err)
	}
	return out, tree.Root(), nil
}

// Record is a record of a settled batch, and what the model gave for it.
type Record struct {
	Order   *job.Order
	Final   canon.Hash // the root over the results of all records
	Chain   string
	Signers Trust
	Anchor  light.TrustedBlock // the block that anchors it
	By      string             // as of a Proof
	Index   int
	Inputs  *graph.State // nil if they were kept back
	Outputs *graph.State
}

// IsExtract reports whether a file is an extract, and no whole bundle.
func IsExtract(src io.ReaderAt, size int64) bool {
	if size > maxExtractFile {
		return false
	}
	b, err := bundle.Open(src, size)
	if err != nil {
		return false
	}
	return b.Has(entryExtract)
}

// CheckExtract reads an extract and checks it, as Check does a bundle: the anchor first.
func CheckExtract(src io.ReaderAt, size int64, believed func(Trust) bool) (*Record, error) {
	return checkExtract(src, size, ofBundle(believed))
}

func checkExtract(src io.ReaderAt, size int64, anchored func(*bundle.Bundle) (anchor, error)) (*Record, error) {
	if size > maxExtractFile {
		return nil, wrong("an extract of %d bytes, limit %d", size, int64(maxExtractFile))
	}
	b, err := bundle.Open(src, size)
	if err != nil {
		return nil, err
	}
	a, err := anchored(b)
	if err != nil {
		return nil, err
	}
	if n := len(b.Entries()); n != extractEntries { // all of which are read
		return nil, wrong("an extract of %d entries, want %d", n, extractEntries)
	}
	o, err := checkTerms(b, &a)
	if err != nil {
		return nil, err
	}
	raw, err := b.Read(entryExtract, maxExtract)
	if err != nil {
		return nil, err
	}
	var x extract
	if err := canon.UnmarshalWithin(raw, &x, len(raw)+extractRoom); err != nil {
		return nil, wrong("extract: %v", err)
	}
	r := &Record{Order: o, Final: a.settlement.Final, Chain: a.chain, Signers: a.signers, Anchor: light.FromLightBlock(a.block), Index: x.Record}
	return r, r.read(&x)
}

// checkTerms reads the order, which must be the one that was settled.
func checkTerms(b *bundle.Bundle, a *anchor) (*job.Order, error) {
	raw, err := b.Read(entryTerms, maxTx)
	if err != nil {
		return nil, err
	}
	o := &job.Order{}
	if err := canon.Unmarshal(raw, o); err != nil {
		return nil, wrong("order: %v", err)
	}
	switch s := &a.settlement; {
	case o.Check() != nil:
		return nil, wrong("order: %v", o.Check())
	case s.Order != o.ID() || s.Start != o.Problem.Start || o.Chain != a.chain:
		return nil, wrong("the order is another than the settled one")
	case !o.Problem.Independent() || o.Problem.Merges():
		return nil, wrong("the order is a %s, whose result is one, and not one for each record", o.Problem.Kind)
	case s.Final.IsZero():
		return nil, wrong("the order ended before all its records had results")
	}
	return o, nil
}

// read checks that what is shown stands under the roots that are settled, and takes it over.
func (r *Record) read(x *extract) error {
	p := &r.Order.Problem
	if x.Record < 0 || x.Record >= p.Records {
		return wrong("it is about record %d, and there are %d", x.Record, p.Records)
	}
	unit, step, row := p.RunOf(x.Record)
	if len(x.Inputs) > 0 {
		for i := range x.Inputs {
			if s := &x.Inputs[i].Slot; len(s.Shape) == 0 || s.Shape[0] != p.Records {
				return wrong("input %q has shape %v, and there are %d records", s.Name, s.Shape, p.Records)
			}
		}
		in, root, err := readExcerpts(x.Inputs, p.Records, x.Record)
		if err != nil {
			return err
		}
		if root != p.Start {
			return wrong("the record is not among those with root %s, which were ordered", p.Start)
		}
		r.Inputs = in
	}
	out, root, err := readExcerpts(x.Outputs, p.Batch, row)
	if err != nil {
		return err
	}
	end, err := canon.Full(p.Segments()).Climb(step, root, x.Run)
	if err == nil {
		end, err = canon.Full(p.Shards).Climb(unit, canon.RootOf(p.Segments(), end), x.Unit)
	}
	if err != nil || canon.RootOf(p.Shards, end) != r.Final {
		return wrong("the result is not among those with root %s, which were settled", r.Final)
	}
	r.Outputs = out
	return nil
}

// Extract writes to a file what proves one record of a batch, out of a bundle. Its inputs are
// shown, too, unless they are to be kept back. What else the bundle holds is not checked. It
// returns the length of the file.
func Extract(ctx context.Context, src io.ReaderAt, size int64, record int, inputs bool, out string) (int64, error) {
	file, err := extractOf(ctx, src, size, record, inputs)
	if err == nil {
		_, err = CheckExtract(bytes.NewReader(file), int64(len(file)), Anybody) // what cannot be verified is not handed over
	}
	if err != nil {
		return 0, err
	}
	return int64(len(file)), replace.File(out, file)
}

func extractOf(ctx context.Context, src io.ReaderAt, size int64, record int, inputs bool) ([]byte, error) {
	b, err := bundle.Open(stoppable{ctx, src}, size)
	if err != nil {
		return nil, err
	}
	a, err := checkAnchor(b.Read, Anybody)
	if err != nil {
		return nil, err
	}
	p := &Proof{Settlement: a.settlement, Chain: a.chain, Signers: a.signers, bundle: b}
	if err := p.checkRecord(); err != nil {
		return nil, err
	}
	x, err := p.extract(record, inputs)
	if err != nil {
		return nil, err
	}
	raw := canon.Marshal(x)
	if len(raw) > maxExtract {
		return nil, fmt.Errorf("an extract of record %d has %d bytes, limit %d: leave its inputs out, or show the whole bundle", record, len(raw), maxExtract)
	}
	entries := []bundle.Content{bundle.Bytes(entryExtract, raw), bundle.Bytes(entryTerms, canon.Marshal(&p.Lease.Order))}
	for _, e := range b.Entries() {
		if strings.HasPrefix(e.Name, anchorPrefix) {
			entries = append(entries, bundle.Content{Name: e.Name, Open: func() (io.Reader, error) { return b.Open(e), nil }})
		}
	}
	slices.SortFunc(entries, func(a, b bundle.Content) int { return strings.Compare(a.Name, b.Name) })
	var file bytes.Buffer
	if err := bundle.Write(&file, entries); err != nil {
		return nil, err
	}
	return file.Bytes(), nil
}

// extract finds a record in a bundle whose lease's record was checked.
func (p *Proof) extract(record int, inputs bool) (*extract, error) {
	l, q := p.Lease, &p.Lease.Order.Problem
	switch {
	case !q.Independent() || q.Merges():
		return nil, fmt.Errorf("order %s is a %s: a batch alone has results for each record", l.Order.ID().Short(), q.Kind)
	case record < 0 || record >= q.Records:
		return nil, fmt.Errorf("there is no record %d: they are 0 to %d", record, q.Records-1)
	}
	unit, step, row := q.RunOf(record)
	receipt := l.Units[unit].Receipt
	if receipt == nil || step+1 >= len(receipt.Checkpoints) {
		return nil, wrong("unit %d has no receipt", unit)
	}
	x := &extract{Record: record, Unit: canon.NewTree(l.Merges[0].Inputs).Prove(unit), Run: canon.NewTree(receipt.Checkpoints[1:]).Prove(step)}
	result, err := p.state(receipt.Checkpoints[step+1])
	if err != nil {
		return nil, wrong("%v", err)
	}
	x.Outputs = show(result, q.Batch, row)
	if !inputs {
		return x, nil
	}
	f, ok := q.File(replay.RoleStart)
	if !ok {
		return nil, wrong("the order names no records")
	}
	raw, err := p.File(f)
	if err != nil {
		return nil, err
	}
	start, err := replay.ReadState(raw, q.Start, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, wrong("records: %v", err)
	}
	x.Inputs = show(start, q.Records, record)
	return x, nil
}

func show(s *graph.State, count, at int) (out []excerpt) {
	for i, slot := range s.Slots {
		p := portionOf(slot, count, at)
		out = append(out, p.show(slot.Name, s.Tensors[i]))
	}
	return out
}
