package table

import (
	"slices"

	"github.com/tally-network/tally/core/tensor"
)

// What a [Summary] shows at most.
const (
	shownFrequencies = 10
	shownSamples     = 5
)

// Summary is what people look at of a column before they train on it.
type Summary struct {
	Name        string      `json:"name"`
	Kind        string      `json:"kind"`
	Type        string      `json:"type,omitempty"`  // of elements, unless they are texts
	Shape       []int       `json:"shape,omitempty"` // of one record, where it is an array or an image
	Count       int         `json:"count"`           // records that have a value
	Missing     int         `json:"missing"`
	Distinct    int         `json:"distinct,omitempty"` // values, but of arrays and images
	Least       *float64    `json:"min,omitempty"`      // of numbers, those of arrays too
	Mean        *float64    `json:"mean,omitempty"`
	Greatest    *float64    `json:"max,omitempty"`
	Frequencies []Frequency `json:"most_frequent,omitempty"` // of what is no real: ten values at most
	Samples     []string    `json:"samples"`                 // of the first records that have a value
}

// Describe returns a summary of each column.
func (t *Table) Describe() []Summary {
	out := make([]Summary, len(t.Columns))
	for i, c := range t.Columns {
		out[i] = c.Describe()
	}
	return out
}

// Describe returns a summary of a column.
func (c *Column) Describe() Summary {
	s := Summary{Name: c.Name, Kind: c.Kind.String(), Missing: c.CountMissing(), Samples: []string{}}
	s.Count = c.Len() - s.Missing
	for i := 0; i < c.Len() && len(s.Samples) < shownSamples; i++ {
		if !c.Lacks(i) {
			s.Samples = append(s.Samples, shorten(c.Value(i)))
		}
	}
	if !c.written() {
		s.Type = c.Values.Type.String()
	}
	if s.Count == 0 {
		return s
	}
	switch c.Kind {
	case Array, Image:
		s.Shape = c.Shape()
		s.spread(c)
		return s
	case Integer, Real:
		s.spread(c)
	}
	all := c.frequencies()
	s.Distinct = len(all)
	if c.Kind != Real {
		s.Frequencies = slices.Clone(all[:min(len(all), shownFrequencies)])
		for i := range s.Frequencies {
			s.Frequencies[i].Value = shorten(s.Frequencies[i].Value)
		}
	}
	return s
}

// spread tells the least, the mean and the greatest of numbers, but of those that are none.
func (s *Summary) spread(c *Column) {
	t, n, sum := c.Values, 0, 0.0
	var least, greatest float64
	for i := range t.Len() {
		w, _ := convert(t.Type, tensor.Float64, t.At(i))
		x := tensor.FloatOf(tensor.Float64, w)
		if x != x || len(t.Shape) == 1 && c.Lacks(i) {
			continue
		}
		if n == 0 || x < least {
			least = x
		}
		if n == 0 || x > greatest {
			greatest = x
		}
		sum += x
		n++
	}
	if n == 0 {
		return
	}
	mean := sum / float64(n)
	for _, x := range []struct {
		to    **float64
		value float64
	}{{&s.Least, least}, {&s.Mean, mean}, {&s.Greatest, greatest}} {
		if x.value-x.value == 0 { // JSON has no infinities
			*x.to = &x.value
		}
	}
}
