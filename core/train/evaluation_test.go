package train_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

// scores evaluates an objective's start over its first n records.
func scores(t *testing.T, o objective, n int) map[string]float64 {
	t.Helper()
	tr, data := o.begin(t)
	held := tensor.Must(tensor.FromBytes(tensor.Int32, tensor.Shape{n, data.Shape[1]}, data.Bytes()[:4*n*data.Shape[1]]))
	e, err := tr.Evaluate(held.Shape)
	if err != nil {
		t.Fatal(err)
	}
	run := func(p *graph.Program, rows []int64, states ...*graph.State) *graph.State {
		t.Helper()
		s, err := p.Run(graph.Inputs{States: states, Data: held, Rows: rows}, graph.Reference, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	var sums *graph.State
	for at := 0; at < n; at += lossBatch {
		p, rows := e.Batch, []int64{}
		for r := range lossBatch {
			rows = append(rows, int64(min(at+r, n-1)))
		}
		if at+lossBatch > n {
			p = e.Rest
		}
		if s := run(p, rows, tr.Start); sums == nil {
			sums = s
		} else {
			sums = run(e.Add, nil, sums, s)
		}
	}
	end := run(e.Score, nil, sums)
	out := map[string]float64{}
	for _, m := range e.Metrics {
		out[m] = float64(tensor.Of[int64](end.Find(m))[0]) / train.ScoreUnit
	}
	return out
}

// outputs are those of a linear model, by record.
func outputsOf(n, width int) (y [][]float64) {
	w, b := tensor.Of[float32](spread(5, 6, width)), tensor.Of[float32](spread(6, width))
	x := tensor.Of[float32](features)
	for r := range n {
		row := make([]float64, width)
		for c := range width {
			row[c] = float64(b[c])
			for k := range 6 {
				row[c] += float64(x[r*6+k]) * float64(w[k*width+c])
			}
		}
		y = append(y, row)
	}
	return y
}

// Scores are what their definitions say, whether or not records fill batches.
func TestScoresAreTheirDefinitions(t *testing.T) {
	for _, n := range []int{1, 3, 8, 22, 24} {
		check := func(what string, got map[string]float64, want map[string]float64) {
			t.Helper()
			for m, w := range want {
				if g, ok := got[m]; !ok || math.Abs(g-w) > 1e-5*(1+math.Abs(w)) {
					t.Errorf("%d records, %s: %s is %v, want %v", n, what, m, g, w)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d records, %s: metrics %v, want %v", n, what, got, want)
			}
		}
		all := objectives()
		for _, masked := range []bool{false, true} {
			name, right, counted, loss := "cross-entropy", 0., 0., 0.
			if masked {
				name += ", masked"
			}
			var agreed, said, labels [5]float64
			for r, y := range outputsOf(n, 5) {
				if masked && countedOf(r, 0) == 0 {
					continue
				}
				best, sum := 0, 0.
				for c := range y {
					if y[c] > y[best] {
						best = c
					}
					sum += math.Exp(y[c])
				}
				k := classOf(r, 0)
				loss, counted = loss+math.Log(sum)-y[k], counted+1
				if said[best]++; best == k {
					right++
					agreed[k]++
				}
				labels[k]++
			}
			f1, there := 0., 0.
			for c := range labels {
				if both := said[c] + labels[c]; both > 0 {
					f1, there = f1+2*agreed[c]/both, there+1
				}
			}
			check(name, scores(t, all[name], n), map[string]float64{"loss": loss / counted, "accuracy": right / counted, "f1": f1 / there})
		}
		var tp, tn, fp, fn, loss, absolute, square float64
		type point struct {
			bin int
			is  bool
		}
		var points []point
		target := tensor.Of[float32](targets)
		for r, y := range outputsOf(n, 3) {
			for c, x := range y {
				is := truthOf(r, c) == 1
				loss += math.Log1p(math.Exp(x)) - x*float64(truthOf(r, c))
				points = append(points, point{min(int(1024/(1+math.Exp(-x))), 1023), is})
				for of, counts := range map[*float64]bool{&tp: x > 0 && is, &tn: x <= 0 && !is, &fp: x > 0 && !is, &fn: x <= 0 && is} {
					if counts {
						*of++
					}
				}
				d := x - float64(target[r*3+c])
				absolute, square = absolute+math.Abs(d), square+d*d
			}
		}
		var above, pairs float64
		for _, p := range points {
			for _, q := range points {
				if p.is && !q.is {
					above, pairs = above+float64(cmp.Compare(p.bin, q.bin)+1)/2, pairs+1
				}
			}
		}
		m := float64(3 * n)
		check("binary", scores(t, all["binary-cross-entropy"], n), map[string]float64{
			"loss": loss / m, "accuracy": (tp + tn) / m, "f1": 2 * tp / (2*tp + fp + fn), "auc": above / pairs,
		})
		check("regression", scores(t, all["absolute-error"], n), map[string]float64{"loss": absolute / m, "mean_absolute_error": absolute / m, "mean_squared_error": square / m})
		check("regression", scores(t, all["squared-error"], n), map[string]float64{"loss": square / m, "mean_absolute_error": absolute / m, "mean_squared_error": square / m})
	}
}

// A model whose numbers have overflowed is not scored as one that is never wrong.
func TestNaNIsNoScore(t *testing.T) {
	for name, metric := range map[string]string{"cross-entropy": "accuracy", "squared-error": "mean_squared_error"} {
		o := objectives()[name]
		g := *o.model
		g.Consts = slices.Clone(g.Consts)
		for i, c := range g.Consts {
			if c.Name == "x.w" {
				g.Consts[i].Tensor = c.Tensor.Clone()
				g.Consts[i].Tensor.Set(0, tensor.F32(float32(math.NaN())))
			}
		}
		plain := scores(t, o, 8)
		o.model = &g
		got := scores(t, o, 8)
		if got["loss"]*train.ScoreUnit != train.NoScore {
			t.Errorf("%s: the loss is %v", name, got["loss"])
		}
		if metric == "accuracy" && got[metric] > plain[metric] || metric != "accuracy" && got[metric]*train.ScoreUnit != train.NoScore {
			t.Errorf("%s: %s is %v", name, metric, got[metric])
		}
	}
}

// Each loss has metrics, whose scores are the same however records are cut into batches.
func TestEveryLossIsScored(t *testing.T) {
	for name, o := range objectives() {
		got := scores(t, o, 9)
		var metrics []string
		for m := range got {
			metrics = append(metrics, m)
		}
		if !slices.Contains(metrics, "loss") || got["loss"] <= 0 {
			t.Errorf("%s: scores %v", name, got)
		}
		if p, ok := got["perplexity"]; ok && math.Abs(p-math.Exp(got["loss"])) > 1e-4*p {
			t.Errorf("%s: perplexity %v, loss %v", name, p, got["loss"])
		}
	}
}
