package jinja

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strings"
)

var errWide = errors.New("a number has more than 64 bits")

// operate computes x op y.
func (r *run) operate(op string, x, y Value) (Value, error) {
	if x != plain(x) || y != plain(y) {
		return r.operateMarkup(op, x, y)
	}
	switch op {
	case "+":
		if v, ok, err := r.join(x, y); ok || err != nil {
			return v, err
		}
	case "*":
		if v, ok, err := r.repeated(x, y); ok || err != nil {
			return v, err
		}
	case "%":
		if s, ok := x.(string); ok {
			return r.printf(s, y)
		}
	}
	a, okA := index(x)
	b, okB := index(y)
	if okA && okB {
		return integers(op, a, b)
	}
	f, okF := number(x)
	g, okG := number(y)
	_, isFloatX := x.(float64)
	_, isFloatY := y.(float64)
	switch {
	case okF && okG && (isFloatX || isFloatY):
		return floats(op, f, g)
	case okF && okG:
		return nil, errWide
	case okF:
		x = y
	}
	return nil, fmt.Errorf("%s%w", op, unfit(x))
}

// join returns the sum of two texts, lists or tuples.
func (r *run) join(x, y Value) (Value, bool, error) {
	switch x := x.(type) {
	case string:
		if y, ok := y.(string); ok {
			return x + y, true, r.make(len(x) + len(y))
		}
		return nil, false, fmt.Errorf("+ after a text%w", unfit(y))
	case *List:
		if y, ok := y.(*List); ok {
			v, err := r.joined(x.Items, y.Items)
			return &List{v}, true, err
		}
		return nil, false, fmt.Errorf("+ after a list%w", unfit(y))
	case *tuple:
		if y, ok := y.(*tuple); ok {
			v, err := r.joined(x.items, y.items)
			return &tuple{items: v}, true, err
		}
		return nil, false, fmt.Errorf("+ after a tuple%w", unfit(y))
	}
	return nil, false, nil
}

func (r *run) joined(x, y []Value) ([]Value, error) {
	if err := r.make(16 * (len(x) + len(y))); err != nil {
		return nil, err
	}
	return append(append(make([]Value, 0, len(x)+len(y)), x...), y...), nil
}

// repeated returns a text, list or tuple several times.
func (r *run) repeated(x, y Value) (Value, bool, error) {
	if _, ok := index(x); ok {
		x, y = y, x
	}
	n, ok := index(y)
	if !ok {
		return nil, false, nil
	}
	n = max(n, 0)
	if s, ok := x.(string); ok {
		if err := r.times(len(s), n); err != nil {
			return nil, false, err
		}
		return strings.Repeat(s, int(n)), true, nil
	}
	list, ok := items(x)
	if !ok {
		return nil, false, nil
	}
	if err := r.times(16*len(list), n); err != nil {
		return nil, false, err
	}
	out := make([]Value, 0, len(list)*int(n))
	for range n {
		if len(list) == 0 {
			break
		}
		out = append(out, list...)
	}
	if _, ok := x.(*tuple); ok {
		return &tuple{items: out}, true, nil
	}
	return &List{out}, true, nil
}

// times counts n times so many bytes.
func (r *run) times(size int, n int64) error {
	if high, low := bits.Mul64(uint64(size), uint64(n)); high > 0 || low > MaxBytes {
		return errBytes
	}
	return r.make(size * int(n))
}

func integers(op string, a, b int64) (Value, error) {
	switch op {
	case "+", "-", "*", "**":
		if op == "**" && b < 0 {
			return floats(op, float64(a), float64(b))
		}
		return exactly(op, a, b)
	}
	if b == 0 {
		return nil, errors.New("a division by 0")
	}
	if op == "/" {
		f, _ := new(big.Rat).SetFrac64(a, b).Float64()
		return f, nil
	}
	if a == math.MinInt64 && b == -1 {
		return nil, errWide
	}
	q, m := a/b, a%b
	if m != 0 && (m < 0) != (b < 0) {
		q, m = q-1, m+b
	}
	if op == "%" {
		return m, nil
	}
	return q, nil
}

// exactly computes what may become too wide.
func exactly(op string, a, b int64) (Value, error) {
	x, y, z := big.NewInt(a), big.NewInt(b), new(big.Int)
	switch op {
	case "+":
		z.Add(x, y)
	case "-":
		z.Sub(x, y)
	case "*":
		z.Mul(x, y)
	case "**":
		if a < -1 || a > 1 {
			if b > 63 {
				return nil, errWide
			}
		} else if b > 2 {
			y.SetInt64(2 + b%2)
		}
		z.Exp(x, y, nil)
	}
	if !z.IsInt64() {
		return nil, errWide
	}
	return z.Int64(), nil
}

func floats(op string, a, b float64) (Value, error) {
	switch op {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "**":
		if v := math.Pow(a, b); !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v, nil
		}
		return nil, errors.New("a power is no number")
	}
	if b == 0 {
		return nil, errors.New("a division by 0")
	}
	if op == "/" {
		return a / b, nil
	}
	m := math.Mod(a, b)
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	} else if m == 0 {
		m = math.Copysign(0, b)
	}
	if op == "%" {
		return m, nil
	}
	q := (a - m) / b
	if f := math.Floor(q); q != 0 {
		if q-f > 0.5 {
			f++
		}
		return f, nil
	}
	return math.Copysign(0, a/b), nil
}

// compare reports whether x op y holds.
func (r *run) compare(op string, x, y Value) (bool, error) {
	switch op {
	case "==":
		return r.equal(x, y)
	case "!=":
		is, err := r.equal(x, y)
		return !is, err
	case "in":
		return r.contains(y, x)
	case "not in":
		is, err := r.contains(y, x)
		return !is, err
	}
	c, err := r.order(x, y, 0)
	switch {
	case err != nil || c == unordered:
		return false, err
	case op == "<":
		return c < 0, nil
	case op == "<=":
		return c <= 0, nil
	case op == ">":
		return c > 0, nil
	}
	return c >= 0, nil
}

// unordered is what order says of a number that is none.
const unordered = 2

// order compares numbers, texts, and lists of them.
func (r *run) order(x, y Value, depth int) (int, error) {
	if depth > maxValues {
		return 0, errDeep
	}
	x, y = plain(x), plain(y)
	if s, ok := x.(string); ok {
		if t, ok := y.(string); ok {
			return strings.Compare(s, t), r.search(min(len(s), len(t)))
		}
	}
	if isNumber(x) && isNumber(y) {
		return orderNumbers(x, y), nil
	}
	a, okA := items(x)
	b, okB := items(y)
	if !okA || !okB || typeName(x) != typeName(y) {
		return 0, fmt.Errorf("a %s and a %s have no order", typeName(x), typeName(y))
	}
	for i := range min(len(a), len(b)) {
		if err := r.spend(1); err != nil {
			return 0, err
		}
		same, err := r.same(a[i], b[i], depth+1)
		if err != nil {
			return 0, err
		}
		if !same {
			return r.order(a[i], b[i], depth+1)
		}
	}
	return cmp.Compare(len(a), len(b)), nil
}

func orderNumbers(x, y Value) int {
	f, isF := x.(float64)
	g, isG := y.(float64)
	if isF && math.IsNaN(f) || isG && math.IsNaN(g) {
		return unordered
	}
	switch {
	case isF && math.IsInf(f, 0):
		return cmp.Compare(f, map[bool]float64{true: g}[isG])
	case isG && math.IsInf(g, 0):
		return cmp.Compare(0, g)
	}
	return exact(x).Cmp(exact(y))
}

// exact returns a finite number as a fraction.
func exact(v Value) *big.Rat {
	switch v := v.(type) {
	case float64:
		return new(big.Rat).SetFloat64(v)
	case *big.Int:
		return new(big.Rat).SetInt(v)
	}
	n, _ := index(v)
	return new(big.Rat).SetInt64(n)
}

// equal reports whether two values are equal in Python.
func (r *run) equal(x, y Value) (bool, error) { return r.same(x, y, 0) }

func (r *run) same(x, y Value, depth int) (bool, error) {
	if err := r.spend(1); err != nil || depth > maxValues {
		return false, errors.Join(err, map[bool]error{true: errDeep}[depth > maxValues])
	}
	x, y = plain(x), plain(y)
	switch x := x.(type) {
	case nil:
		return y == nil, nil
	case string:
		t, ok := y.(string)
		return ok && x == t, r.search(min(len(x), len(t)))
	case int64:
		if n, ok := y.(int64); ok {
			return x == n, nil
		}
	case *undefined:
		_, ok := y.(*undefined)
		return ok, nil
	case *Dict:
		d, ok := y.(*Dict)
		if !ok || len(d.keys) != len(x.keys) {
			return false, nil
		}
		return r.sameDict(x, d, depth)
	case *span:
		s, ok := y.(*span)
		return ok && x.n == s.n && (x.n == 0 || x.start == s.start && (x.n == 1 || x.step == s.step)), nil
	case *view:
		return false, errors.New("what keys, values and items give is not compared: make lists of it")
	}
	if isNumber(x) {
		return isNumber(y) && orderNumbers(x, y) == 0, nil
	}
	a, okA := items(x)
	if !okA {
		return x == y, nil // of functions and the like, each equals itself
	}
	b, okB := items(y)
	if !okB || typeName(x) != typeName(y) || len(a) != len(b) {
		return false, nil
	}
	for i := range a {
		if is, err := r.same(a[i], b[i], depth+1); err != nil || !is {
			return false, err
		}
	}
	return true, nil
}

func (r *run) sameDict(x, y *Dict, depth int) (bool, error) {
	for h, i := range x.at {
		j, ok := y.at[h]
		if !ok {
			return false, nil
		}
		if is, err := r.same(x.values[i], y.values[j], depth+1); err != nil || !is {
			return false, err
		}
	}
	return true, nil
}

// contains reports whether v is in a value.
func (r *run) contains(in, v Value) (bool, error) {
	switch x := plain(in).(type) {
	case string:
		s, ok := plain(v).(string)
		if !ok {
			return false, fmt.Errorf("in a text%w", unfit(v))
		}
		return strings.Contains(x, s), r.search(len(x))
	case *Dict:
		h, err := hashable(v)
		if err != nil {
			return false, err
		}
		_, ok := x.get(h)
		return ok, nil
	}
	it, err := iterate(in)
	if err != nil {
		return false, err
	}
	for {
		x, ok, err := it.next()
		if err != nil || !ok {
			return false, err
		}
		if is, err := r.equal(x, v); err != nil || is {
			return is, err
		}
	}
}
