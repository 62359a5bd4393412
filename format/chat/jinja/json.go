package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FromJSON reads a value, with its keys in the order in which they come. Of a key that comes twice
// the last value counts, in the first one's place.
func FromJSON(b []byte) (Value, error) {
	if !utf8.Valid(b) {
		return nil, errors.New("the JSON is no UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, err := fromJSON(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one value in the JSON")
	}
	return v, nil
}

func fromJSON(d *json.Decoder, depth int) (Value, error) {
	if depth > maxValues {
		return nil, fmt.Errorf("more than %d values in each other in the JSON", maxValues)
	}
	t, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("the JSON cannot be read: %w", err)
	}
	switch t := t.(type) {
	case json.Number:
		return numberOf(t.String())
	case json.Delim:
		if t == '{' {
			return dictOf(d, depth)
		}
		list := &List{}
		for d.More() {
			v, err := fromJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			list.Items = append(list.Items, v)
		}
		return list, closed(d)
	}
	return t, nil
}

func dictOf(d *json.Decoder, depth int) (Value, error) {
	out := &Dict{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("the JSON cannot be read: %w", err)
		}
		key, ok := t.(string)
		if !ok {
			return nil, errors.New("a key in the JSON is no string")
		}
		v, err := fromJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		out.Set(key, v)
	}
	return out, closed(d)
}

// closed passes the bracket at which an object or array ends.
func closed(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("the JSON cannot be read: %w", err)
	}
	return nil
}

func numberOf(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, err
		}
		return f, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	if len(s) > maxDigits {
		return nil, fmt.Errorf("a number in the JSON has more than %d digits", maxDigits)
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, fmt.Errorf("%.40q in the JSON is no number", s)
	}
	return n, nil
}

// dump writes JSON as Python's json.dumps does.
type dump struct {
	r         *run
	b         strings.Builder
	indent    string
	isLined   bool // indent is given, if only as ""
	item, key string
	isASCII   bool
	isSorted  bool
}

func toJSON(r *run, a []Value) (Value, error) {
	d := &dump{r: r, item: ", ", key: ": ", isASCII: given(a[1]) && truth(a[1]), isSorted: given(a[4]) && truth(a[4])}
	switch in := a[2].(type) {
	case absent, nil:
	case string:
		d.indent, d.isLined = in, true
	default:
		n, ok := index(in)
		if !ok {
			return nil, fmt.Errorf("indent%w", unfit(in))
		}
		if err := r.times(1, max(n, 0)); err != nil {
			return nil, err
		}
		d.indent, d.isLined = strings.Repeat(" ", int(max(n, 0))), true
	}
	if d.isLined {
		d.item = ","
	}
	if given(a[3]) && a[3] != nil {
		pair, ok := items(a[3])
		if !ok || len(pair) != 2 {
			return nil, errors.New("separators are two texts: between items, and after keys")
		}
		var okItem, okKey bool
		d.item, okItem = pair[0].(string)
		d.key, okKey = pair[1].(string)
		if !okItem || !okKey {
			return nil, errors.New("separators are two texts: between items, and after keys")
		}
	}
	err := d.value(a[0], 0)
	return d.b.String(), err
}

// given reports whether a parameter has an argument.
func given(v Value) bool { return v != Value(absent{}) }

func (d *dump) put(s string) error {
	d.b.WriteString(s)
	return d.r.make(len(s))
}

func (d *dump) value(v Value, depth int) error {
	if depth > maxValues {
		return errDeep
	}
	if err := d.r.make(8); err != nil {
		return err
	}
	switch v := plain(v).(type) {
	case string:
		return d.text(v)
	case *Dict:
		return d.dict(v, depth)
	}
	if list, ok := items(v); ok {
		return d.list("[", len(list), "]", depth, func(i int) error { return d.value(list[i], depth+1) })
	}
	s, err := scalar(v)
	if err != nil {
		return err
	}
	return d.put(s)
}

// scalar returns a number, a truth value or none, as JSON has it.
func scalar(v Value) (string, error) {
	switch v := v.(type) {
	case nil:
		return "null", nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case *big.Int:
		return v.String(), nil
	case float64:
		switch {
		case math.IsInf(v, 1):
			return "Infinity", nil
		case math.IsInf(v, -1):
			return "-Infinity", nil
		case math.IsNaN(v):
			return "NaN", nil
		}
		return floatText(v), nil
	}
	return "", fmt.Errorf("JSON has no%w", unfit(v))
}

// list writes n items between brackets.
func (d *dump) list(open string, n int, end string, depth int, item func(i int) error) error {
	if n == 0 {
		return d.put(open + end)
	}
	if err := d.put(open); err != nil {
		return err
	}
	for i := range n {
		if i > 0 {
			if err := d.put(d.item); err != nil {
				return err
			}
		}
		if err := d.line(depth + 1); err != nil {
			return err
		}
		if err := item(i); err != nil {
			return err
		}
	}
	if err := d.line(depth); err != nil {
		return err
	}
	return d.put(end)
}

// line begins a line, if there are lines.
func (d *dump) line(depth int) error {
	if !d.isLined {
		return nil
	}
	if err := d.r.times(len(d.indent), int64(depth)); err != nil {
		return err
	}
	return d.put("\n" + strings.Repeat(d.indent, depth))
}

func (d *dump) dict(v *Dict, depth int) error {
	order := make([]int, len(v.keys))
	for i := range order {
		order[i] = i
	}
	if d.isSorted {
		var bad error
		slices.SortStableFunc(order, func(i, j int) int {
			c, err := d.r.order(v.keys[i], v.keys[j], 0)
			bad = cmpErr(bad, err)
			return c
		})
		if bad != nil {
			return bad
		}
	}
	return d.list("{", len(order), "}", depth, func(i int) error {
		key, ok := v.keys[order[i]].(string)
		if !ok {
			var err error
			if key, err = scalar(v.keys[order[i]]); err != nil {
				return err
			}
		}
		if err := d.text(key); err != nil {
			return err
		}
		if err := d.put(d.key); err != nil {
			return err
		}
		return d.value(v.values[order[i]], depth+1)
	})
}

// cmpErr is the first of two errors.
func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

var jsonEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\f': `\f`, '\b': `\b`}

func (d *dump) text(s string) error {
	if err := d.r.make(2 * len(s)); err != nil {
		return err
	}
	d.b.WriteByte('"')
	for _, c := range s {
		if e, ok := jsonEscapes[c]; ok {
			d.b.WriteString(e)
			continue
		}
		switch {
		case c >= 0x20 && (c <= 0x7e || !d.isASCII):
			d.b.WriteRune(c)
		case c > 0xffff:
			c -= 0x10000
			fmt.Fprintf(&d.b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			fmt.Fprintf(&d.b, `\u%04x`, c)
		}
	}
	d.b.WriteByte('"')
	return nil
}
