package train_test

import (
	"math"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

// The model of these tests predicts a token from the one before it:
// logits = embedding[token]·head + bias.
const vocab, width, context, batch = 5, 3, 4, 2

// pattern is numbers that look arbitrary, the same for a given start.
func pattern(start int, shape ...int) *tensor.Tensor {
	t := tensor.Must(tensor.New(tensor.Float32, shape))
	for i := range t.Len() {
		t.Set(i, tensor.F32(float32((start+i)*(start+i+3)%17-8)/10))
	}
	return t
}

func bigram() *graph.Graph {
	b := graph.NewBuilder("bigram")
	tokens := b.Input("tokens", tensor.Int64, tensor.Shape{batch, context})
	x := b.Op("Gather", b.Init("embedding", pattern(1, vocab, width)), tokens)
	y := b.Op("Add", b.Op("MatMul", x, b.Init("head", pattern(2, width, vocab))), b.Init("bias", pattern(3, vocab)))
	b.Output(y, tensor.Float32, tensor.Shape{batch, context, vocab})
	return b.Graph()
}

func recipe() train.Recipe {
	return train.Recipe{
		Loss: "next-token-cross-entropy", Optimizer: "adamw", Rate: train.Rate{LearningRate: 0.05, Warmup: 4},
		Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-6, WeightDecay: 0.1, Batch: batch,
	}
}

const records = 6

// text is records of tokens in which each follows from the one before it, but
// for the first.
func text() *tensor.Tensor {
	t := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{records, context + 1}))
	v := tensor.Of[int32](t)
	for i := range v {
		if v[i] = int32(i / 5 % vocab); i%(context+1) > 0 {
			v[i] = (2*v[i-1] + 1) % vocab
		}
	}
	return t
}

func begin(t *testing.T, g *graph.Graph, r train.Recipe) *train.Training {
	t.Helper()
	tr, err := train.New(g, r, tensor.Shape{records, context + 1})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func run(t *testing.T, p *graph.Program, rows []int64, states ...*graph.State) *graph.State {
	t.Helper()
	s, err := p.Run(graph.Inputs{States: states, Data: text(), Rows: rows}, graph.Reference, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func order() record.Order {
	return record.Order{Seed: 7, Records: records, Shards: 1, Batch: batch}
}

// reference trains the same model in float64, by formulas written out.
type reference struct {
	r       train.Recipe
	p, m, v map[string][]float64
	sum     map[string][]float64 // of gradients since the last update
	done, t float64              // steps, updates
	loss    float64
	embed   bool // whether the embedding is trained
}

func newReference(r train.Recipe) *reference {
	x := &reference{r: r, p: map[string][]float64{}, m: map[string][]float64{}, v: map[string][]float64{}, sum: map[string][]float64{}, embed: true}
	for _, c := range bigram().Consts {
		for _, w := range tensor.Of[float32](c.Tensor) {
			x.p[c.Name] = append(x.p[c.Name], float64(w))
		}
		x.m[c.Name], x.v[c.Name], x.sum[c.Name] = make([]float64, c.Tensor.Len()), make([]float64, c.Tensor.Len()), make([]float64, c.Tensor.Len())
	}
	return x
}

// gradients returns the loss on a batch and its gradients.
func (x *reference) gradients(rows []int64) (loss float64, g map[string][]float64) {
	e, h, bias := x.p["embedding"], x.p["head"], x.p["bias"]
	g = map[string][]float64{"embedding": make([]float64, len(e)), "head": make([]float64, len(h)), "bias": make([]float64, len(bias))}
	data, n := tensor.Of[int32](text()), float64(len(rows)*context)
	for _, row := range rows {
		for t := range context {
			at := int(row)*(context+1) + t
			token, next := int(data[at]), int(data[at+1])
			logits, sum := make([]float64, vocab), 0.0
			for j := range logits {
				logits[j] = bias[j]
				for d := range width {
					logits[j] += e[token*width+d] * h[d*vocab+j]
				}
				sum += math.Exp(logits[j])
			}
			loss -= (logits[next] - math.Log(sum)) / n
			for j := range logits {
				dy := math.Exp(logits[j]) / sum / n
				if j == next {
					dy -= 1 / n
				}
				g["bias"][j] += dy
				for d := range width {
					g["head"][d*vocab+j] += dy * e[token*width+d]
					g["embedding"][token*width+d] += dy * h[d*vocab+j]
				}
			}
		}
	}
	return loss, g
}

// rate is the learning rate of the newest step.
func (x *reference) rate() float64 {
	r := x.r.Rate
	rate := float64(r.LearningRate) * min(1, x.done/float64(max(1, r.Warmup)))
	if r.Decay > 0 {
		far := min(1, max(0, x.done-float64(r.Warmup))/float64(r.Decay))
		left := map[string]float64{"linear": 1 - far, "cosine": (1 + math.Cos(math.Pi*far)) / 2}[r.Schedule]
		rate *= float64(r.Final) + (1-float64(r.Final))*left
	}
	return rate
}

func (x *reference) trains(name string) bool { return name != "embedding" || x.embed }

func (x *reference) step(rows []int64) {
	var g map[string][]float64
	x.loss, g = x.gradients(rows)
	x.done++
	every := max(1, x.r.Accumulate)
	norm := 0.0
	for name, sum := range x.sum {
		for i := range sum {
			if sum[i] += g[name][i] / float64(every); x.trains(name) {
				norm += sum[i] * sum[i]
			}
		}
	}
	if int(x.done)%every != 0 {
		return
	}
	x.t++
	scale := 1.0
	if c := float64(x.r.ClipNorm); c > 0 {
		scale = c / max(math.Sqrt(norm), c)
	}
	for name := range x.p {
		if x.trains(name) {
			x.update(name, scale)
		}
		clear(x.sum[name])
	}
}

func (x *reference) update(name string, scale float64) {
	p, m, v := x.p[name], x.m[name], x.v[name]
	b1, b2, eps, mu := float64(x.r.Beta1), float64(x.r.Beta2), float64(x.r.Epsilon), float64(x.r.Momentum)
	rate, decay := x.rate(), 0.0
	if name != "bias" {
		decay = float64(x.r.WeightDecay)
	}
	for i, dp := range x.sum[name] {
		dp *= scale
		coupled := x.r.Optimizer == "adam" || x.r.Optimizer == "adagrad"
		if coupled {
			dp += decay * p[i]
		}
		switch x.r.Optimizer {
		case "sgd":
			m[i] = mu*m[i] + dp
			if mu != 0 && x.r.Nesterov {
				dp += mu * m[i]
			} else {
				dp = m[i]
			}
		case "adam", "adamw":
			m[i] = b1*m[i] + (1-b1)*dp
			v[i] = b2*v[i] + (1-b2)*dp*dp
			dp = m[i] / (1 - math.Pow(b1, x.t)) / (math.Sqrt(v[i]/(1-math.Pow(b2, x.t))) + eps)
		case "adagrad":
			v[i] += dp * dp
			dp /= math.Sqrt(v[i]) + eps
		}
		if !coupled {
			dp += decay * p[i]
		}
		p[i] -= rate * dp
	}
}
