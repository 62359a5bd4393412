package jinja

import (
	"fmt"
	"iter"
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// Value is what a template computes with: nil, bool, int64, *big.Int, float64, string, *List,
// *Dict, and others that only templates make. A *big.Int does not fit into 64 bits.
type Value any

// List is a list, which templates cannot change.
type List struct{ Items []Value }

// tuple is a tuple. Those that groupby gives have names for their items.
type tuple struct {
	items []Value
	names []string
}

// Dict is a dict, whose keys are in the order in which they came.
type Dict struct {
	keys, values []Value
	at           map[any]int // by hashable key
}

// undefined is what a name means that nobody has given, or an item that is not there.
type undefined struct{ why string }

// span is a range.
type span struct {
	start, step, n int64
	text           string // as Python prints it
}

// view is what a dict's methods keys, values and items give.
type view struct {
	of   *Dict
	kind string
}

// iterator is what many filters give: items that are computed when they are asked for, once.
type iterator struct {
	next func() (v Value, ok bool, err error)
}

// namespace is a dict whose items can be set, as fields.
type namespace struct{ fields *Dict }

// function is what can be called. Its name is for messages.
type function struct {
	name string
	call func(r *run, a arguments) (Value, error)
}

// object has fields that templates read, such as those of a loop.
type object interface {
	field(r *run, id string) (Value, error)
}

// arguments are the arguments of a call.
type arguments struct {
	list  []Value
	names []string
	named []Value
}

// Set sets the value of a text key.
func (d *Dict) Set(key string, v Value) { d.set(key, key, v) }

// Get returns the value of a text key.
func (d *Dict) Get(key string) (Value, bool) { return d.get(key) }

// Texts goes through the items whose keys are texts with a suffix.
func (d *Dict) Texts(suffix string) iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for i, k := range d.keys {
			if s, ok := k.(string); ok && strings.HasSuffix(s, suffix) && !yield(s, d.values[i]) {
				return
			}
		}
	}
}

func (d *Dict) get(hash any) (Value, bool) {
	i, ok := d.at[hash]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// set sets the value of a key, of which hash is hashable's.
func (d *Dict) set(hash any, key, v Value) {
	if i, ok := d.at[hash]; ok {
		d.values[i] = v
		return
	}
	if d.at == nil {
		d.at = map[any]int{}
	}
	d.at[hash] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, v)
}

type noneKey struct{}

// hashable returns what equal keys of a dict share, and other keys do not have.
func hashable(v Value) (any, error) { return hashed(v, 0) }

func hashed(v Value, depth int) (any, error) {
	if depth > maxValues {
		return nil, errDeep
	}
	switch v := plain(v).(type) {
	case nil:
		return noneKey{}, nil
	case string, int64:
		return v, nil
	case bool:
		return toInt(v), nil
	case *big.Int:
		return "int " + v.String() + "\xff", nil // no text has this byte
	case float64:
		if n := int64(v); v >= -1<<62 && v <= 1<<62 && float64(n) == v {
			return n, nil
		}
		return v, nil
	case *undefined:
		return undefined{}, nil
	case *span:
		first, last := v.start*min(v.n, 1), (v.start+(v.n-1)*v.step)*min(v.n, 1)
		return fmt.Sprintf("range\xff%d %d %d", v.n, first, last), nil
	case *tuple:
		key := "tuple\xff"
		for _, x := range v.items {
			h, err := hashed(x, depth+1)
			if err != nil {
				return nil, err
			}
			if s, ok := h.(string); ok {
				h = fmt.Sprintf("%d %s", len(s), s)
			}
			if key += fmt.Sprintf("%T%v\xff", h, h); len(key) > 1<<16 {
				return nil, errDeep
			}
		}
		return key, nil
	}
	return nil, fmt.Errorf("a %s cannot be a key", typeName(v))
}

func toInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// typeName is Python's name of a value's type.
func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case string, markup:
		return "str"
	case *List:
		return "list"
	case *tuple:
		return "tuple"
	case *Dict:
		return "dict"
	case *undefined:
		return "Undefined"
	case *span:
		return "range"
	case *view:
		return "dict_" + v.kind
	case *iterator:
		return "generator"
	case *namespace:
		return "Namespace"
	case *loop:
		return "LoopContext"
	case *macro:
		return "Macro"
	}
	return "function"
}

// truth reports whether a value counts as true.
func truth(v Value) bool {
	switch v := v.(type) {
	case nil, *undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case markup:
		return v != ""
	}
	n, ok := length(v)
	return !ok || n > 0
}

// length returns Python's len, of values that have one.
func length(v Value) (int, bool) {
	switch v := plain(v).(type) {
	case string:
		return utf8.RuneCountInString(v), true
	case *List:
		return len(v.Items), true
	case *tuple:
		return len(v.items), true
	case *Dict:
		return len(v.keys), true
	case *view:
		return len(v.of.keys), true
	case *span:
		return int(v.n), true
	case *undefined:
		return 0, true
	}
	return 0, false
}

// items returns the items of a list or tuple.
func items(v Value) ([]Value, bool) {
	switch v := v.(type) {
	case *List:
		return v.Items, true
	case *tuple:
		return v.items, true
	}
	return nil, false
}

// entry returns an item of a view.
func (v *view) entry(i int) Value {
	switch v.kind {
	case "keys":
		return v.of.keys[i]
	case "values":
		return v.of.values[i]
	}
	return &tuple{items: []Value{v.of.keys[i], v.of.values[i]}}
}

// iterate returns what goes through a value's items.
func iterate(v Value) (*iterator, error) {
	switch v := plain(v).(type) {
	case *iterator:
		return v, nil
	case string:
		return &iterator{func() (Value, bool, error) {
			if v == "" {
				return nil, false, nil
			}
			_, n := utf8.DecodeRuneInString(v)
			c := v[:n]
			v = v[n:]
			return c, true, nil
		}}, nil
	case *undefined:
		return count(0, nil), nil
	case *Dict:
		return count(len(v.keys), func(i int) Value { return v.keys[i] }), nil
	case *view:
		return count(len(v.of.keys), v.entry), nil
	case *span:
		return count(int(v.n), func(i int) Value { return v.start + int64(i)*v.step }), nil
	}
	if list, ok := items(v); ok {
		return count(len(list), func(i int) Value { return list[i] }), nil
	}
	return nil, fmt.Errorf("a %s has no items to go through", typeName(v))
}

// count is an iterator over n items.
func count(n int, at func(i int) Value) *iterator {
	i := 0
	return &iterator{func() (Value, bool, error) {
		if i >= n {
			return nil, false, nil
		}
		i++
		return at(i - 1), true, nil
	}}
}

// collect returns all items of a value.
func (r *run) collect(v Value) ([]Value, error) {
	if list, ok := items(v); ok {
		return list, r.make(16 * len(list))
	}
	it, err := iterate(v)
	if err != nil {
		return nil, err
	}
	var all []Value
	for {
		v, ok, err := it.next()
		if err != nil || !ok {
			return all, err
		}
		if err := r.make(32); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
}

// index returns a value as an integer, where Python takes one.
func index(v Value) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		return toInt(v), true
	}
	return 0, false
}

// number returns a value as a float, if it is a number.
func number(v Value) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		return f, !math.IsInf(f, 0)
	}
	n, ok := index(v)
	return float64(n), ok
}
