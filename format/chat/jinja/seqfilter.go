package jinja

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

func ofWord(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }

// getter returns what reads an attribute, such as "function.name". If it has a default, that is
// what undefined ones are.
func (r *run) getter(attribute, or Value) func(v Value) (Value, error) {
	path := []Value{attribute}
	if s, ok := attribute.(string); ok {
		path = nil
		for part := range strings.SplitSeq(s, ".") {
			if n, err := strconv.ParseInt(part, 10, 64); err == nil && every(part, unicode.IsDigit) {
				path = append(path, n)
				continue
			}
			path = append(path, part)
		}
	}
	if attribute == nil || !given(attribute) {
		path = nil
	}
	return func(v Value) (Value, error) {
		for _, at := range path {
			var err error
			if v, err = r.item(v, at); err != nil {
				return nil, err
			}
			if isUndefined(v) && or != nil && given(or) {
				v = or
			}
		}
		return v, nil
	}
}

// next asks an iterator for an item, on behalf of another one: such may be in each other.
func (r *run) next(it *iterator) (Value, bool, error) {
	if err := r.enter(); err != nil {
		return nil, false, err
	}
	v, ok, err := it.next()
	r.depth--
	return v, ok, err
}

// through returns what f makes of each item, when it is asked for.
func (r *run) through(v Value, f func(v Value) (Value, error)) (Value, error) {
	it, err := iterate(v)
	if err != nil {
		return nil, err
	}
	return &iterator{func() (Value, bool, error) {
		v, ok, err := r.next(it)
		if err != nil || !ok {
			return nil, false, err
		}
		v, err = f(v)
		return v, true, err
	}}, nil
}

// lazily returns what make gives, which is called when the first item is asked for.
func lazily(v Value, make func() (Value, error)) (Value, error) {
	if !truth(v) {
		return count(0, nil), nil
	}
	var it *iterator
	return &iterator{func() (Value, bool, error) {
		if it == nil {
			made, err := make()
			if err != nil {
				return nil, false, err
			}
			it = made.(*iterator)
		}
		return it.next()
	}}, nil
}

func mapFilter(r *run, v Value, a arguments) (Value, error) {
	return lazily(v, func() (Value, error) {
		at := slices.Index(a.names, "attribute")
		if len(a.list) == 0 && at >= 0 {
			var or Value
			for i, id := range a.names {
				switch id {
				case "attribute":
				case "default":
					or = a.named[i]
				default:
					return nil, fmt.Errorf("it takes no argument %.100q", id)
				}
			}
			return r.through(v, r.getter(a.named[at], or))
		}
		if len(a.list) == 0 {
			return nil, errors.New("it wants a filter, or an attribute")
		}
		id, ok := a.list[0].(string)
		if !ok {
			return nil, errors.New("the filter's name is no text")
		}
		return r.through(v, func(v Value) (Value, error) {
			if err := r.spend(1); err != nil {
				return nil, err
			}
			return r.filter(id, v, arguments{a.list[1:], a.names, a.named})
		})
	})
}

// selecting makes the filters that leave the items of which a test holds, or does not.
func selecting(ofAttribute, wanted bool) func(r *run, v Value, a arguments) (Value, error) {
	return func(r *run, v Value, a arguments) (Value, error) {
		return lazily(v, func() (Value, error) {
			get := func(v Value) (Value, error) { return v, nil }
			rest := a.list
			if ofAttribute {
				if len(rest) == 0 {
					return nil, errors.New("it wants an attribute")
				}
				get, rest = r.getter(rest[0], nil), rest[1:]
			}
			it, err := iterate(v)
			if err != nil {
				return nil, err
			}
			holds := func(v Value) (bool, error) {
				v, err := get(v)
				if err != nil || len(rest) == 0 {
					return truth(v), err
				}
				id, ok := rest[0].(string)
				if !ok {
					return false, errors.New("the test's name is no text")
				}
				is, err := r.test(id, v, arguments{rest[1:], a.names, a.named})
				return truth(is), err
			}
			return r.filterItems(it, holds, wanted), nil
		})
	}
}

func (r *run) filterItems(it *iterator, holds func(v Value) (bool, error), wanted bool) *iterator {
	return &iterator{func() (Value, bool, error) {
		for {
			v, ok, err := r.next(it)
			if err != nil || !ok {
				return nil, false, err
			}
			is, err := holds(v)
			if err != nil || is == wanted {
				return v, err == nil, err
			}
		}
	}}
}

func firstFilter(_ *run, a []Value) (Value, error) {
	it, err := iterate(a[0])
	if err != nil {
		return nil, err
	}
	v, ok, err := it.next()
	if err == nil && !ok {
		v = &undefined{"there is no first item"}
	}
	return v, err
}

func lastFilter(r *run, a []Value) (Value, error) {
	all, err := r.backwards(a[0])
	if err == nil && len(all) == 0 {
		return &undefined{"there is no last item"}, nil
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// backwards returns the items from the last to the first, of what Python can reverse.
func (r *run) backwards(v Value) ([]Value, error) {
	if _, ok := length(v); !ok {
		return nil, fmt.Errorf("the other way round%w", unfit(v))
	}
	all, err := r.collect(v)
	if err != nil {
		return nil, err
	}
	all = slices.Clone(all)
	slices.Reverse(all)
	return all, nil
}

func listFilter(r *run, a []Value) (Value, error) {
	all, err := r.collect(a[0])
	return &List{all}, err
}

func reverseFilter(r *run, a []Value) (Value, error) {
	switch v := a[0].(type) {
	case string:
		back := int64(-1)
		return r.cut(v, [3]*int64{nil, nil, &back})
	case *iterator:
		all, err := r.collect(v)
		slices.Reverse(all)
		return &List{all}, err
	}
	all, err := r.backwards(a[0])
	if err != nil {
		return nil, err
	}
	return count(len(all), func(i int) Value { return all[i] }), nil
}

func itemsFilter(_ *run, a []Value) (Value, error) {
	switch v := a[0].(type) {
	case *undefined:
		return count(0, nil), nil
	case *Dict:
		return count(len(v.keys), (&view{v, "items"}).entry), nil
	}
	return nil, fmt.Errorf("a dict is wanted%w", unfit(a[0]))
}

// folded puts texts in lower case, unless case counts.
func folded(v, caseCounts Value) Value {
	if s, ok := v.(string); ok && !(given(caseCounts) && truth(caseCounts)) {
		return lower(s)
	}
	return v
}

// keysOf returns by what items are ordered.
func (r *run) keysOf(all []Value, get func(v Value) (Value, error), caseCounts Value) ([]Value, error) {
	keys := make([]Value, len(all))
	for i, v := range all {
		k, err := get(v)
		if err != nil {
			return nil, err
		}
		if s, ok := k.(string); ok {
			if err := r.make(len(s)); err != nil {
				return nil, err
			}
		}
		keys[i] = folded(k, caseCounts)
	}
	return keys, r.make(32 * len(all))
}

func dictSort(r *run, a []Value) (Value, error) {
	d, ok := a[0].(*Dict)
	if !ok {
		return nil, fmt.Errorf("a dict is wanted%w", unfit(a[0]))
	}
	keys := d.keys
	switch otherwise(a[2], "key") {
	case Value("key"):
	case Value("value"):
		keys = d.values
	default:
		return nil, errors.New("it sorts by key or by value")
	}
	all, err := r.collect(&view{d, "items"})
	if err != nil {
		return nil, err
	}
	if keys, err = r.keysOf(keys, func(v Value) (Value, error) { return v, nil }, a[1]); err != nil {
		return nil, err
	}
	all, err = sortedKeys(r, all, keys, given(a[3]) && truth(a[3]))
	return &List{all}, err
}

func sortFilter(r *run, a []Value) (Value, error) {
	all, err := r.collect(a[0])
	if err != nil {
		return nil, err
	}
	attributes := []Value{otherwise(a[3], nil)}
	if s, ok := a[3].(string); ok {
		attributes = nil
		for part := range strings.SplitSeq(s, ",") {
			attributes = append(attributes, part)
		}
	}
	var gets []func(v Value) (Value, error)
	for _, at := range attributes {
		gets = append(gets, r.getter(at, nil))
	}
	keys, err := r.keysOf(all, func(v Value) (Value, error) {
		key := &tuple{}
		for _, get := range gets {
			k, err := get(v)
			if err != nil {
				return nil, err
			}
			key.items = append(key.items, folded(k, a[2]))
		}
		return key, r.make(64 * len(gets))
	}, a[2])
	if err != nil {
		return nil, err
	}
	all, err = sortedKeys(r, all, keys, given(a[1]) && truth(a[1]))
	return &List{all}, err
}

func uniqueFilter(r *run, a []Value) (Value, error) {
	it, err := iterate(a[0])
	if err != nil {
		return nil, err
	}
	get := r.getter(a[2], nil)
	seen := map[any]bool{}
	return r.filterItems(it, func(v Value) (bool, error) {
		key, err := get(v)
		if err != nil {
			return false, err
		}
		h, err := hashable(folded(key, a[1]))
		if err != nil {
			return false, err
		}
		isNew := !seen[h]
		seen[h] = true
		return isNew, r.make(64)
	}, true), nil
}

// extreme makes the filter that gives the least or greatest item.
func extreme(sign int) func(r *run, a []Value) (Value, error) {
	return func(r *run, a []Value) (Value, error) {
		all, err := r.collect(a[0])
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return &undefined{"there is no item"}, nil
		}
		keys, err := r.keysOf(all, r.getter(a[2], nil), a[1])
		if err != nil {
			return nil, err
		}
		best := 0
		for i := range all[1:] {
			c, err := r.order(keys[i+1], keys[best], 0)
			if err != nil {
				return nil, err
			}
			if c == sign {
				best = i + 1
			}
		}
		return all[best], nil
	}
}

func sumFilter(r *run, a []Value) (Value, error) {
	all, err := r.collect(a[0])
	if err != nil {
		return nil, err
	}
	sum := otherwise(a[2], int64(0))
	if _, ok := sum.(string); ok {
		return nil, errors.New("texts are joined, not summed")
	}
	get := r.getter(a[1], nil)
	for _, v := range all {
		if v, err = get(v); err != nil {
			return nil, err
		}
		if sum, err = r.operate("+", sum, v); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// groups makes an iterator over lists.
func groups(all [][]Value) Value {
	return count(len(all), func(i int) Value { return &List{all[i]} })
}

func batchFilter(r *run, a []Value) (Value, error) {
	all, err := r.collect(a[0])
	n, ok := index(a[1])
	if err != nil || !ok || n < 1 {
		return nil, cmpErr(err, errors.New("it wants a number of items"))
	}
	var out [][]Value
	for chunk := range slices.Chunk(all, int(min(n, int64(len(all)+1)))) {
		out = append(out, slices.Clone(chunk))
	}
	if len(out) > 0 && given(a[2]) && a[2] != nil {
		lack := n - int64(len(out[len(out)-1]))
		if err := r.times(16, lack); err != nil {
			return nil, err
		}
		for range lack {
			out[len(out)-1] = append(out[len(out)-1], a[2])
		}
	}
	return groups(out), r.make(64 * len(all))
}

func sliceFilter(r *run, a []Value) (Value, error) {
	all, err := r.collect(a[0])
	n, ok := index(a[1])
	if err != nil || !ok || n < 1 {
		return nil, cmpErr(err, errors.New("it wants a number of slices"))
	}
	if err := r.times(64, n); err != nil {
		return nil, err
	}
	size, more := len(all)/int(n), len(all)%int(n)
	out := make([][]Value, n)
	for i := range out {
		take := size
		if i < more {
			take++
		}
		out[i], all = slices.Clone(all[:take]), all[take:]
		if i >= more && given(a[2]) && a[2] != nil {
			out[i] = append(out[i], a[2])
		}
	}
	return groups(out), nil
}

func groupBy(r *run, a []Value) (Value, error) {
	all, err := r.collect(a[0])
	if err != nil {
		return nil, err
	}
	get := r.getter(a[1], otherwise(a[2], nil))
	keys, err := r.keysOf(all, get, a[3])
	if err != nil {
		return nil, err
	}
	pairs := make([]Value, len(all))
	for i := range all {
		pairs[i] = &tuple{items: []Value{keys[i], all[i]}}
	}
	if pairs, err = sortedKeys(r, pairs, keys, false); err != nil {
		return nil, err
	}
	out := &List{}
	var last Value
	for i, p := range pairs {
		pair := p.(*tuple).items
		same := false
		if i > 0 {
			if same, err = r.equal(last, pair[0]); err != nil {
				return nil, err
			}
		}
		if !same {
			key, err := get(pair[1])
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, &tuple{[]Value{key, &List{}}, []string{"grouper", "list"}})
		}
		group := out.Items[len(out.Items)-1].(*tuple).items[1].(*List)
		group.Items = append(group.Items, pair[1])
		last = pair[0]
	}
	return out, r.make(128 * len(all))
}
