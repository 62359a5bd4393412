package diagram_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/model/diagram"
	"github.com/tally-network/tally/model/summary"
	"github.com/tally-network/tally/model/zoo"
)

// picture is what a test sees of a picture.
type picture struct {
	text  string
	boxes [][4]float64 // x, y, width, height
	falls [][3]float64 // straight parts of edges: x, from, to
}

type failer interface{ Fatal(...any) }

// look reads a picture, which must be well-formed.
func look(t failer, b []byte) (p picture) {
	for d := xml.NewDecoder(bytes.NewReader(b)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return p
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.CharData:
			if text := strings.TrimSpace(string(x)); text != "" && !strings.HasPrefix(text, "text {") {
				p.text += text + "\n"
			}
		case xml.StartElement:
			attrs := map[string]string{}
			for _, a := range x.Attr {
				attrs[a.Name.Local] = a.Value
			}
			switch attrs["class"] {
			case "edge":
				p.falls = append(p.falls, falls(t, attrs["d"])...)
			case "box", "pill":
				var at [4]float64
				for i, name := range []string{"x", "y", "width", "height"} {
					if at[i], err = strconv.ParseFloat(attrs[name], 64); err != nil {
						t.Fatal(err)
					}
				}
				p.boxes = append(p.boxes, at)
			}
			if x.Name.Local == "script" || strings.Contains(strings.Join([]string{attrs["href"], attrs["onload"]}, ""), ":") {
				t.Fatal("a picture runs something")
			}
		}
	}
}

// falls returns the straight parts of a path of M, V and C.
func falls(t failer, path string) (out [][3]float64) {
	x, y := 0.0, 0.0
	for _, step := range strings.FieldsFunc(strings.NewReplacer(" V", "|V", " C", "|C").Replace(path), func(r rune) bool { return r == '|' }) {
		var at []float64
		for _, number := range strings.Fields(step[1:]) {
			v, err := strconv.ParseFloat(number, 64)
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, v)
		}
		if step[0] == 'V' {
			out = append(out, [3]float64{x, y, at[0]})
			y = at[0]
			continue
		}
		x, y = at[len(at)-2], at[len(at)-1]
	}
	return out
}

// overlap names two boxes that lie upon one another, or a box that an edge crosses.
func (p *picture) overlap() error {
	for i, a := range p.boxes {
		for _, b := range p.boxes[:i] {
			if a[0] < b[0]+b[2] && b[0] < a[0]+a[2] && a[1] < b[1]+b[3] && b[1] < a[1]+a[3] {
				return fmt.Errorf("boxes at %v and %v lie upon one another", a, b)
			}
		}
		for _, f := range p.falls {
			if f[0] > a[0] && f[0] < a[0]+a[2] && f[1] < a[1]+a[3]-1 && f[2] > a[1]+1 {
				return fmt.Errorf("an edge at %v crosses the box at %v", f, a)
			}
		}
	}
	return nil
}

func draw(t *testing.T, g *graph.Graph) picture {
	t.Helper()
	b, err := diagram.Draw(g, diagram.Options{Title: "a title", Note: "a note"})
	if err != nil {
		t.Fatal(err)
	}
	p := look(t, b)
	if err := p.overlap(); err != nil {
		t.Error(err)
	}
	return p
}

// Reference models are drawn with what repeats drawn once.
func TestReferenceModels(t *testing.T) {
	for name, want := range map[string]struct {
		settings, says string
		boxes          int
	}{
		"gpt": {"layers=12", "× 12", 13}, "vit": {"layers=6", "× 6", 13}, "mlp": {"", "784 to 256", 3}, "lenet": {"", "5 × 5, to 16", 3},
		"resnet": {"blocks=9", "× 9", 16}, "lstm": {"", "state of 64", 3}, "unet": {"", "2 × 2, stride 2, to 64", 9},
	} {
		a, err := zoo.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		settings, err := zoo.Parse(want.settings, "batch=1")
		if err != nil {
			t.Fatal(err)
		}
		m, err := a.New(settings, 1)
		if err != nil {
			t.Fatal(err)
		}
		g, err := m.Graph.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		p := draw(t, g)
		if !strings.Contains(p.text, want.says) || !strings.Contains(p.text, "a title") || !strings.Contains(p.text, "a note") || len(p.boxes) != want.boxes {
			t.Errorf("%s: %d boxes, want %d; want %q in %q", name, len(p.boxes), want.boxes, want.says, p.text)
		}
		again, err := diagram.Draw(g, diagram.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if other, err := diagram.Draw(g, diagram.Options{}); err != nil || !bytes.Equal(again, other) {
			t.Errorf("%s: the picture is another the second time, %v", name, err)
		}
	}
}

var update = flag.Bool("update", false, "draw docs/pictures/vit.svg")

func TestPictureOfDocs(t *testing.T) {
	const name = "../../docs/pictures/vit.svg"
	a, err := zoo.Find("vit")
	if err != nil {
		t.Fatal(err)
	}
	m, err := a.New(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	g, err := m.Graph.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	b, err := diagram.Draw(g, diagram.Options{Title: "A vision transformer", Note: "tally model new vit, four blocks that are alike", Shape: summary.Of(g).Shape})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if drawn, err := os.ReadFile(name); err != nil || !bytes.Equal(drawn, b) {
		t.Errorf("%s is another picture: go test ./model/diagram -run Docs -update; %v", name, err)
	}
}

// Whatever reads whatever, boxes lie beside one another, and the picture is well-formed.
func TestAnyGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := graph.NewBuilder("any")
		values := []string{b.Input(rapid.StringN(1, 40, 90).Draw(t, "input"), tensor.Float32, tensor.Shape{2})}
		for range rapid.IntRange(0, 40).Draw(t, "nodes") {
			var in []string
			for range rapid.IntRange(1, 3).Draw(t, "reads") {
				in = append(in, rapid.SampledFrom(values).Draw(t, "value"))
			}
			values = append(values, b.Op(rapid.SampledFrom([]string{"Relu", "Sum", "<b>&\x00\"'", "Conv"}).Draw(t, "op"), in...))
		}
		for range rapid.IntRange(1, 3).Draw(t, "outputs") {
			b.Output(rapid.SampledFrom(values).Draw(t, "output"), tensor.Float32, nil)
		}
		g, err := b.Graph().Canonical()
		if err != nil {
			t.Fatal(err)
		}
		out, err := diagram.Draw(g, diagram.Options{Title: "<&"})
		if err != nil {
			t.Fatal(err)
		}
		p := look(t, out)
		if err := p.overlap(); err != nil {
			t.Fatal(err)
		}
	})
}

// chain is nodes one behind another, whose operators a function names.
func chain(n int, name func(int) string, reads func(b *graph.Builder, values []string) []string) *graph.Graph {
	b := graph.NewBuilder("chain")
	values := []string{b.Input("x", tensor.Float32, tensor.Shape{1})}
	for i := range n {
		values = append(values, b.Op(name(i), reads(b, values)...))
	}
	b.Output(values[n], tensor.Float32, nil)
	return b.Graph()
}

func last(_ *graph.Builder, values []string) []string { return values[len(values)-1:] }

// What is too large is refused, and what is hostile takes bounded time.
func TestRefusesLargeGraphs(t *testing.T) {
	different := func(i int) string { return fmt.Sprintf("Op%d", i) }
	alike := func(i int) string { return []string{"A", "B", "C", "D"}[i%4] }
	fan := func(_ *graph.Builder, values []string) []string { return []string{values[0], values[len(values)-1]} }
	for want, g := range map[string]*graph.Graph{
		"32769 nodes to draw, limit 32768: draw a part of it": chain(1<<15+1, alike, last),
		"3002 nodes to draw, limit 2048":                      chain(3000, different, last),
		"pass others in":                                      chain(1000, different, fan),
	} {
		if _, err := diagram.Draw(g, diagram.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if p := draw(t, chain(1<<15, alike, last)); !strings.Contains(p.text, "× 8192") {
		t.Errorf("%q", p.text)
	}
	b := graph.Extend(chain(1<<14, alike, last)) // all are read by one: no part is closed
	var all []string
	for _, n := range b.Graph().Nodes {
		all = append(all, n.Outputs[0])
	}
	b.Output(b.Op("Sum", all...), tensor.Float32, nil)
	if _, err := diagram.Draw(b.Graph(), diagram.Options{}); err == nil {
		t.Error("a graph of which nothing repeats is drawn")
	}
}

func BenchmarkDraw(b *testing.B) {
	a, err := zoo.Find("resnet")
	if err != nil {
		b.Fatal(err)
	}
	m, err := a.New(map[string]string{"batch": "1", "blocks": "32"}, 1)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := diagram.Draw(m.Graph, diagram.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
