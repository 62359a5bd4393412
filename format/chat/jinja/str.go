package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// str returns a value as Python's str does.
func (r *run) str(v Value) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case markup:
		return string(v), nil
	case *undefined:
		return "", nil
	}
	return r.repr(v)
}

// repr returns a value as Python's repr does.
func (r *run) repr(v Value) (string, error) {
	var b strings.Builder
	err := r.represent(&b, v, 0)
	return b.String(), err
}

func (r *run) represent(b *strings.Builder, v Value, depth int) error {
	if depth > maxValues {
		return errDeep
	}
	if err := r.make(8); err != nil {
		return err
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case *big.Int:
		b.WriteString(v.String())
		return r.make(maxDigits)
	case float64:
		b.WriteString(floatText(v))
	case string:
		if err := r.make(2 * len(v)); err != nil {
			return err
		}
		quote(b, v)
	case markup:
		b.WriteString("Markup(")
		err := r.represent(b, string(v), depth)
		b.WriteString(")")
		return err
	case *List:
		return r.representAll(b, "[", v.Items, "]", depth)
	case *tuple:
		if len(v.items) == 1 {
			return r.representAll(b, "(", v.items, ",)", depth)
		}
		return r.representAll(b, "(", v.items, ")", depth)
	case *Dict:
		return r.representDict(b, v, depth)
	case *undefined:
		b.WriteString("Undefined")
	case *span:
		b.WriteString(v.text)
	case *view:
		all, err := r.collect(v)
		if err != nil {
			return err
		}
		return r.representAll(b, "dict_"+v.kind+"([", all, "])", depth)
	case *namespace:
		b.WriteString("<Namespace ")
		err := r.representDict(b, v.fields, depth)
		b.WriteString(">")
		return err
	default:
		return fmt.Errorf("a %s cannot be printed: in Python its text has an address", typeName(v))
	}
	return nil
}

func (r *run) representAll(b *strings.Builder, open string, all []Value, end string, depth int) error {
	b.WriteString(open)
	for i, x := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		if err := r.represent(b, x, depth+1); err != nil {
			return err
		}
	}
	b.WriteString(end)
	return nil
}

func (r *run) representDict(b *strings.Builder, d *Dict, depth int) error {
	b.WriteByte('{')
	for i, k := range d.keys {
		if i > 0 {
			b.WriteString(", ")
		}
		if err := r.represent(b, k, depth+1); err != nil {
			return err
		}
		b.WriteString(": ")
		if err := r.represent(b, d.values[i], depth+1); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// floatText is the shortest text that gives the number again, in Python's form.
func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	e, _ := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:])
	if e < -4 || e >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
