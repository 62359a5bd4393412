package delimited

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/tally-network/tally/format/table"
)

// scanner cuts text into cells. The text ends with a line end.
type scanner struct {
	text      []byte
	at        int
	line      int // from 1
	separator byte
	scratch   []byte // a cell whose quotes were doubled
}

// blank passes lines that hold nothing.
func (s *scanner) blank() {
	for s.at < len(s.text) {
		switch {
		case s.text[s.at] == '\n':
			s.at++
		case s.text[s.at] == '\r' && s.text[s.at+1] == '\n':
			s.at += 2
		default:
			return
		}
		s.line++
	}
}

// ends reports whether a cell ends at a place.
func (s *scanner) ends(at int) bool {
	c := s.text[at]
	return c == s.separator || c == '\n' || c == '\r' && s.text[at+1] == '\n'
}

// endLine passes the end of a line.
func (s *scanner) endLine() {
	if s.text[s.at] == '\r' {
		s.at++
	}
	s.at++
	s.line++
}

// cell returns the next cell, and stands at its end. The cell is there until the next is read.
func (s *scanner) cell() ([]byte, error) {
	from := s.at
	if s.text[from] == '"' {
		return s.quoted()
	}
	i := s.end(from)
	if i > from && s.text[i] == '\n' && s.text[i-1] == '\r' {
		i--
	}
	s.at = i
	return s.text[from:i], nil
}

// end returns where the next separator or line end stands, eight bytes at a time.
func (s *scanner) end(i int) int {
	for ; i+8 <= len(s.text); i += 8 {
		if n := cut(binary.LittleEndian.Uint64(s.text[i:]), s.separator); n < 8 {
			return i + n
		}
	}
	for s.text[i] != s.separator && s.text[i] != '\n' {
		i++
	}
	return i
}

// cut returns how many of eight bytes stand before a separator or a line end.
func cut(w uint64, separator byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	a, b := w^ones*uint64(separator), w^ones*'\n' // whose first byte that is 0 is found by its borrow
	return bits.TrailingZeros64(((a-ones)&^a|(b-ones)&^b)&highs) / 8
}

// short returns the ends of a cell, and how many bytes it has; 16: or more. Text has sixteen bytes.
func short(text []byte, separator byte) (e table.Ends, n int) {
	first := binary.LittleEndian.Uint64(text)
	if n = cut(first, separator); n < 8 {
		return table.ShortEnds(first&(1<<(8*uint(n))-1), 0, n), n
	}
	others := binary.LittleEndian.Uint64(text[8:])
	n = cut(others, separator)
	return table.ShortEnds(first, others&(1<<(8*uint(n&7))-1), 8+n), 8 + n
}

// quoted returns a cell in quotes.
func (s *scanner) quoted() ([]byte, error) {
	begun, from := s.line, s.at+1
	s.scratch = s.scratch[:0]
	for i := from; ; {
		n := bytes.IndexByte(s.text[i:], '"')
		if n < 0 {
			return nil, fmt.Errorf("a quote opens in line %d and never closes: close it, or double it if it is part of the text", begun)
		}
		i += n + 1
		if s.text[i] == '"' {
			s.scratch = append(s.scratch, s.text[from:i]...)
			i++
			from = i
			continue
		}
		if !s.ends(i) {
			return nil, fmt.Errorf("%.20q follows a closing quote: double quotes that are part of a text", s.text[i:min(i+20, len(s.text))])
		}
		cell := s.text[from : i-1]
		if len(s.scratch) > 0 {
			s.scratch = append(s.scratch, cell...)
			cell = s.scratch
		}
		s.line += bytes.Count(s.text[s.at:i], []byte{'\n'})
		s.at = i
		return cell, nil
	}
}

// record returns the cells of a record.
func (s *scanner) record() (cells [][]byte, err error) {
	for {
		s.scratch = nil // the cell may lie in it
		c, err := s.cell()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", s.line, err)
		}
		if len(cells) == table.MaxColumns {
			return nil, fmt.Errorf("line %d has more than %d cells, the most columns of a table: put them into one list of a .npy file", s.line, table.MaxColumns)
		}
		cells = append(cells, c)
		if s.text[s.at] != s.separator {
			s.endLine()
			return cells, nil
		}
		s.at++
	}
}

// guess returns the separator by the first ten records.
func guess(text []byte) byte {
	const records = 10
	for _, separator := range []byte{'\t', ';', ','} {
		s, want := scanner{text: text, line: 1, separator: separator}, 0
		for n := 0; ; n++ {
			if s.blank(); n == records || s.at == len(s.text) {
				if n > 0 {
					return separator
				}
				break
			}
			cells, err := s.record()
			if n == 0 {
				want = len(cells)
			}
			if err != nil || want < 2 || len(cells) != want {
				break
			}
		}
	}
	return ','
}

// infinite reports whether a cell stands for an infinity.
func infinite(cell []byte) bool {
	if len(cell) > 0 && (cell[0] == '-' || cell[0] == '+') {
		cell = cell[1:]
	}
	switch string(cell) {
	case "inf", "Inf", "INF", "infinity", "Infinity", "INFINITY":
		return true
	}
	return false
}
