package jinja

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// widest bounds the width and precision of a number or text that is formatted.
const widest = 1000

// spec is a place in a printf format.
type spec struct {
	flags            string
	width, precision int // -1 where not given
	verb             byte
}

// printf formats values as Python's % does: %s, %r, %d, %i, %x, %o, %f, %e, %g and %%.
func (r *run) printf(s string, v Value) (Value, error) {
	values, isTuple := v.(*tuple)
	if !isTuple {
		values = &tuple{items: []Value{v}}
	}
	var b strings.Builder
	used := 0
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			break
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		if strings.HasPrefix(s, "%") {
			b.WriteByte('%')
			s = s[1:]
			continue
		}
		x := Value(absent{})
		if strings.HasPrefix(s, "(") {
			d, ok := v.(*Dict)
			end := strings.IndexByte(s, ')')
			if !ok || end < 0 {
				return nil, errors.New("a format with names wants a dict")
			}
			if x, ok = d.Get(s[1:end]); !ok {
				return nil, fmt.Errorf("the format wants %.100q", s[1:end])
			}
			used, s = len(values.items), s[end+1:]
		}
		p, n, err := readSpec(s)
		if err != nil {
			return nil, err
		}
		s = s[n:]
		if !given(x) {
			if used >= len(values.items) {
				return nil, errors.New("the format wants more values than there are")
			}
			x = values.items[used]
			used++
		}
		t, err := r.formatted(p, x)
		if err != nil {
			return nil, err
		}
		if err := r.make(len(t)); err != nil {
			return nil, err
		}
		b.WriteString(t)
	}
	if _, isText := v.(string); used < len(values.items) && (isTuple || isText || !hasItems(v)) {
		return nil, errors.New("the format wants fewer values than there are")
	}
	b.WriteString(s)
	return b.String(), r.make(len(s))
}

// hasItems reports whether a value has items in Python's sense: such a one may go unused.
func hasItems(v Value) bool {
	switch v.(type) {
	case *List, *Dict, *span, *undefined:
		return true
	}
	return false
}

// readSpec reads what follows a percent sign.
func readSpec(s string) (p spec, n int, err error) {
	for n < len(s) && strings.IndexByte("-+ 0#", s[n]) >= 0 {
		n++
	}
	p.flags, p.width, p.precision = s[:n], -1, -1
	if p.width, n, err = readInt(s, n); err != nil {
		return p, n, err
	}
	if n < len(s) && s[n] == '.' {
		if p.precision, n, err = readInt(s, n+1); err != nil {
			return p, n, err
		}
		p.precision = max(p.precision, 0)
	}
	if n == len(s) {
		return p, n, errors.New("the format ends after %")
	}
	p.verb = s[n]
	return p, n + 1, nil
}

func readInt(s string, at int) (value, next int, err error) {
	n := at
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n == at {
		return -1, n, nil
	}
	value, err = strconv.Atoi(s[at:n])
	if err != nil || value > widest {
		return 0, n, fmt.Errorf("a width or precision is over %d", widest)
	}
	return value, n, nil
}

func (r *run) formatted(p spec, v Value) (t string, err error) {
	switch p.verb {
	case 's':
		t, err = r.str(v)
	case 'r':
		t, err = r.repr(v)
	case 'd', 'i', 'u', 'x', 'X', 'o', 'e', 'E', 'f', 'F', 'g', 'G':
		return p.number(v)
	default:
		return "", fmt.Errorf("the format %%%c is not supported", p.verb)
	}
	if err != nil {
		return "", err
	}
	if p.precision >= 0 {
		t = t[:runeAt(t, p.precision)]
	}
	return p.pad(t), nil
}

func (p spec) pad(t string) string {
	lack := strings.Repeat(" ", max(0, p.width-utf8.RuneCountInString(t)))
	if strings.Contains(p.flags, "-") {
		return t + lack
	}
	return lack + t
}

// number formats a number. Go's verbs are those of C, but for flags that few know.
func (p spec) number(v Value) (string, error) {
	format := "%" + p.flags
	if p.width >= 0 {
		format += strconv.Itoa(p.width)
	}
	if p.precision >= 0 {
		format += "." + strconv.Itoa(p.precision)
	}
	if strings.ContainsAny(p.flags, "#") {
		return "", errors.New("the flag # is not supported")
	}
	if strings.IndexByte("eEfFgG", p.verb) >= 0 {
		f, ok := number(v)
		if !ok {
			return "", fmt.Errorf("%%%c%w", p.verb, unfit(v))
		}
		if p.precision < 0 {
			format += ".6"
		}
		return fmt.Sprintf(format+string(p.verb), f), nil
	}
	n, ok := index(v)
	if f, isFloat := v.(float64); isFloat && strings.IndexByte("diu", p.verb) >= 0 && f > -1<<62 && f < 1<<62 {
		n, ok = int64(f), true
	}
	if !ok {
		return "", fmt.Errorf("%%%c%w", p.verb, unfit(v))
	}
	if strings.IndexByte("iu", p.verb) >= 0 {
		p.verb = 'd'
	}
	return fmt.Sprintf(format+string(p.verb), n), nil
}

// format fills the places of a text as Python's str.format does: {}, {0}, {name}, with !r or !s.
func (r *run) format(s string, a arguments) (Value, error) {
	var b strings.Builder
	next := 0
	for {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			b.WriteString(s)
			return b.String(), r.make(b.Len())
		}
		b.WriteString(s[:i])
		if i+1 < len(s) && s[i+1] == s[i] {
			b.WriteByte(s[i])
			s = s[i+2:]
			continue
		}
		end := strings.IndexByte(s, '}')
		if s[i] == '}' || end < 0 {
			return nil, errors.New("a brace of the format has no other")
		}
		place := s[i+1 : end]
		s = s[end+1:]
		show := r.str
		if id, ok := strings.CutSuffix(place, "!r"); ok {
			place, show = id, r.repr
		}
		v, err := a.at(strings.TrimSuffix(place, "!s"), &next)
		if err != nil {
			return nil, err
		}
		t, err := show(v)
		if err != nil {
			return nil, err
		}
		if err := r.make(len(t)); err != nil {
			return nil, err
		}
		b.WriteString(t)
	}
}

// at returns the argument of a place: the next one, of an index, or of a name.
func (a arguments) at(place string, next *int) (Value, error) {
	if place == "" {
		if *next < 0 {
			return nil, errors.New("the format's places are all numbered, or none is")
		}
		*next++
		place = strconv.Itoa(*next - 1)
	} else if place[0] >= '0' && place[0] <= '9' {
		if *next > 0 {
			return nil, errors.New("the format's places are all numbered, or none is")
		}
		*next = -1
	}
	if n, err := strconv.Atoi(place); err == nil && n >= 0 && n < len(a.list) {
		return a.list[n], nil
	}
	for i, id := range a.names {
		if id == place {
			return a.named[i], nil
		}
	}
	return nil, fmt.Errorf("the format's place %.100q has no value, or asks for more than is supported", place)
}

// dateForms are the directives of strftime, as Go's layouts. Those with a function have none.
var dateForms = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan", 'd': "02", 'm': "01", 'y': "06", 'Y': "2006", 'H': "15", 'I': "03",
	'M': "04", 'S': "05", 'p': "PM", 'j': "002", 'e': "_2", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06", 'R': "15:04",
	'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05", 'r': "03:04:05 PM",
	'n': "\n", 't': "\t", 'Z': "", 'z': "",
}

// strftime formats the date of the request, as Python in the C locale does. With %- a number has
// no zeros before it.
func (r *run) strftime(s string) (Value, error) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			b.WriteString(s)
			return b.String(), r.make(2 * b.Len())
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		bare := strings.HasPrefix(s, "-")
		if bare {
			s = s[1:]
		}
		if s == "" {
			return nil, errors.New("the format ends after %")
		}
		t, err := dateField(r.date, s[0])
		if err != nil {
			return nil, err
		}
		if bare {
			if strings.IndexByte("demyHIMSjUWV", s[0]) < 0 {
				return nil, fmt.Errorf("the format %%-%c is not supported", s[0])
			}
			t = strings.TrimLeft(t[:len(t)-1], "0 ") + t[len(t)-1:]
		}
		b.WriteString(t)
		s = s[1:]
	}
}

func dateField(d time.Time, c byte) (string, error) {
	year, week := d.ISOWeek()
	monday := (int(d.Weekday()) + 6) % 7
	switch c {
	case '%':
		return "%", nil
	case 'f':
		return fmt.Sprintf("%06d", d.Nanosecond()/1000), nil
	case 'u':
		return strconv.Itoa(monday + 1), nil
	case 'w':
		return strconv.Itoa(int(d.Weekday())), nil
	case 'U':
		return fmt.Sprintf("%02d", (d.YearDay()+6-int(d.Weekday()))/7), nil
	case 'W':
		return fmt.Sprintf("%02d", (d.YearDay()+6-monday)/7), nil
	case 'V':
		return fmt.Sprintf("%02d", week), nil
	case 'G':
		return fmt.Sprintf("%04d", year), nil
	case 'C':
		return fmt.Sprintf("%02d", d.Year()/100), nil
	}
	layout, ok := dateForms[c]
	if !ok {
		return "", fmt.Errorf("the format %%%.1q of a date is not supported", string(c))
	}
	if c == 'n' || c == 't' {
		return layout, nil
	}
	return d.Format(layout), nil
}
