package table

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/tensor"
)

// Rule is how the value is found that stands where others are missing.
type Rule string

// The rules. A constant needs none: it is given to [Column.Fill].
const (
	Mean   Rule = "mean"   // of numbers: their sum, in the order of records, divided by their count
	Median Rule = "median" // of numbers: the middle one, or the mean of the two in the middle
	Mode   Rule = "mode"   // the most frequent value; of several, the least number or the first text by bytes
)

// Learn returns the value that a rule makes of some records, those of training, as text. Records
// without a value do not count.
func (c *Column) Learn(rule Rule, records []int) (string, error) {
	taken, err := c.Take(records)
	if err != nil {
		return "", err
	}
	value, err := taken.learn(rule)
	if err != nil {
		return "", fmt.Errorf("column %.40q: %w", c.Name, err)
	}
	return strings.Clone(value), nil // what it may be a view of goes with taken
}

func (c *Column) learn(rule Rule) (string, error) {
	if c.Kind == Array || c.Kind == Image {
		return "", fmt.Errorf("nothing stands for a missing %v: take the records out", c.Kind)
	}
	if c.CountMissing() == c.Len() {
		return "", errors.New("no record has a value to learn from: give a constant, or take the column out")
	}
	switch rule {
	case Mode:
		return c.frequencies()[0].Value, nil
	case Mean, Median:
	default:
		return "", fmt.Errorf("%.40q is no rule: take %s, %s or %s, or give a constant", rule, Mean, Median, Mode)
	}
	if c.Kind != Integer && c.Kind != Real {
		return "", fmt.Errorf("a %v has no %s: take %s, or give a constant", c.Kind, rule, Mode)
	}
	x := c.mean()
	if rule == Median {
		x = c.median()
	}
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return "", fmt.Errorf("the %s is no finite number: correct the values, or give a constant", rule)
	}
	return digits(x, 64), nil
}

// numbers returns the values of a column of numbers that are there, in the order of records.
func (c *Column) numbers() []float64 {
	out := make([]float64, 0, c.Len())
	for i := range c.Len() {
		if !c.Lacks(i) {
			w, _ := convert(c.Values.Type, tensor.Float64, c.Values.At(i))
			out = append(out, tensor.FloatOf(tensor.Float64, w))
		}
	}
	return out
}

func (c *Column) mean() float64 {
	var sum float64
	all := c.numbers()
	for _, x := range all {
		sum += x
	}
	return sum / float64(len(all))
}

func (c *Column) median() float64 {
	all := c.numbers()
	slices.Sort(all)
	middle := len(all) / 2
	if len(all)%2 == 1 {
		return all[middle]
	}
	return (all[middle-1] + all[middle]) / 2
}

// Frequency is how often a value is there.
type Frequency struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// frequencies returns the values of a column of one value a record, the most frequent first; of
// several, the least number or the first text by bytes.
func (c *Column) frequencies() []Frequency {
	if c.written() {
		counts := map[string]int{}
		for i := range c.Len() {
			if !c.Lacks(i) {
				counts[c.Texts.At(i)]++
			}
		}
		out := make([]Frequency, 0, len(counts))
		for text, n := range counts { // order: sorted below
			out = append(out, Frequency{text, n})
		}
		slices.SortFunc(out, func(a, b Frequency) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
		})
		return out
	}
	t := c.Values
	words := make([]tensor.Word, 0, t.Len())
	for i := range t.Len() {
		if !c.Lacks(i) {
			words = append(words, t.At(i))
		}
	}
	slices.SortFunc(words, func(a, b tensor.Word) int { return compare(t.Type, a, b) })
	var out []Frequency
	for i, w := range words {
		if i > 0 && w == words[i-1] {
			out[len(out)-1].Count++
			continue
		}
		value := ""
		if c.Kind == Category {
			value = c.Categories[w]
		} else {
			value = number(t.Type, w)
		}
		out = append(out, Frequency{value, 1})
	}
	slices.SortStableFunc(out, func(a, b Frequency) int { return cmp.Compare(b.Count, a.Count) })
	return out
}

// compare orders two elements of a type.
func compare(t tensor.DType, a, b tensor.Word) int {
	switch {
	case t.Float():
		return cmp.Or(cmp.Compare(tensor.FloatOf(t, a), tensor.FloatOf(t, b)), cmp.Compare(a, b))
	case t.Signed():
		return cmp.Compare(int64(a), int64(b))
	}
	return cmp.Compare(a, b)
}

// Fill returns the column with a value, as text, where one is missing. An integer column becomes
// real if the value is no integer of its type; a category has one text more if it did not have
// this one.
func (c *Column) Fill(value string) (*Column, error) {
	if c.Missing == nil {
		return c, nil
	}
	out := *c
	out.Missing = nil
	if c.written() {
		out.Texts = Strings{alloc: c.Allocator}
		for i := range c.Len() {
			text := c.Texts.bytes(i)
			if c.Lacks(i) {
				text = []byte(value)
			}
			if err := out.Texts.Append(text); err != nil {
				return nil, err
			}
		}
		return &out, nil
	}
	if c.Kind == Category {
		at, ok := slices.BinarySearch(c.Categories, value)
		var err error
		if out.Values, err = c.copied(); err != nil {
			return nil, err
		}
		codes := tensor.Of[int32](out.Values)
		if !ok {
			if len(c.Categories) == MaxCategories {
				return nil, fmt.Errorf("column %.40q has %d categories, the most there may be: fill it with one of them", c.Name, MaxCategories)
			}
			out.Categories = slices.Insert(slices.Clone(c.Categories), at, value)
		}
		for i, code := range codes {
			if code < 0 {
				codes[i] = int32(at)
			} else if !ok && int(code) >= at {
				codes[i]++
			}
		}
		return &out, nil
	}
	return c.fillNumber(value)
}

// fillNumber is Fill for a column of numbers or truth values.
func (c *Column) fillNumber(value string) (*Column, error) {
	wrong := fmt.Errorf("column %.40q: %.40q is no value of a column that is %v", c.Name, value, c.Kind)
	n, end := ScanNumber([]byte(value), 0)
	isNumber := end > 0 && end == len(value)
	var w tensor.Word
	ok := false
	switch whole, isWhole := n.Int64(); {
	case c.Kind == Boolean:
		var v bool
		if v, ok = Truth([]byte(value)); v {
			w = 1
		}
	case !isNumber || c.Kind != Integer && c.Kind != Real:
	case c.Kind == Integer && isWhole:
		w, ok = ofInteger(whole < 0, c.Values.Type, tensor.Word(whole))
	case c.Kind == Real:
		var x float64
		if x, ok = n.Float64([]byte(value)); ok {
			w = tensor.FloatWord(c.Values.Type, x)
			ok = !math.IsInf(tensor.FloatOf(c.Values.Type, w), 0)
		}
	}
	if !ok && c.Kind == Integer && isNumber {
		real, err := c.As(Real)
		if err != nil {
			return nil, err
		}
		return real.fillNumber(value)
	}
	if !ok {
		return nil, wrong
	}
	out := *c
	out.Missing = nil
	var err error
	if out.Values, err = c.copied(); err != nil {
		return nil, err
	}
	for i, m := range c.Missing {
		if m {
			out.Values.Set(i, w)
		}
	}
	return &out, nil
}

// copied returns a copy of the values.
func (c *Column) copied() (*tensor.Tensor, error) {
	t, err := c.Allocator.New(c.Values.Type, c.Values.Shape)
	if err == nil {
		copy(t.Bytes(), c.Values.Bytes())
	}
	return t, err
}
