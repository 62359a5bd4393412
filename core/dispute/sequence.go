package dispute

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Sequence is what the receipt of a reply asserts: tokens, each of which after the prompt a model draws as a request says. Its
// steps are a table: a row is a chunk of tokens, and of 2·layers + 2 columns
//
//	column 0       gives x₀, the tokens as the model embeds them
//	column 2i+1    gives the keys and values pᵢ of layer i, of xᵢ
//	column 2i+2    gives xᵢ₊₁, of xᵢ, pᵢ, and pᵢ of all chunks before
//	the last       draws a token again, and gives how often the sequence breaks the rules there
//
// docs/adr/0071-disputes-of-replies.md has what each reads.
type Sequence struct {
	Model   Model
	Request canon.Hash // root of its state
	Prompt  int        // tokens, the first of the sequence
	Reply   int        // tokens, those after
	Tokens  canon.Hash // root over the states of pages of ChunkTokens tokens, the last filled up with zeros
	Pages   canon.Hash // SaltedPages of the root over chunks of all tokens but the last, each the root over the pᵢ of its layers
	Key     canon.Hash // the ed25519 key by which pages are salted
}

// ChunkTokens is how many tokens a chunk, and a page of tokens, has.
const ChunkTokens = 128

// Limits of a sequence that can be disputed.
const (
	MaxChunks     = maxPosted
	MaxLayers     = (maxPosted - 1) / 2
	maxTokenPages = MaxChunks + 1
	maxSequence   = MaxChunks * ChunkTokens
)

// Model is what is known of a language model in hashes.
type Model struct {
	Layers int
	Chunks int        // that can be disputed: no longer sequence
	Steps  canon.Hash // root over [StepLeaf] of all steps, chunk after chunk
	Assets canon.Hash // of all else that the model is
}

// Root returns what receipts name the model by.
func (m *Model) Root() canon.Hash { return canon.Sum(canon.DomainModel, canon.Marshal(m)) }

// Columns returns how many steps a chunk has.
func (m *Model) Columns() int { return 2*m.Layers + 2 }

// MostChunks returns how many chunks of a model can be disputed at most: of so many the last has a [Step] that fits a move.
func MostChunks(layers int) int {
	const around = 2 << 10 // bytes of a Step beside Past
	past := 2 + canon.HashSize*(1+bits.Len(uint(max(layers, 1)-1)))
	return min(MaxChunks, 1+(MaxMove-around)/past)
}

// Check returns an error unless sequences of the model can be disputed.
func (m *Model) Check() error {
	if most := MostChunks(m.Layers); m.Layers < 1 || m.Layers > MaxLayers || m.Chunks < 1 || m.Chunks > most {
		return fmt.Errorf("a model of %d layers and %d chunks: want 1 to %d, and 1 to %d", m.Layers, m.Chunks, MaxLayers, most)
	}
	return nil
}

// Code walks the fields of m.
func (m *Model) Code(c *canon.Codec) {
	c.Int(&m.Layers, MaxLayers)
	c.Int(&m.Chunks, MaxChunks)
	c.Hash(&m.Steps)
	c.Hash(&m.Assets)
}

func (s *Sequence) code(c *canon.Codec) {
	s.Model.Code(c)
	c.Hash(&s.Request)
	c.Int(&s.Prompt, maxSequence+1)
	c.Int(&s.Reply, maxSequence+1)
	c.Hash(&s.Tokens)
	c.Hash(&s.Pages)
	c.Hash(&s.Key)
}

// SaltedPages returns what somebody with a key says of the pages that it has computed, before another has said it: nobody can repeat it who
// does not know their root.
func SaltedPages(root canon.Hash, key []byte) canon.Hash {
	return canon.Sum(canon.DomainPages, slices.Concat(root[:], key))
}

// salted reports whether these are the chunks that the receipt was signed for.
func (s *Sequence) salted(chunks []canon.Hash) bool {
	return SaltedPages(canon.Root(chunks), s.Key[:]) == s.Pages
}

// StepLeaf is the leaf of a step: its program, and the root of the weights that it reads.
func StepLeaf(program, weights canon.Hash) canon.Hash {
	return canon.Sum(canon.DomainStep, slices.Concat(program[:], weights[:]))
}

// PlaceState is what each step reads beside tensors: where it stands. All slots are int64 [1].
//
//	first   the place of the chunk's first token
//	judged  the place of the token that the last column draws again, 0 in others
//	prompt  tokens of the prompt
//	read    tokens of the sequence but the last
func (s *Sequence) PlaceState(chunk, judged int) *graph.State {
	return numbers([]string{"first", "judged", "prompt", "read"}, ChunkTokens*chunk, judged, s.Prompt, s.read())
}

// RightState is what the last column gives where the sequence keeps to the rules: a slot called wrong, int64 [1], of 0.
func RightState() *graph.State { return numbers([]string{"wrong"}, 0) }

func numbers(names []string, values ...int) *graph.State {
	s := &graph.State{}
	for i, name := range names {
		x := tensor.Must(tensor.From(tensor.Shape{1}, []int64{int64(values[i])}))
		s.Slots = append(s.Slots, graph.Slot{Name: name, Type: x.Type, Shape: x.Shape})
		s.Tensors = append(s.Tensors, x)
	}
	return s
}

func (s *Sequence) read() int       { return s.Prompt + s.Reply - 1 }
func (s *Sequence) chunks() int     { return pagesOf(s.read()) }
func (s *Sequence) tokenPages() int { return pagesOf(s.read() + 1) }

func pagesOf(tokens int) int { return (tokens + ChunkTokens - 1) / ChunkTokens }

// Check returns an error unless the sequence can be disputed.
func (s *Sequence) Check() error {
	if err := s.Model.Check(); err != nil {
		return err
	}
	if s.Prompt < 1 || s.Reply < 1 || s.Prompt > maxSequence || s.Reply > maxSequence || s.chunks() > s.Model.Chunks {
		return fmt.Errorf("a prompt of %d tokens and a reply of %d: want at least 1 each, and at most %d together", s.Prompt, s.Reply, s.Model.Chunks*ChunkTokens+1)
	}
	return nil
}

func (g *Game) openSequence(o Opening) (Game, error) {
	c := &g.Claim
	switch {
	case !o.empty():
		return Game{}, bad("a reply has no checkpoints: there is nothing to open")
	case c.Steps != 0 || c.Independent || len(c.Inputs) > 0 || !c.Program.IsZero() || !c.Checkpoints.IsZero():
		return Game{}, bad("a reply names no step before the game has found it")
	}
	if err := c.Sequence.Check(); err != nil {
		return Game{}, bad("%v", err)
	}
	g.Stage = PostChunks
	return *g, nil
}

// Chunks posts the roots of all chunks, and of all pages of tokens.
type Chunks struct{ Chunks, Tokens []canon.Hash }

// Steps posts what the steps of the chunk in hand give: x₀ to x of the last layer, and the keys and values of each layer.
type Steps struct{ Values, Pages []canon.Hash }

// Step names the first wrong step of the chunk in hand, and shows what it computes, and on what.
type Step struct {
	Column           int
	Judged           int // place of the token that is wrong, in the last column
	Program, Weights canon.Hash
	Path             []canon.Hash // of the step in the model
	Past             []Past       // of a layer's own step: its keys and values in each chunk before
}

// Past is a layer's keys and values in a chunk, with their path.
type Past struct {
	Root canon.Hash
	Path []canon.Hash
}

func (m *Chunks) fits(s Stage) bool { return s == PostChunks }
func (m *Steps) fits(s Stage) bool  { return s == PostSteps }
func (m *Step) fits(s Stage) bool   { return s == PickStep }

func (m *Chunks) play(g *Game) error {
	s := g.Claim.Sequence
	switch {
	case len(m.Chunks) != s.chunks() || !s.salted(m.Chunks):
		return bad("these %d chunks are not those of the receipt", len(m.Chunks))
	case len(m.Tokens) != s.tokenPages() || canon.Root(m.Tokens) != s.Tokens:
		return bad("these %d pages of tokens are not those of the receipt", len(m.Tokens))
	}
	g.Posted, g.Tokens, g.Stage = m.Chunks, m.Tokens, PickChunk
	return nil
}

// pickChunk keeps the roots of the chunks up to the one that is picked: those before are agreed on.
func (g *Game) pickChunk(i int) error {
	if i >= len(g.Posted) {
		return bad("pick %d of %d", i, len(g.Posted))
	}
	g.Chunk, g.Posted, g.Stage = i, g.Posted[:i+1], PostSteps
	return nil
}

func (m *Steps) play(g *Game) error {
	layers := g.Claim.Sequence.Model.Layers
	if len(m.Values) != layers+1 || len(m.Pages) != layers || canon.Root(m.Pages) != g.Posted[g.Chunk] {
		return bad("%d values and %d layers are not those of chunk %d", len(m.Values), len(m.Pages), g.Chunk)
	}
	g.ChunkRoots, g.Posted, g.Stage = g.Posted[:g.Chunk], columns(m.Values, m.Pages), PickStep
	return nil
}

// columns puts what steps give in the order of the table.
func columns(values, pages []canon.Hash) []canon.Hash {
	out := []canon.Hash{values[0]}
	for i, p := range pages {
		out = append(out, p, values[i+1])
	}
	return out
}

func (m *Step) play(g *Game) error {
	s := g.Claim.Sequence
	last := s.Model.Columns() - 1
	if m.Column > last {
		return bad("column %d of %d", m.Column, last+1)
	}
	at := g.Chunk*(last+1) + m.Column
	if err := canon.Verify(s.Model.Steps, s.Model.Chunks*(last+1), at, StepLeaf(m.Program, m.Weights), m.Path); err != nil {
		return bad("step %d: %v", at, err)
	}
	in, end, err := m.reads(g, last)
	if err != nil {
		return err
	}
	place, err := s.PlaceState(g.Chunk, m.Judged).Root()
	if err != nil {
		return err
	}
	c := &g.Claim
	c.Program, c.Inputs, c.Steps, c.End = m.Program, append([]canon.Hash{m.Weights, place}, in...), 1, end
	g.Column, g.Judged = m.Column, m.Judged
	g.Lo, g.Hi, g.LoRoot, g.HiRoot = 0, 1, c.Inputs[0], end
	g.Tokens, g.ChunkRoots = nil, nil
	g.narrowSteps()
	return nil
}

// reads returns the states that the step reads beside its weights and its place, and the one that it is to give.
func (m *Step) reads(g *Game, last int) (in []canon.Hash, end canon.Hash, err error) {
	s := g.Claim.Sequence
	if m.Column == last {
		if m.Judged < s.Prompt || m.Judged > s.read() || (m.Judged-1)/ChunkTokens != g.Chunk {
			return nil, end, bad("chunk %d does not draw token %d", g.Chunk, m.Judged)
		}
		end, err = RightState().Root()
		in = append([]canon.Hash{s.Request, g.Posted[last-1]}, g.Tokens[:g.Chunk+1]...)
		return append(in, g.Tokens[min(g.Chunk+1, len(g.Tokens)-1)]), end, err
	}
	if m.Judged != 0 {
		return nil, end, bad("column %d judges no token", m.Column)
	}
	end = g.Posted[m.Column]
	switch {
	case m.Column == 0:
		in = []canon.Hash{g.Tokens[g.Chunk]}
	case m.Column%2 == 1:
		in = []canon.Hash{g.Posted[m.Column-1]}
	default:
		in = []canon.Hash{g.Posted[m.Column-2], g.Posted[m.Column-1]}
	}
	if m.Column == 0 || m.Column%2 == 1 {
		if len(m.Past) > 0 {
			return nil, end, bad("column %d reads nothing of chunks before", m.Column)
		}
		return in, end, nil
	}
	if len(m.Past) != g.Chunk {
		return nil, end, bad("keys and values of %d chunks before, want %d", len(m.Past), g.Chunk)
	}
	layer := m.Column/2 - 1
	for j, p := range m.Past {
		if err := canon.Verify(g.ChunkRoots[j], s.Model.Layers, layer, p.Root, p.Path); err != nil {
			return nil, end, bad("layer %d of chunk %d: %v", layer, j, err)
		}
		in = append(in, p.Root)
	}
	return in, end, nil
}

// Code walks the fields of m.
func (m *Chunks) Code(c *canon.Codec) {
	c.Hashes(&m.Chunks, MaxChunks)
	c.Hashes(&m.Tokens, maxTokenPages)
}

// Code walks the fields of m.
func (m *Steps) Code(c *canon.Codec) {
	c.Hashes(&m.Values, MaxLayers+1)
	c.Hashes(&m.Pages, MaxLayers)
}

// Code walks the fields of m.
func (m *Step) Code(c *canon.Codec) {
	c.Int(&m.Column, 2*MaxLayers+2)
	c.Int(&m.Judged, maxSequence+1)
	c.Hash(&m.Program)
	c.Hash(&m.Weights)
	c.Hashes(&m.Path, maxPath)
	canon.Seq(c, &m.Past, MaxChunks, canon.HashSize, func(c *canon.Codec, p *Past) {
		c.Hash(&p.Root)
		c.Hashes(&p.Path, maxPath)
	})
}

// SequenceWitness is a party's own account of a sequence.
type SequenceWitness interface {
	// Pages returns the roots of all chunks, and of all pages of tokens.
	Pages() (chunks, tokens []canon.Hash, err error)
	// Chunk returns what the steps of a chunk give, but for the last.
	Chunk(chunk int) (values, pages []canon.Hash, err error)
	// Wrong returns the place of the first token that a chunk draws otherwise than it stands, or that follows an end; −1: none.
	Wrong(chunk int) (int, error)
	// Step opens a step in the model.
	Step(chunk, column int) (program, weights canon.Hash, path []canon.Hash, err error)
	// Execute returns the complete run of a step.
	Execute(chunk, column, judged int) (*Execution, error)
}

// WitnessOf returns the account of a sequence as Play takes it.
func WitnessOf(w SequenceWitness) Witness { return sequenceWitness{w} }

type sequenceWitness struct{ SequenceWitness }

func (sequenceWitness) Root(int) (canon.Hash, error)      { return canon.Hash{}, errSequence }
func (sequenceWitness) Execution(int) (*Execution, error) { return nil, errSequence }

var errSequence = errors.New("a reply has no steps that follow each other")

// accountOf returns the account of a sequence.
func accountOf(w Witness) (SequenceWitness, error) {
	if s, ok := w.(sequenceWitness); ok {
		return s.SequenceWitness, nil
	}
	return nil, fmt.Errorf("the claim is a reply's: this account is of none")
}

// execution returns the run of the step in hand.
func execution(g *Game, w Witness) (*Execution, error) {
	if g.Claim.Sequence == nil {
		return w.Execution(g.Lo)
	}
	s, err := accountOf(w)
	if err != nil {
		return nil, err
	}
	return s.Execute(g.Chunk, g.Column, g.Judged)
}

// playSequence returns the move of a party before a step is found.
func playSequence(g *Game, w Witness) (Move, error) {
	s, err := accountOf(w)
	if err != nil {
		return nil, err
	}
	switch g.Stage {
	case PostChunks:
		chunks, tokens, err := s.Pages()
		return &Chunks{chunks, tokens}, err
	case PickChunk:
		i, err := firstWrongChunk(g.Posted, s)
		return &Pick{Index: i}, err
	case PostSteps:
		values, pages, err := s.Chunk(g.Chunk)
		return &Steps{values, pages}, err
	}
	return pickStep(g, s)
}

// firstWrongChunk returns the first chunk of which a root or a token is wrong.
func firstWrongChunk(posted []canon.Hash, s SequenceWitness) (int, error) {
	mine, _, err := s.Pages()
	if err != nil {
		return 0, err
	}
	until := firstDifference(posted, mine)
	for c := range min(until+1, len(posted)) {
		wrong, err := s.Wrong(c)
		if err != nil || wrong >= 0 {
			return c, err
		}
	}
	if until == len(posted) {
		return 0, ErrAgree
	}
	return until, nil
}

func pickStep(g *Game, s SequenceWitness) (Move, error) {
	values, pages, err := s.Chunk(g.Chunk)
	if err != nil {
		return nil, err
	}
	m := &Step{Column: firstDifference(g.Posted, columns(values, pages))}
	if m.Column == len(g.Posted) {
		switch m.Judged, err = s.Wrong(g.Chunk); {
		case err != nil:
			return nil, err
		case m.Judged < 0:
			return nil, ErrAgree
		}
	}
	if m.Program, m.Weights, m.Path, err = s.Step(g.Chunk, m.Column); err != nil {
		return nil, err
	}
	if m.Column == len(g.Posted) || m.Column == 0 || m.Column%2 == 1 {
		return m, nil
	}
	layer := m.Column/2 - 1
	for c := range g.Chunk {
		_, pages, err := s.Chunk(c)
		if err != nil {
			return nil, err
		}
		m.Past = append(m.Past, Past{pages[layer], canon.NewTree(pages).Prove(layer)})
	}
	return m, nil
}

// holdsSequence reports whether what is in hand before a step is found is what w computes.
func holdsSequence(g *Game, w Witness) (bool, error) {
	s, err := accountOf(w)
	if err != nil {
		return false, err
	}
	chunks, _, err := s.Pages()
	if err != nil {
		return false, err
	}
	switch g.Stage {
	case PostChunks:
		if !g.Claim.Sequence.salted(chunks) {
			return false, nil
		}
		_, err = firstWrongChunk(chunks, s)
	case PickChunk:
		_, err = firstWrongChunk(g.Posted, s)
	case PostSteps:
		if chunks[g.Chunk] != g.Posted[g.Chunk] {
			return false, nil
		}
		wrong, err := s.Wrong(g.Chunk)
		return wrong < 0, err
	case PickStep:
		_, err = pickStep(g, s)
	}
	if errors.Is(err, ErrAgree) {
		return true, nil
	}
	return false, err
}
