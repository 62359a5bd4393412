package jinja

import (
	"github.com/tally-network/tally/format/chat/jinja/syntax"

	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// method returns a method of a text, list, tuple or dict. What changes a list or dict is not there,
// as in transformers.
func method(x Value, id string) (Value, bool, error) {
	var b builtin
	switch x := x.(type) {
	case string:
		if id == "format" {
			return &function{id, func(r *run, a arguments) (Value, error) { return r.format(x, a) }}, true, nil
		}
		b = textMethods[id]
		if b.run == nil && otherMethods[id] {
			return nil, false, fmt.Errorf("the method %s of a text is not supported", id)
		}
	case *Dict:
		b = dictMethods[id]
		if b.run == nil && changing[id] {
			return missing(x, id), true, nil
		}
	case *List, *tuple, *span:
		b = listMethods[id]
		_, isList := x.(*List)
		if !isList && id == "copy" {
			return nil, false, nil
		}
		if b.run == nil && isList && changing[id] {
			return missing(x, id), true, nil
		}
	}
	if b.run == nil {
		return nil, false, nil
	}
	return &function{id, func(r *run, a arguments) (Value, error) { return b.call(r, []Value{x}, a) }}, true, nil
}

// changing are the methods by which Python changes dicts and lists.
var changing = set("clear pop popitem setdefault update append reverse insert sort extend remove fromkeys")

// otherMethods are those of a text that are not supported.
var otherMethods = set("casefold encode expandtabs format_map isidentifier isnumeric isprintable maketrans translate")

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

var dictMethods = map[string]builtin{
	"keys":   {params: "_d", need: 1, run: func(_ *run, a []Value) (Value, error) { return &view{a[0].(*Dict), "keys"}, nil }},
	"values": {params: "_d", need: 1, run: func(_ *run, a []Value) (Value, error) { return &view{a[0].(*Dict), "values"}, nil }},
	"items":  {params: "_d", need: 1, run: func(_ *run, a []Value) (Value, error) { return &view{a[0].(*Dict), "items"}, nil }},
	"copy":   {params: "_d", need: 1, run: func(r *run, a []Value) (Value, error) { return r.newDict(arguments{list: a}) }},
	"get": {params: "_d _key _default", need: 2, run: func(_ *run, a []Value) (Value, error) {
		h, err := hashable(a[1])
		if err != nil {
			return nil, err
		}
		v, ok := a[0].(*Dict).get(h)
		if !ok && given(a[2]) {
			return a[2], nil
		}
		return v, nil
	}, isMarked: true},
}

var listMethods = map[string]builtin{
	"copy": {params: "_l", need: 1, run: func(r *run, a []Value) (Value, error) {
		all, err := r.collect(a[0])
		return &List{all}, err
	}},
	"count": {params: "_l _v", need: 2, run: func(r *run, a []Value) (Value, error) {
		n := int64(0)
		all, err := r.collect(a[0])
		if err != nil {
			return nil, err
		}
		for _, x := range all {
			is, err := r.equal(x, a[1])
			if err != nil {
				return nil, err
			}
			n += toInt(is)
		}
		return n, nil
	}},
	"index": {params: "_l _v", need: 2, run: func(r *run, a []Value) (Value, error) {
		all, err := r.collect(a[0])
		if err != nil {
			return nil, err
		}
		for i, x := range all {
			if is, err := r.equal(x, a[1]); err != nil || is {
				return int64(i), err
			}
		}
		return nil, errors.New("no such item")
	}},
}

// onText makes a method that maps texts.
func onText(f func(s string) Value) builtin {
	return builtin{params: "_s", need: 1, run: func(r *run, a []Value) (Value, error) {
		s := a[0].(string)
		return f(s), r.make(len(s))
	}}
}

func ofEach(f func(c rune) bool) builtin { return onText(func(s string) Value { return every(s, f) }) }

var textMethods = map[string]builtin{
	"upper":      onText(func(s string) Value { return upper(s) }),
	"lower":      onText(func(s string) Value { return lower(s) }),
	"capitalize": onText(func(s string) Value { return capitalize(s) }),
	"title":      onText(func(s string) Value { return title(s) }),
	"swapcase":   onText(func(s string) Value { return swapcase(s) }),
	"isupper":    onText(func(s string) Value { l, u := cases(s); return u && !l }),
	"islower":    onText(func(s string) Value { l, u := cases(s); return l && !u }),
	"isspace":    ofEach(syntax.IsSpace),
	"isdigit":    ofEach(isDigit),
	"isdecimal":  ofEach(unicode.IsDigit),
	"isalpha":    ofEach(unicode.IsLetter),
	"isalnum":    ofEach(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }),
	"isascii":    onText(func(s string) Value { return isASCII(s) }),
	"istitle":    onText(func(s string) Value { l, u := cases(s); return (l || u) && title(s) == s }),
	"strip":      {params: "_s _chars", need: 1, run: func(r *run, a []Value) (Value, error) { return r.strip(a, true, true) }},
	"lstrip":     {params: "_s _chars", need: 1, run: func(r *run, a []Value) (Value, error) { return r.strip(a, true, false) }},
	"rstrip":     {params: "_s _chars", need: 1, run: func(r *run, a []Value) (Value, error) { return r.strip(a, false, true) }},
	"split":      {params: "_s sep maxsplit", need: 1, run: func(r *run, a []Value) (Value, error) { return r.split(a, false) }},
	"rsplit":     {params: "_s sep maxsplit", need: 1, run: func(r *run, a []Value) (Value, error) { return r.split(a, true) }},
	"splitlines": {params: "_s keepends", need: 1, run: func(r *run, a []Value) (Value, error) {
		s := a[0].(string)
		if err := r.parts(s, endsLine); err != nil {
			return nil, err
		}
		return r.listOf(lines(s, given(a[1]) && truth(a[1])))
	}},
	"startswith":   {params: "_s _prefix _start _end", need: 2, run: func(r *run, a []Value) (Value, error) { return r.affix(a, strings.HasPrefix) }},
	"endswith":     {params: "_s _suffix _start _end", need: 2, run: func(r *run, a []Value) (Value, error) { return r.affix(a, strings.HasSuffix) }},
	"removeprefix": {params: "_s _prefix", need: 2, run: func(r *run, a []Value) (Value, error) { return r.remove(a, strings.TrimPrefix) }},
	"removesuffix": {params: "_s _suffix", need: 2, run: func(r *run, a []Value) (Value, error) { return r.remove(a, strings.TrimSuffix) }},
	"replace": {params: "_s _old _new _count", need: 3, run: func(r *run, a []Value) (Value, error) {
		s, err := texts(a[:3])
		if err != nil {
			return nil, err
		}
		return r.replace(s[0], s[1], s[2], a[3])
	}},
	"find":       {params: "_s _sub _start _end", need: 2, run: func(r *run, a []Value) (Value, error) { return r.find(a, strings.Index, false) }},
	"rfind":      {params: "_s _sub _start _end", need: 2, run: func(r *run, a []Value) (Value, error) { return r.find(a, strings.LastIndex, false) }},
	"index":      {params: "_s _sub _start _end", need: 2, run: func(r *run, a []Value) (Value, error) { return r.find(a, strings.Index, true) }},
	"rindex":     {params: "_s _sub _start _end", need: 2, run: func(r *run, a []Value) (Value, error) { return r.find(a, strings.LastIndex, true) }},
	"count":      {params: "_s _sub _start _end", need: 2, run: func(r *run, a []Value) (Value, error) { return r.occurrences(a) }},
	"join":       {params: "_s _items", need: 2, run: func(r *run, a []Value) (Value, error) { return r.joinTexts(a[0].(string), a[1], false) }},
	"partition":  {params: "_s _sep", need: 2, run: func(r *run, a []Value) (Value, error) { return r.partition(a, strings.Index, false) }},
	"rpartition": {params: "_s _sep", need: 2, run: func(r *run, a []Value) (Value, error) { return r.partition(a, strings.LastIndex, true) }},
	"center":     {params: "_s _width _fill", need: 2, run: func(r *run, a []Value) (Value, error) { return r.pad(a, '^') }},
	"ljust":      {params: "_s _width _fill", need: 2, run: func(r *run, a []Value) (Value, error) { return r.pad(a, '<') }},
	"rjust":      {params: "_s _width _fill", need: 2, run: func(r *run, a []Value) (Value, error) { return r.pad(a, '>') }},
	"zfill":      {params: "_s _width", need: 2, run: func(r *run, a []Value) (Value, error) { return r.zfill(a) }},
}

// texts returns values that have to be texts.
func texts(a []Value) ([]string, error) {
	out := make([]string, len(a))
	for i, v := range a {
		s, ok := plain(v).(string)
		if !ok {
			return nil, fmt.Errorf("a text is wanted%w", unfit(v))
		}
		out[i] = s
	}
	return out, nil
}

// listOf makes a list of parts that have been counted.
func (r *run) listOf(all []string) (Value, error) {
	l := &List{make([]Value, len(all))}
	for i, s := range all {
		l.Items[i] = s
	}
	return l, nil
}

// strip takes characters off the ends of a text: those of a second text, or white space.
func (r *run) strip(a []Value, left, right bool) (Value, error) {
	s, is := a[0].(string), syntax.IsSpace
	if given(a[1]) && a[1] != nil {
		chars, ok := a[1].(string)
		if !ok {
			return nil, fmt.Errorf("a text is wanted%w", unfit(a[1]))
		}
		if err := r.times(len(s)/64+1, int64(len(chars))); err != nil {
			return nil, err
		}
		is = func(c rune) bool { return strings.ContainsRune(chars, c) }
	}
	if err := r.make(len(s)); err != nil {
		return nil, err
	}
	if left {
		s = strings.TrimLeftFunc(s, is)
	}
	if right {
		s = strings.TrimRightFunc(s, is)
	}
	return s, nil
}

// part returns the slice of a text that optional bounds cut out, and where it begins, in
// characters and in bytes. It is not there if it begins behind the text's end.
func part(s string, from, to Value) (cut string, at, byteAt int, ok bool, err error) {
	n := int64(utf8.RuneCountInString(s))
	bounds := [2]int64{0, n}
	for i, v := range []Value{from, to} {
		if !given(v) || v == nil {
			continue
		}
		b, ok := index(v)
		if !ok {
			return "", 0, 0, false, fmt.Errorf("an index%w", unfit(v))
		}
		if b < 0 {
			b = max(b, -n) + n
		}
		bounds[i] = b
	}
	if bounds[0] > n {
		return "", 0, 0, false, nil
	}
	low, high := bounds[0], min(bounds[1], n)
	if high < low {
		return "", 0, 0, false, nil
	}
	byteAt = runeAt(s, int(low))
	return s[byteAt:][:runeAt(s[byteAt:], int(high-low))], int(low), byteAt, true, nil
}

func (r *run) affix(a []Value, has func(s, affix string) bool) (Value, error) {
	s, _, _, inside, err := part(a[0].(string), a[2], a[3])
	if err != nil {
		return nil, err
	}
	wanted := []Value{a[1]}
	if t, ok := a[1].(*tuple); ok {
		wanted = t.items
	}
	all, err := texts(wanted)
	if err != nil {
		return nil, err
	}
	for _, w := range all {
		if inside && has(s, w) {
			return true, r.search(len(s))
		}
	}
	return false, r.search(len(s))
}

func (r *run) remove(a []Value, trim func(s, affix string) string) (Value, error) {
	s, err := texts(a)
	if err != nil {
		return nil, err
	}
	return trim(s[0], s[1]), r.search(len(s[0]))
}

// replace replaces at most so many occurrences.
func (r *run) replace(s, old, by string, count Value) (Value, error) {
	most := int64(-1)
	if given(count) && count != nil {
		var ok bool
		if most, ok = index(count); !ok {
			return nil, fmt.Errorf("the number of replacements%w", unfit(count))
		}
	}
	found := int64(strings.Count(s, old))
	if most >= 0 {
		found = min(found, most)
	}
	if err := r.times(len(by), found); err != nil {
		return nil, err
	}
	return strings.Replace(s, old, by, int(found)), r.make(len(s))
}

func (r *run) find(a []Value, find func(s, sub string) int, must bool) (Value, error) {
	s, at, _, inside, err := part(a[0].(string), a[2], a[3])
	if err != nil {
		return nil, err
	}
	sub, err := texts(a[1:2])
	if err != nil {
		return nil, err
	}
	i := -1
	if inside {
		i = find(s, sub[0])
	}
	switch {
	case i >= 0:
		return int64(at + utf8.RuneCountInString(s[:i])), r.search(len(s))
	case must:
		return nil, errors.New("no such text in it")
	}
	return int64(-1), r.search(len(s))
}

func (r *run) occurrences(a []Value) (Value, error) {
	s, _, _, inside, err := part(a[0].(string), a[2], a[3])
	if err != nil {
		return nil, err
	}
	sub, err := texts(a[1:2])
	if err != nil || !inside {
		return int64(0), err
	}
	return int64(strings.Count(s, sub[0])), r.search(len(s))
}

// joinTexts joins the items of a value. If any may be joined, their texts are.
func (r *run) joinTexts(sep string, v Value, any bool) (Value, error) {
	all, err := r.collect(v)
	if err != nil {
		return nil, err
	}
	list := make([]string, len(all))
	for i, x := range all {
		s, ok := plain(x).(string)
		switch {
		case any:
			if s, err = r.str(x); err != nil {
				return nil, err
			}
		case !ok:
			return nil, fmt.Errorf("a text is wanted%w", unfit(x))
		}
		if err := r.make(len(s) + len(sep)); err != nil {
			return nil, err
		}
		list[i] = s
	}
	return strings.Join(list, sep), nil
}

func (r *run) partition(a []Value, find func(s, sub string) int, last bool) (Value, error) {
	s, err := texts(a)
	if err != nil {
		return nil, err
	}
	if s[1] == "" {
		return nil, errors.New("the separator is empty")
	}
	parts := []Value{s[0], "", ""}
	if last {
		parts = []Value{"", "", s[0]}
	}
	if i := find(s[0], s[1]); i >= 0 {
		parts = []Value{s[0][:i], s[1], s[0][i+len(s[1]):]}
	}
	return &tuple{items: parts}, r.make(64 + len(s[0]))
}

// pad fills a text up to a width, at the side that is told.
func (r *run) pad(a []Value, side byte) (Value, error) {
	s := a[0].(string)
	width, ok := index(a[1])
	fill := " "
	if given(a[2]) {
		var isText bool
		fill, isText = a[2].(string)
		ok = ok && isText && utf8.RuneCountInString(fill) == 1
	}
	if !ok {
		return nil, errors.New("it wants a width, and one character")
	}
	n := width - int64(utf8.RuneCountInString(s))
	if n <= 0 {
		return s, nil
	}
	if err := r.times(len(fill), n); err != nil {
		return nil, err
	}
	left := int64(0)
	switch side {
	case '>':
		left = n
	case '^':
		left = n/2 + n&width&1
	}
	return strings.Repeat(fill, int(left)) + s + strings.Repeat(fill, int(n-left)), r.make(len(s))
}

func (r *run) zfill(a []Value) (Value, error) {
	s := a[0].(string)
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	width, ok := index(a[1])
	if !ok {
		return nil, errors.New("it wants a width")
	}
	v, err := r.pad([]Value{s, width - int64(len(sign)), "0"}, '>')
	if err != nil {
		return nil, err
	}
	return sign + v.(string), nil
}
