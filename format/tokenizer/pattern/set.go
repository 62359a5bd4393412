package pattern

import (
	"cmp"
	"slices"
	"sort"
	"unicode/utf8"

	"github.com/tally-network/tally/format/tokenizer/chars"
)

// set is a set of characters.
type set struct {
	table   chars.Table
	ascii   [utf8.RuneSelf]bool // whether it holds each ASCII character
	classes chars.Set
	others  []chars.Set // each holds what is not of these classes
	ranges  [][2]rune   // first and last; ascending, apart from each other
	negate  bool
}

// newSet returns a set that fill fills.
func newSet(fill func(*set)) *set {
	s := &set{table: chars.Load()}
	fill(s)
	slices.SortFunc(s.ranges, func(a, b [2]rune) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	apart := s.ranges[:0]
	for _, r := range s.ranges {
		if n := len(apart); n > 0 && r[0] <= apart[n-1][1] {
			apart[n-1][1] = max(apart[n-1][1], r[1])
		} else {
			apart = append(apart, r)
		}
	}
	s.ranges = apart
	for r := range s.ascii {
		s.ascii[r] = s.holds(rune(r))
	}
	return s
}

func (s *set) add(from, to rune) { s.ranges = append(s.ranges, [2]rune{from, to}) }

func (s *set) addClass(c chars.Class, not bool) {
	if not {
		if !slices.Contains(s.others, chars.Of(c)) {
			s.others = append(s.others, chars.Of(c))
		}
	} else {
		s.classes |= chars.Of(c)
	}
}

func (s *set) holds(r rune) bool {
	of := s.table.Of(r)
	in := of&s.classes != 0
	for i := 0; i < len(s.others) && !in; i++ {
		in = of&s.others[i] == 0
	}
	if !in && len(s.ranges) > 0 {
		i := sort.Search(len(s.ranges), func(i int) bool { return s.ranges[i][1] >= r })
		in = i < len(s.ranges) && s.ranges[i][0] <= r
	}
	return in != s.negate
}

// next returns the length of the character at a place if the set holds it, and else 0.
func (s *set) next(text string, at int) int {
	if at >= len(text) {
		return 0
	}
	if c := text[at]; c < utf8.RuneSelf {
		if s.ascii[c] {
			return 1
		}
		return 0
	}
	r, n := utf8.DecodeRuneInString(text[at:])
	if s.holds(r) {
		return n
	}
	return 0
}
