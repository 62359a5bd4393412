package consume

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/delimited"
	"github.com/tally-network/tally/format/jsonlines"
	"github.com/tally-network/tally/format/npy"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/format/table"
	"github.com/tally-network/tally/node/consume/models"
)

// RecordFiles name the files that hold records: one for each input, or one that holds all
// inputs by name.
type RecordFiles struct {
	All string
	Of  map[string]string // by input
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *RecordFiles) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &r.All) == nil {
		return nil
	}
	if json.Unmarshal(b, &r.Of) != nil {
		return errors.New("problem.records names a file, or one for each input, as in {ids: ids.npy, mask: mask.npy}")
	}
	return nil
}

// names reports whether any file is named.
func (r *RecordFiles) names() bool { return r.All != "" || len(r.Of) > 0 }

// column is what records give an input. Its shape, whose first axis counts records, is known
// before a model is read; numbers of text have a type only once the model says which.
type column interface {
	Shape() tensor.Shape
	Tensor(tensor.DType) (*tensor.Tensor, error)
}

// typed is a column whose file states the type.
type typed struct{ t *tensor.Tensor }

// Shape implements column.
func (c typed) Shape() tensor.Shape { return c.t.Shape }

// Tensor implements column. Whether the type is the one that is wanted is for others to say.
func (c typed) Tensor(tensor.DType) (*tensor.Tensor, error) { return c.t, nil }

// ofText is a column of a table that was text.
type ofText struct{ *table.Column }

// Shape implements column.
func (c ofText) Shape() tensor.Shape { return append(tensor.Shape{c.Len()}, c.Column.Shape()...) }

// inRows are all columns of a table as one.
type inRows struct{ *table.Table }

// Shape implements column.
func (r inRows) Shape() tensor.Shape { return tensor.Shape{r.Records, len(r.Columns)} }

// recordFile is what a file holds: columns by name, or one for the input for which it is named.
type recordFile struct {
	byName map[string]column
	alone  column
}

// maxRecordText bounds a file of records as text in bytes: it is read whole.
const maxRecordText = 1 << 30

// recordFormats are the readers of record files, by the ends of their names.
var recordFormats = map[string]func(src io.ReaderAt, size int64) (recordFile, error){
	".npy": func(src io.ReaderAt, size int64) (recordFile, error) {
		t, err := npy.Read(src, size, nil)
		return recordFile{alone: typed{t}}, err
	},
	".npz": func(src io.ReaderAt, size int64) (recordFile, error) {
		all, err := npy.ReadArchive(src, size, nil)
		return tensorFile(all), err
	},
	".safetensors": func(src io.ReaderAt, size int64) (recordFile, error) {
		all, _, err := safetensors.Read(src, size, nil)
		return tensorFile(all), err
	},
	".jsonl": func(src io.ReaderAt, size int64) (recordFile, error) {
		f, _, err := textFile(src, size, func(text []byte) (*table.Table, error) { return jsonlines.Read(text, jsonlines.Options{}) })
		return f, err
	},
	".csv": func(src io.ReaderAt, size int64) (recordFile, error) {
		f, t, err := textFile(src, size, func(text []byte) (*table.Table, error) { return delimited.Read(text, delimited.Options{}) })
		f.alone = inRows{t}
		return f, err
	},
}

func tensorFile(all map[string]*tensor.Tensor) recordFile {
	f := recordFile{byName: map[string]column{}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f.byName[name] = typed{all[name]}
	}
	return f
}

// textFile returns what a file of text holds.
func textFile(src io.ReaderAt, size int64, read func([]byte) (*table.Table, error)) (f recordFile, t *table.Table, err error) {
	if size > maxRecordText {
		return f, nil, fmt.Errorf("%d bytes of text, limit %d: write a .npy or .safetensors file", size, int64(maxRecordText))
	}
	text, err := io.ReadAll(io.NewSectionReader(src, 0, size))
	if err != nil {
		return f, nil, err
	}
	if t, err = read(text); err != nil {
		return f, nil, err
	}
	f.byName = map[string]column{}
	for _, c := range t.Columns {
		f.byName[c.Name] = ofText{c}
	}
	return f, t, nil
}

// readRecords reads the records, by input.
func (s *BatchSpec) readRecords() (map[string]column, error) {
	if len(s.Problem.Grid) > 0 {
		return grid(s.Problem.Grid)
	}
	out := map[string]column{}
	if all := s.Problem.Records.All; all != "" {
		f, err := s.readRecordFile(all)
		if err == nil && len(f.byName) == 0 {
			err = fmt.Errorf("records %s: it names no inputs: write records: {INPUT: %s}", all, filepath.Base(all))
		}
		return f.byName, errors.Join(err, checkAxes(f.byName))
	}
	read := map[string]recordFile{}
	for _, name := range slices.Sorted(maps.Keys(s.Problem.Records.Of)) {
		path := s.Problem.Records.Of[name]
		f, ok := read[path]
		if !ok {
			var err error
			if f, err = s.readRecordFile(path); err != nil {
				return nil, err
			}
			read[path] = f
		}
		c := f.alone
		if c == nil {
			if c, ok = f.byName[name]; !ok {
				return nil, fmt.Errorf("records %s: it has no %q, but %.200q", path, name, slices.Sorted(maps.Keys(f.byName)))
			}
		}
		out[name] = c
	}
	return out, checkAxes(out)
}

// checkAxes returns an error unless every column has a first axis.
func checkAxes(all map[string]column) error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if s := all[name].Shape(); len(s) == 0 || s[0] < 1 {
			return fmt.Errorf("records %s have shape %v; its first axis counts records", name, s)
		}
	}
	return nil
}

func (s *BatchSpec) readRecordFile(path string) (recordFile, error) {
	read := recordFormats[strings.ToLower(filepath.Ext(path))]
	if read == nil {
		return recordFile{}, fmt.Errorf("records %s: they are read from files called %s", path, strings.Join(slices.Sorted(maps.Keys(recordFormats)), ", "))
	}
	f, size, err := models.Open(s.Folders, "records", path)
	if err != nil {
		return recordFile{}, err
	}
	out, err := read(f, size)
	if err = errors.Join(err, f.Close()); err != nil {
		return recordFile{}, fmt.Errorf("records %s: %w", path, err)
	}
	return out, nil
}

// gridValues are a column of a grid, in float64 until the model says otherwise.
type gridValues struct{ typed }

// Tensor implements column.
func (g gridValues) Tensor(to tensor.DType) (*tensor.Tensor, error) {
	if to == tensor.Float64 {
		return g.t, nil
	}
	out, err := tensor.New(to, g.t.Shape)
	if err != nil {
		return nil, err
	}
	for i, x := range tensor.Of[float64](g.t) {
		switch {
		case to == tensor.Float32 && math.Abs(x) <= math.MaxFloat32 && (x != math.Trunc(x) || float64(float32(x)) == x):
			out.Set(i, tensor.F32(float32(x)))
		case (to == tensor.Int32 || to == tensor.Int64) && x == math.Trunc(x) && math.Abs(x) < 1<<31:
			out.Set(i, tensor.Word(int64(x)))
		default:
			return nil, fmt.Errorf("%v is no %v: a grid has values of float32, float64, int32 or int64, as these hold them; write others to .npy files, under problem.records", x, to)
		}
	}
	return out, nil
}

// grid returns every combination of the values, those of the last input fastest.
func grid(values map[string][]float64) (map[string]column, error) {
	n := 1
	for name, xs := range values {
		if len(xs) == 0 || n > maxGrid/len(xs)/len(values) {
			return nil, fmt.Errorf("grid: %s has %d values; every input has some, and all combinations have at most %d values together", name, len(xs), maxGrid)
		}
		n *= len(xs)
	}
	out, each := map[string]column{}, n
	for _, name := range slices.Sorted(maps.Keys(values)) {
		xs := values[name]
		each /= len(xs)
		t, err := tensor.New(tensor.Float64, tensor.Shape{n})
		if err != nil {
			return nil, err
		}
		for i, all := 0, tensor.Of[float64](t); i < n; i++ {
			all[i] = xs[i/each%len(xs)]
		}
		out[name] = gridValues{typed{t}}
	}
	return out, nil
}
