package jsonschema

import (
	"math"
	"strconv"
	"strings"
)

// digits is how many digits a number has at most before its point, and behind it: as many as float64 tells apart.
const digits = 15

// greatest is the greatest number of so many digits.
const greatest = 999_999_999_999_999

func (c *compiler) digit(next node) node { return c.Bytes('0', '9', next) }

// decimal writes any number.
func (c *compiler) decimal(next node) node {
	exponent := c.Repeat(1, 2, next, c.digit)
	next = c.Either(next, c.Bytes('e', 'e', c.Either(exponent, c.Bytes('+', '+', exponent), c.Bytes('-', '-', exponent))))
	next = c.fraction(next)
	whole := c.Either(c.Text("0", next), c.Bytes('1', '9', c.Repeat(0, digits-1, next, c.digit)))
	return c.Either(whole, c.Text("-", whole))
}

// fraction writes a point and what is behind it, or nothing.
func (c *compiler) fraction(next node) node {
	return c.Either(next, c.Text(".", c.Repeat(1, digits, next, c.digit)))
}

// natural writes an integer from low to high, neither of them negative.
func (c *compiler) natural(low, high int, next node) node {
	var all []node
	tails := []node{next}
	for least, most := 0, 9; least <= high; least, most = most+1, 10*most+9 {
		if l, h := max(low, least), min(high, most); l <= h {
			all = append(all, between(c.Builder, strconv.AppendInt(nil, int64(l), 10), strconv.AppendInt(nil, int64(h), 10), span{'0', '9'}, tails))
		}
		tails = append(tails, c.digit(tails[len(tails)-1]))
	}
	return c.Either(all...)
}

// limit is an end of a range.
type limit struct {
	at   int
	open bool // it is not in the range itself
}

// limits reads the range that a schema gives. Of a number the limits are integers.
func limits(t kind, s *value, at string) (low, high limit, err error) {
	low, high = limit{at: -greatest}, limit{at: greatest}
	for _, keyword := range []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
		v := s.get(keyword)
		if v == nil {
			continue
		}
		x, parseErr := strconv.ParseFloat(v.text, 64)
		switch {
		case v.of != isNumber || parseErr != nil && !math.IsInf(x, 0):
			return low, high, wrong(at, keyword, "%s is no number", keyword)
		case t == isNumber && x != math.Trunc(x):
			return low, high, wrong(at, keyword, "%s of a number is supported where it is an integer, and it is %.30s", keyword, v.text)
		}
		open := strings.HasPrefix(keyword, "exclusive")
		if strings.HasSuffix(strings.ToLower(keyword), "minimum") {
			whole := math.Ceil(x)
			l := limit{clamped(whole), open && whole == x && math.Abs(x) <= greatest}
			if l.at > low.at || l.at == low.at && l.open {
				low = l
			}
			if x > greatest {
				high.at = low.at - 1 // nothing is there
			}
			continue
		}
		whole := math.Floor(x)
		h := limit{clamped(whole), open && whole == x && math.Abs(x) <= greatest}
		if h.at < high.at || h.at == high.at && h.open {
			high = h
		}
		if x < -greatest {
			low.at = high.at + 1
		}
	}
	return low, high, nil
}

func clamped(x float64) int { return int(max(-greatest, min(greatest, x))) }

// number writes an integer, or a number.
func (c *compiler) number(t kind, s *value, at string, next node) (node, error) {
	low, high, err := limits(t, s, at)
	if err != nil {
		return none, err
	}
	if t == integer {
		if low.open {
			low.at++
		}
		if high.open {
			high.at--
		}
		var negative node = none
		if low.at < 0 {
			negative = c.Text("-", c.natural(max(1, -high.at), -low.at, next))
		}
		return c.Either(negative, c.natural(max(0, low.at), high.at, next)), nil
	}
	if low == (limit{at: -greatest}) && high == (limit{at: greatest}) {
		return c.decimal(next), nil
	}
	var negative, positive node = none, none
	if low.at < 0 {
		least := limit{0, true} // there is no −0
		if high.at < 0 {
			least = limit{-high.at, high.open}
		}
		negative = c.Text("-", c.magnitude(least, limit{-low.at, low.open}, next))
	}
	if high.at >= 0 {
		least := limit{0, false}
		if low.at >= 0 {
			least = low
		}
		positive = c.magnitude(least, high, next)
	}
	return c.Either(negative, positive), nil
}

// magnitude writes a number without a sign and exponent, from low to high.
func (c *compiler) magnitude(low, high limit, next node) node {
	if low.at >= high.at {
		if low.at > high.at || low.open || high.open {
			return none
		}
		return c.natural(low.at, low.at, next)
	}
	first := c.fraction(next)
	if low.open { // something behind the point is not 0
		first = c.Text(".", c.Repeat(0, digits/2, c.Bytes('1', '9', c.Repeat(0, digits/2, next, c.digit)), func(next node) node { return c.Text("0", next) }))
	}
	last := none
	if !high.open {
		last = c.natural(high.at, high.at, next)
	}
	return c.Either(c.natural(low.at, low.at, first), c.natural(low.at+1, high.at-1, c.fraction(next)), last)
}
