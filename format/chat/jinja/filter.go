package jinja

import (
	"github.com/tally-network/tally/format/chat/jinja/syntax"

	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func evalFilter(f syntax.Filter, r *run, s *scope) (Value, error) {
	v, err := r.eval(f.X, s)
	if err != nil {
		return nil, err
	}
	return applyFilter(f, r, v, s)
}

// applyFilter computes the filter's arguments, and filters v.
func applyFilter(f syntax.Filter, r *run, v Value, s *scope) (Value, error) {
	a, err := r.arguments(f.Args, s)
	if err != nil {
		return nil, err
	}
	return r.filter(f.ID, v, a)
}

func (r *run) filter(id string, v Value, a arguments) (Value, error) {
	err := fmt.Errorf("no filter is called %.100q", id)
	var out Value
	switch b, isOpen := filters[id], openFilters[id]; {
	case isOpen != nil:
		out, err = isOpen(r, v, a)
	case b.known():
		out, err = b.call(r, []Value{v}, a)
	case known[id]:
		err = errors.New("this filter is not supported")
	}
	if err != nil {
		return nil, fmt.Errorf("filter %.100s: %w", id, err)
	}
	if _, ok := v.(markup); ok && keepMark[id] {
		return remarked(out), nil
	}
	return out, nil
}

// known are filters of Jinja that are not supported: they make HTML, are random, or no template of
// a chat has them.
var known = set("e escape filesizeformat forceescape pprint random striptags truncate urlencode urlize wordwrap xmlattr")

var (
	filters     map[string]builtin
	openFilters map[string]func(r *run, v Value, a arguments) (Value, error) // which read their arguments themselves
)

func init() { // some call others
	filters = map[string]builtin{
		"tojson": {params: "x ensure_ascii indent separators sort_keys", need: 1, run: toJSON},
		"trim": {params: "value chars", need: 1, run: func(r *run, a []Value) (Value, error) {
			return r.onStr(a, func(a []Value) (Value, error) { return r.strip(a, true, true) })
		}},
		"upper":      {params: "s", need: 1, run: mapped(upper)},
		"lower":      {params: "s", need: 1, run: mapped(lower)},
		"capitalize": {params: "s", need: 1, run: mapped(capitalize)},
		"title":      {params: "s", need: 1, run: mapped(titleWords)},
		"safe": {params: "value", need: 1, run: func(r *run, a []Value) (Value, error) {
			s, err := r.str(a[0])
			return markup(s), err
		}},
		"string":    {params: "object", need: 1, run: mapped(func(s string) string { return s })},
		"replace":   {params: "s old new count", need: 3, run: replaceFilter},
		"indent":    {params: "s width first blank", need: 1, run: indentFilter},
		"center":    {params: "value width", need: 1, run: centerFilter},
		"wordcount": {params: "s", need: 1, run: countWords},
		"default":   {params: "value default_value boolean", need: 1, run: defaultFilter, isMarked: true},
		"int":       {params: "value default base", need: 1, run: intFilter},
		"float":     {params: "value default", need: 1, run: floatFilter},
		"abs":       {params: "_x", need: 1, run: absFilter},
		"round":     {params: "value precision method", need: 1, run: roundFilter},
		"attr":      {params: "obj name", need: 2, run: attrFilter},
		"count":     {params: "_obj", need: 1, run: lengthFilter},
		"join":      {params: "value d attribute", need: 1, run: joinFilter},
		"first":     {params: "seq", need: 1, run: firstFilter},
		"last":      {params: "seq", need: 1, run: lastFilter},
		"list":      {params: "value", need: 1, run: listFilter},
		"reverse":   {params: "value", need: 1, run: reverseFilter},
		"items":     {params: "value", need: 1, run: itemsFilter},
		"dictsort":  {params: "value case_sensitive by reverse", need: 1, run: dictSort},
		"sort":      {params: "value reverse case_sensitive attribute", need: 1, run: sortFilter},
		"unique":    {params: "value case_sensitive attribute", need: 1, run: uniqueFilter},
		"min":       {params: "value case_sensitive attribute", need: 1, run: extreme(-1)},
		"max":       {params: "value case_sensitive attribute", need: 1, run: extreme(1)},
		"sum":       {params: "iterable attribute start", need: 1, run: sumFilter},
		"batch":     {params: "value linecount fill_with", need: 2, run: batchFilter},
		"slice":     {params: "value slices fill_with", need: 2, run: sliceFilter},
		"groupby":   {params: "value attribute default case_sensitive", need: 2, run: groupBy},
	}
	filters["d"], filters["length"] = filters["default"], filters["count"]
	openFilters = map[string]func(r *run, v Value, a arguments) (Value, error){
		"map":        mapFilter,
		"select":     selecting(false, true),
		"reject":     selecting(false, false),
		"selectattr": selecting(true, true),
		"rejectattr": selecting(true, false),
		"format": func(r *run, v Value, a arguments) (Value, error) {
			if v != plain(v) {
				return nil, errMarkup
			}
			s, err := r.str(v)
			if err != nil {
				return nil, err
			}
			if len(a.names) > 0 {
				d, err := r.newDict(arguments{names: a.names, named: a.named})
				if err != nil || len(a.list) > 0 {
					return nil, cmpErr(err, errors.New("it takes values or names, and not both"))
				}
				return r.printf(s, d)
			}
			return r.printf(s, &tuple{items: a.list})
		},
	}
}

// onStr calls f with the first value as a text.
func (r *run) onStr(a []Value, f func(a []Value) (Value, error)) (Value, error) {
	s, err := r.str(a[0])
	if err != nil {
		return nil, err
	}
	a[0] = s
	return f(a)
}

func mapped(f func(s string) string) func(r *run, a []Value) (Value, error) {
	return func(r *run, a []Value) (Value, error) {
		return r.onStr(a, func(a []Value) (Value, error) {
			s := a[0].(string)
			return f(s), r.make(len(s))
		})
	}
}

func replaceFilter(r *run, a []Value) (Value, error) {
	var s [3]string
	for i := range s {
		var err error
		if s[i], err = r.str(a[i]); err != nil {
			return nil, err
		}
	}
	return r.replace(s[0], s[1], s[2], a[3])
}

// titleWords puts the first letter of each word in upper case. Words begin after white space,
// hyphens and open brackets.
func titleWords(s string) string {
	var b strings.Builder
	begins := func(c rune) bool { return syntax.IsSpace(c) || strings.ContainsRune("-({[<", c) }
	for s != "" {
		i := strings.IndexFunc(s, begins)
		if i < 0 {
			i = len(s)
		}
		if i > 0 {
			_, n := utf8.DecodeRuneInString(s)
			b.WriteString(upper(s[:n]) + lower(s[n:i]))
		}
		s = s[i:]
		i = len(s) - len(strings.TrimLeftFunc(s, begins))
		b.WriteString(s[:i])
		s = s[i:]
	}
	return b.String()
}

func indentFilter(r *run, a []Value) (Value, error) {
	s, ok := a[0].(string)
	if !ok {
		return nil, fmt.Errorf("a text is wanted%w", unfit(a[0]))
	}
	by := "    "
	if w, ok := a[1].(string); ok {
		by = w
	} else if given(a[1]) {
		n, ok := index(a[1])
		if !ok {
			return nil, fmt.Errorf("the width%w", unfit(a[1]))
		}
		if err := r.times(1, max(n, 0)); err != nil {
			return nil, err
		}
		by = strings.Repeat(" ", int(max(n, 0)))
	}
	if err := r.parts(s, endsLine); err != nil {
		return nil, err
	}
	all := lines(s+"\n", false)
	if err := r.times(len(by)+1, int64(len(all))); err != nil {
		return nil, err
	}
	blank := given(a[3]) && truth(a[3])
	for i, line := range all {
		if i > 0 && (blank || line != "") || i == 0 && given(a[2]) && truth(a[2]) {
			all[i] = by + line
		}
	}
	return strings.Join(all, "\n"), r.make(len(s))
}

func centerFilter(r *run, a []Value) (Value, error) {
	if !given(a[1]) {
		a[1] = int64(80)
	}
	return r.onStr(a, func(a []Value) (Value, error) { return r.pad([]Value{a[0], a[1], absent{}}, '^') })
}

func countWords(r *run, a []Value) (Value, error) {
	return r.onStr(a, func(a []Value) (Value, error) {
		n, isInside := int64(0), false
		for _, c := range a[0].(string) {
			is := c == '_' || ofWord(c)
			if is && !isInside {
				n++
			}
			isInside = is
		}
		return n, r.search(len(a[0].(string)))
	})
}

func defaultFilter(_ *run, a []Value) (Value, error) {
	if !isUndefined(a[0]) && (!given(a[2]) || !truth(a[2]) || truth(a[0])) {
		return a[0], nil
	}
	if !given(a[1]) {
		return "", nil
	}
	return a[1], nil
}

func intFilter(_ *run, a []Value) (Value, error) {
	base, ok := int64(10), true
	if given(a[2]) {
		base, ok = index(a[2])
	}
	if !ok || base != 0 && (base < 2 || base > 36) {
		return nil, errors.New("the base is from 2 to 36")
	}
	switch v := a[0].(type) {
	case int64, *big.Int:
		return v, nil
	case bool:
		return toInt(v), nil
	case float64:
		return truncated(v, a[1])
	case string:
		s := strings.TrimFunc(v, syntax.IsSpace)
		if strings.IndexFunc(s, func(c rune) bool { return c >= utf8.RuneSelf && unicode.IsDigit(c) }) >= 0 {
			return nil, errors.New("digits of other scripts are not supported")
		}
		if n, err := strconv.ParseInt(unprefixed(strings.ReplaceAll(s, "_", ""), base), int(base), 64); err == nil && underscored(s) {
			return n, nil
		} else if errors.Is(err, strconv.ErrRange) {
			return nil, errWide
		}
		if f, ok := parseFloat(s); ok {
			return truncated(f, a[1])
		}
	case *undefined:
		return nil, errors.New(v.why)
	}
	return otherwise(a[1], int64(0)), nil
}

// unprefixed takes off what a number in some bases may begin with.
func unprefixed(s string, base int64) string {
	prefix := map[int64]string{2: "0b", 8: "0o", 16: "0x"}[base]
	if digits := strings.TrimLeft(s, "+-"); prefix != "" && len(digits) > 2 && strings.EqualFold(digits[:2], prefix) {
		return s[:len(s)-len(digits)] + digits[2:]
	}
	return s
}

// underscored reports whether underscores stand only between digits.
func underscored(s string) bool {
	return !strings.HasPrefix(s, "_") && !strings.HasSuffix(s, "_") && !strings.Contains(s, "__") && !strings.ContainsAny(s, "+-") || !strings.Contains(s, "_")
}

func truncated(f float64, or Value) (Value, error) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return otherwise(or, int64(0)), nil
	case math.Abs(f) >= 1<<63:
		return nil, errWide
	}
	return int64(f), nil
}

func otherwise(v, or Value) Value {
	if given(v) {
		return v
	}
	return or
}

// parseFloat reads a number as Python's float does.
func parseFloat(s string) (float64, bool) {
	if strings.ContainsAny(s, "xXpP") || !underscored(s) {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange)
}

func floatFilter(_ *run, a []Value) (Value, error) {
	if s, ok := a[0].(string); ok {
		if f, ok := parseFloat(strings.TrimFunc(s, syntax.IsSpace)); ok {
			return f, nil
		}
		return otherwise(a[1], 0.0), nil
	}
	if u, ok := a[0].(*undefined); ok {
		return nil, errors.New(u.why)
	}
	if f, ok := number(a[0]); ok {
		return f, nil
	}
	return otherwise(a[1], 0.0), nil
}

func absFilter(_ *run, a []Value) (Value, error) {
	if f, ok := a[0].(float64); ok {
		return math.Abs(f), nil
	}
	n, ok := index(a[0])
	switch {
	case !ok:
		return nil, fmt.Errorf("a number is wanted%w", unfit(a[0]))
	case n == math.MinInt64:
		return nil, errWide
	case n < 0:
		n = -n
	}
	return n, nil
}

// roundFilter rounds to so many decimals: halves to even, as Python does, down or up.
func roundFilter(_ *run, a []Value) (Value, error) {
	places, ok := int64(0), true
	if given(a[1]) {
		places, ok = index(a[1])
	}
	f, isNumber := number(a[0])
	if !ok || !isNumber || places < 0 || places > 300 {
		return nil, errors.New("it wants a number, and a number of decimals")
	}
	n, isInt := index(a[0])
	scale := math.Pow10(int(places))
	switch how := otherwise(a[2], "common"); {
	case how == Value("common") && isInt:
		return n, nil
	case how == Value("common"):
		return strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(places), 64), 64)
	case how == Value("ceil"):
		return math.Ceil(f*scale) / scale, nil
	case how == Value("floor"):
		return math.Floor(f*scale) / scale, nil
	}
	return nil, errors.New("the method is common, ceil or floor")
}

// attrFilter gives an attribute, and never an item.
func attrFilter(r *run, a []Value) (Value, error) {
	id, ok := a[1].(string)
	if !ok {
		return nil, fmt.Errorf("the name%w", unfit(a[1]))
	}
	if v, ok, err := r.member(a[0], id); ok || err != nil {
		return v, err
	}
	return missing(a[0], id), nil
}

func lengthFilter(_ *run, a []Value) (Value, error) {
	n, ok := length(a[0])
	if !ok {
		return nil, fmt.Errorf("a length%w", unfit(a[0]))
	}
	return int64(n), nil
}

func joinFilter(r *run, a []Value) (Value, error) {
	sep, err := r.str(otherwise(a[1], ""))
	if err != nil {
		return nil, err
	}
	v := a[0]
	if given(a[2]) && a[2] != nil {
		get := r.getter(a[2], nil)
		if v, err = r.through(v, get); err != nil {
			return nil, err
		}
	}
	return r.joinTexts(sep, v, true)
}

func sortedKeys(r *run, all []Value, keys []Value, reverse bool) ([]Value, error) {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	var bad error
	slices.SortStableFunc(order, func(i, j int) int {
		if bad != nil {
			return 0
		}
		if bad = r.spend(1); bad != nil {
			return 0
		}
		var c int
		if c, bad = r.order(keys[i], keys[j], 0); c == unordered {
			c = 0
		}
		if reverse {
			c = -c
		}
		return c
	})
	out := make([]Value, len(all))
	for i, at := range order {
		out[i] = all[at]
	}
	return out, bad
}
