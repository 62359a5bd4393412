package lm

import (
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
)

// The step that draws a token again. One graph serves every request: numbers of the request choose among the draws of all shapes.

// drawColumn writes the last column of a chunk.
func (w stepWriter) drawColumn(chunk int) {
	b := w.b
	judged, prompt := w.place("judged"), w.place("prompt")
	before := b.Op("Sub", judged, b.Ints(1))
	x := b.With(graph.Int("axis", 1)).Op("Gather", w.read(3, "x", tensor.Float32, 1, Chunk, w.Width), b.Op("Sub", before, w.place("first")))
	w.rows = 1
	logits := w.reshape(w.head(x), w.Vocabulary)

	var pages []string
	for i := range chunk + 2 {
		pages = append(pages, w.read(4+i, "tokens", tensor.Int64, Chunk))
	}
	tokens := w.joined(pages)
	d := &drawWriter{stepWriter: w, prompt: prompt, judged: judged, known: w.joined(pages[:chunk+1]), tokens: Chunk * (chunk + 1)}
	at := func(place string) string { return b.With(graph.Int("axis", 0)).Op("Gather", tokens, place) }
	differs := b.Op("Not", b.Op("Equal", d.draw(logits), at(judged)))
	differs = b.Op("And", differs, b.Op("Not", d.anyOf(d.request("form", tensor.Uint8, canon.HashSize)))) // what a form leaves out no step knows
	ends := b.Op("Equal", at(before), d.request("ends", tensor.Int64, MaxEnds))
	over := b.Op("And", b.Op("Greater", judged, prompt), d.anyOf(ends))
	w.output("wrong", b.Op("Add", d.b.Cast(differs, tensor.Int64), d.b.Cast(over, tensor.Int64)))
}

// drawWriter writes what a token is drawn by.
type drawWriter struct {
	stepWriter
	prompt, judged string // as the place has them
	known          string // tokens from the first one on, all those before the judged one among them
	tokens         int    // how many those are
}

func (d *drawWriter) request(name string, t tensor.DType, n int) string {
	return d.read(2, name, t, n)
}

// anyOf says whether one of some bools is true, [1].
func (d *drawWriter) anyOf(x string) string {
	return d.b.Op("Greater", d.b.With(graph.Int("keepdims", 1)).Op("ReduceMax", d.b.Cast(x, tensor.Int64)), d.b.Ints(0))
}

// isNot says whether x, [1], is another number.
func (d *drawWriter) isNot(x string, number float32) string {
	return d.b.Op("Not", d.b.Op("Equal", x, d.float(number)))
}

func (d *drawWriter) float(x float32) string { return d.b.Const(vector(x)) }

// draw draws a token, int64 [1], as [samplerShape.graph] does for the shape that the request has.
func (d *drawWriter) draw(logits string) string {
	b := d.b
	given := map[string]string{}
	for _, name := range []string{"temperature", "top_p", "min_p", "repeat", "presence", "frequency"} {
		given[name] = d.request(name, tensor.Float32, 1)
	}
	k := d.request("top_k", tensor.Int64, 1)
	none := b.Op("Equal", k, b.Ints(0))
	penalties := b.Op("Or", b.Op("Or", d.isNot(given["presence"], 0), d.isNot(given["frequency"], 0)), b.Op("And", d.isNot(given["repeat"], 0), d.isNot(given["repeat"], 1)))
	random := d.isNot(given["temperature"], 0)
	filters := b.Op("Or", b.Op("Or", b.Op("Not", none), b.Op("And", d.isNot(given["top_p"], 0), d.isNot(given["top_p"], 1))), d.isNot(given["min_p"], 0))

	unless := func(name string) string { // 1 where nothing is said
		return b.Op("Where", d.isNot(given[name], 0), given[name], d.float(1))
	}
	given["temperature"], given["repeat"], given["p"], given["min"] = unless("temperature"), unless("repeat"), unless("top_p"), given["min_p"]
	given["k"] = b.Op("Where", none, b.Ints(d.Vocabulary), k)
	given["low key"], given["high key"] = d.key()
	d.count(given)
	biases := d.request("bias_ids", tensor.Int64, MaxBias)
	given["bias"] = d.scatter(biases, d.request("bias", tensor.Float32, MaxBias))

	s := &samplerGraph{b: b, all: d.Vocabulary, given: given}
	x := b.Op("Where", penalties, s.penalised(logits), logits)
	x = b.Op("Where", d.anyOf(b.Op("GreaterOrEqual", biases, b.Ints(0))), b.Op("Add", x, given["bias"]), x)
	scaled := b.Op("Div", x, given["temperature"])
	whole := s.greatest(b.Op("Add", scaled, s.noise(b.Const(vector(ids(d.Vocabulary)...)))))
	return b.Op("Where", random, b.Op("Where", filters, s.ofGreatest(scaled), whole), s.greatest(x))
}

// key is what [Key] says of seed and place.
func (d *drawWriter) key() (low, high string) {
	b := d.b
	seed, none := d.request("seed", tensor.Uint32, 2), b.Const(vector(uint32(0)))
	half := func(i int) string { return b.Op("Slice", seed, b.Ints(i), b.Ints(i+1)) }
	k := op.Words(b, d.b.Cast(d.judged, tensor.Uint32), none) // a place has 32 bits: the rest adds nothing
	return op.Words(b, half(0), k), op.Words(b, half(1), op.Words(b, k, none))
}

// count counts the tokens of the prompt, and of the reply so far.
func (d *drawWriter) count(given map[string]string) {
	b := d.b
	begins := b.Op("Sub", d.prompt, d.request("made", tensor.Int64, 1))
	places := b.Const(vector(numbers(d.tokens)...))
	ofPrompt := b.Op("Less", places, begins)
	ofReply := b.Op("And", b.Op("Not", ofPrompt), b.Op("Less", places, d.judged))
	given["prompt"] = d.scatter(d.known, d.b.Cast(ofPrompt, tensor.Float32))
	given["reply"] = d.scatter(d.known, d.b.Cast(ofReply, tensor.Float32))
}

// scatter adds numbers to zeros of all tokens, at those that are some.
func (d *drawWriter) scatter(at, numbers string) string {
	b := d.b
	at = b.Op("Where", b.Op("Less", at, b.Ints(0)), b.Ints(d.Vocabulary), at) // what is outside adds nothing; what is negative would count from the end
	zeros := b.Op("Expand", d.float(0), b.Ints(d.Vocabulary))
	return b.With(graph.Int("axis", 0), graph.String("reduction", "add")).Op("ScatterElements", zeros, at, numbers)
}
