package search

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Limits on a table: it becomes constants of a model.
const (
	MaxText    = 64 << 20 // bytes
	minRows    = 10
	maxColumns = 1 << 10
	maxCells   = 1 << 22
	maxClasses = 1 << 8
	maxName    = 200 // bytes of a class or of the name of a column
)

// Table is examples of classes.
type Table struct {
	Features []string
	Classes  []string // ascending

	cells  []float64 // a row after the other
	labels []int     // index of each row's class
}

// Rows returns the number of examples.
func (t *Table) Rows() int { return len(t.labels) }

func (t *Table) row(i int) []float64 { return t.cells[i*len(t.Features):][:len(t.Features)] }

// ReadTable reads comma-separated values. The first line names the columns. The one called
// label holds the class, as any text; without a name it is the last. All others are numbers.
func ReadTable(text []byte, label string) (*Table, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("%d bytes, limit %d: take a sample of the rows", len(text), MaxText)
	}
	if line, n := widest(text); n > maxColumns {
		return nil, fmt.Errorf("record %d has %d columns separated by commas, limit %d: features and a class", line, n, maxColumns)
	}
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	r.ReuseRecord = true
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty: its first line names the columns")
	} else if err != nil {
		return nil, err
	}
	t := &Table{}
	at, err := t.header(header, label)
	if err != nil {
		return nil, err
	}
	var classes []string
	for {
		cells, err := r.Read() // as many as the first line has
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		class, err := t.add(cells, at)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", len(classes)+1, err)
		}
		classes = append(classes, class)
	}
	return t, t.classify(classes)
}

// widest returns the record with the most columns, counted from 1, and how many it has. The reader takes a hundred times
// as much memory for a column as its comma.
func widest(text []byte) (record, columns int) {
	at, n, quoted := 1, 1, false
	for _, b := range text {
		switch {
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == ',':
			if n++; n > columns {
				record, columns = at, n
			}
		case b == '\n':
			at, n = at+1, 1
		}
	}
	return record, columns
}

// header takes the names of features, and returns the column of the class.
func (t *Table) header(cells []string, label string) (at int, err error) {
	if len(cells) < 2 {
		return 0, fmt.Errorf("the first line has %d columns separated by commas, want 2 to %d: features and a class", len(cells), maxColumns)
	}
	if at = len(cells) - 1; label != "" {
		if at = slices.IndexFunc(cells, func(c string) bool { return strings.TrimSpace(c) == label }); at < 0 {
			return 0, fmt.Errorf("no column is called %.40q: the first line has %.200q", label, cells)
		}
	}
	for i, c := range cells {
		c = strings.Clone(strings.TrimSpace(c))
		_, err := strconv.ParseFloat(c, 64)
		switch {
		case c == "" || len(c) > maxName:
			return 0, fmt.Errorf("column %d has a name of %d bytes, want 1 to %d", i+1, len(c), maxName)
		case err == nil:
			return 0, fmt.Errorf("column %d is called %.40q, which is a number: put a line with names first", i+1, c)
		case slices.Contains(t.Features, c):
			return 0, fmt.Errorf("two columns are called %.40q: rename one", c)
		case i != at:
			t.Features = append(t.Features, c)
		}
	}
	return at, nil
}

// add takes a row, and returns its class.
func (t *Table) add(cells []string, at int) (class string, err error) {
	if len(t.cells)+len(t.Features) > maxCells {
		return "", fmt.Errorf("there are more than %d numbers: take a sample of the rows", maxCells)
	}
	for i, c := range cells {
		c = strings.TrimSpace(c)
		if i == at {
			if class = strings.Clone(c); c == "" || len(c) > maxName {
				return "", fmt.Errorf("the class has %d bytes, want 1 to %d", len(c), maxName)
			}
			continue
		}
		x, err := strconv.ParseFloat(c, 64)
		if err != nil || math.IsNaN(x) || math.Abs(x) > math.MaxFloat32 {
			name := t.Features[len(t.cells)%len(t.Features)]
			return "", fmt.Errorf("%.40q in column %.40q is no finite float32 number: fill it in, or take out the row or the column", c, name)
		}
		t.cells = append(t.cells, x)
	}
	return class, nil
}

// classify numbers the classes in ascending order.
func (t *Table) classify(classes []string) error {
	if len(classes) < minRows {
		return fmt.Errorf("%d rows, want %d at least", len(classes), minRows)
	}
	t.Classes = slices.Clone(classes)
	slices.Sort(t.Classes)
	if t.Classes = slices.Compact(t.Classes); len(t.Classes) < 2 || len(t.Classes) > maxClasses {
		return fmt.Errorf("the rows have %d classes, want 2 to %d: is the right column the class?", len(t.Classes), maxClasses)
	}
	if n := len(classes) * len(t.Classes); n > maxCells {
		return fmt.Errorf("rows times classes are %d, limit %d: take a sample of the rows", n, maxCells)
	}
	for _, c := range classes {
		i, _ := slices.BinarySearch(t.Classes, c)
		t.labels = append(t.labels, i)
	}
	return nil
}

// Parts of a table, in percent; the rest is for the test.
const (
	trainPercent      = 60
	validationPercent = 20
)

// split cuts the rows into three parts, by a permutation that depends on their number alone.
func (t *Table) split() (train, validation, test []int) {
	type place struct {
		row int
		key [sha256.Size]byte
	}
	places := make([]place, t.Rows())
	for i := range places {
		places[i] = place{i, draw("split", uint64(i))}
	}
	slices.SortFunc(places, func(a, b place) int { return bytes.Compare(a.key[:], b.key[:]) })
	rows := make([]int, len(places))
	for i, p := range places {
		rows[i] = p.row
	}
	a, b := len(rows)*trainPercent/100, len(rows)*(trainPercent+validationPercent)/100
	return rows[:a], rows[a:b], rows[b:]
}

// draw is what chance is made of, the same everywhere.
func draw(purpose string, numbers ...uint64) [sha256.Size]byte {
	text := []byte(purpose)
	for _, n := range numbers {
		text = binary.LittleEndian.AppendUint64(text, n)
	}
	return sha256.Sum256(text)
}

// scale returns mean and deviation of each feature over some rows. A feature that does not
// differ has deviation 1.
func (t *Table) scale(rows []int) (mean, deviation []float64) {
	mean, deviation = make([]float64, len(t.Features)), make([]float64, len(t.Features))
	n, differs := float64(len(rows)), make([]bool, len(t.Features))
	for _, r := range rows {
		for i, x := range t.row(r) {
			mean[i] += x / n
			differs[i] = differs[i] || x != t.row(rows[0])[i]
		}
	}
	for _, r := range rows {
		for i, x := range t.row(r) {
			deviation[i] += (x - mean[i]) * (x - mean[i]) / n
		}
	}
	for i, v := range deviation {
		if deviation[i] = math.Sqrt(v); !differs[i] { // rounding may say otherwise
			mean[i], deviation[i] = t.row(rows[0])[i], 1
		}
		if deviation[i] == 0 { // it differs by too little to be squared
			deviation[i] = 1
		}
	}
	return mean, deviation
}
