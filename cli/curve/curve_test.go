package curve_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/tally-network/tally/cli/curve"
)

func TestLine(t *testing.T) {
	for _, c := range []struct {
		losses []float64
		want   string
	}{
		{[]float64{8, 7, 6, 5, 4, 3, 2, 1}, "█▇▆▅▄▃▂▁"},
		{[]float64{1, math.NaN(), 0}, "█ ▁"},
		{[]float64{2, 2}, ""},
		{[]float64{2, math.Inf(1)}, ""},
		{nil, ""},
	} {
		if got := curve.Line(c.losses); got != c.want {
			t.Errorf("%v is %q, want %q", c.losses, got, c.want)
		}
	}
	many := make([]float64, 1000)
	for i := range many {
		many[i] = float64(1000 - i)
	}
	if line := []rune(curve.Line(many)); len(line) != 64 || line[0] != '█' || line[63] != '▁' {
		t.Errorf("%q", string(line))
	}
}

func TestSVG(t *testing.T) {
	picture := curve.SVG(`a <b> & "c"`, 1, []float64{3, 2, math.NaN(), 1, 0.5})
	elements := map[string]int{}
	d := xml.NewDecoder(strings.NewReader(string(picture)))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
		}
	}
	if elements["circle"] != 4 || elements["polyline"] != 2 || strings.Contains(string(picture), "NaN") {
		t.Errorf("%v\n%s", elements, picture)
	}
	if curve.SVG("", 0, []float64{1}) != nil {
		t.Error("one loss is a curve")
	}
}
