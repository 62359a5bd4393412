package dispute

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Side is a party of a game.
type Side uint8

// The sides. Nobody is the loser of a game that is not over.
const (
	Nobody Side = iota
	Defender
	Challenger
)

// String returns the side's name.
func (s Side) String() string { return [...]string{"nobody", "defender", "challenger"}[min(s, 3)%3] }

// Stage says what kind of move comes next.
type Stage uint8

// The stages. A Post stage is the defender's, a Pick or Prove stage the
// challenger's.
const (
	PostRoots   Stage = iota + 1 // state roots between two steps
	PickRoot                     // the first wrong one
	PostTrace                    // program header and top of the step's trace
	PickTrace                    // a subtree of the trace, or the outputs
	PostSubtree                  // the next levels of the tree in hand
	PickSubtree                  // the first wrong subtree
	PostNode                     // the node and the top of its output's tile tree
	PostTile                     // the bytes of the tile
	PickElement                  // the first wrong element
	PostStates                   // accumulators between two fold blocks
	PickState                    // the first wrong one
	ProveBlock                   // operands of the fold block
	ProveOutput                  // that a slot's new value is not what the trace says
	PostChunks                   // of a sequence: roots of its chunks, and of its pages of tokens
	PickChunk                    // the first wrong one
	PostSteps                    // what the steps of the chunk give
	PickStep                     // the first wrong one, with what it reads
	Over
)

var stageNames = [...]string{"none", "post roots", "pick root", "post trace", "pick in trace", "post subtree", "pick subtree", "post node", "post tile",
	"pick element", "post states", "pick state", "prove block", "prove output", "post chunks", "pick chunk", "post steps", "pick step", "over"}

// String returns the stage's name.
func (s Stage) String() string { return stageNames[min(int(s), len(stageNames)-1)] }

// Turn returns the side that moves in a stage.
func (s Stage) Turn() Side {
	switch s {
	case PostRoots, PostTrace, PostSubtree, PostNode, PostTile, PostStates, PostChunks, PostSteps:
		return Defender
	case Over:
		return Nobody
	}
	return Challenger
}

// Forfeit divides the bond of a side that has lost: half goes to who played for
// the winner, the rest to the insurance fund, so that losing to oneself costs.
func Forfeit(bond uint64) (winner, fund uint64) { return bond / 2, bond - bond/2 }

// Rules are the parameters of a game.
type Rules struct {
	Depth    int   // a post shows at most 2^Depth commitments
	Clock    int64 // protocol time in milliseconds that each side has in all
	Answer   int64 // protocol time in milliseconds after which a side that has not moved has missed its answer
	Parallel int   // games about one defender's work that run at once; the others wait
}

// DefaultRules suit transactions of at most 64 KiB.
var DefaultRules = Rules{Depth: 6, Clock: 30 * 60 * 1000, Answer: 10 * 60 * 1000, Parallel: 4}

// Bounds of Rules.Depth and Rules.Parallel.
const (
	MaxDepth    = 8
	MaxParallel = 64
)

// Check returns an error unless the rules can be played.
func (r Rules) Check() error {
	if r.Depth < 1 || r.Depth > MaxDepth || r.Clock < 1 || r.Answer < 1 || r.Answer > r.Clock {
		return fmt.Errorf("dispute rules need a depth between 1 and %d, a positive clock and a time to answer within it; got %d, %d and %d ms",
			MaxDepth, r.Depth, r.Clock, r.Answer)
	}
	if r.Parallel < 1 || r.Parallel > MaxParallel {
		return fmt.Errorf("%d games about one defender's work at once, want between 1 and %d", r.Parallel, MaxParallel)
	}
	return nil
}

// Bounds on what rules may be set while a network runs.
const (
	Slot     = 5_000                // ms until a move is computed and in a block, at least
	MaxClock = 7 * 24 * 3600 * 1000 // ms; two clocks are the longest that a dispute delays anything
)

// Turns bounds the moves that a side makes in a dispute about 10⁶ steps of 10⁴ nodes. Their
// outputs have up to 10⁶ tiles and sums of 10³ fold blocks.
func (r Rules) Turns() int {
	parts := func(bits int) int { return (bits + r.Depth - 1) / r.Depth }
	const opening, sequence, node, tile, last = 1, 2, 1, 1, 1
	return opening + sequence + parts(20) + parts(14) + 1 + node + parts(20) + 1 + tile + parts(10) + last
}

// Playable returns an error that shows, with its numbers, why an honest side might
// lose under these rules, or be delayed for ever.
func (r Rules) Playable() error {
	if err := r.Check(); err != nil {
		return err
	}
	turns := int64(r.Turns())
	switch {
	case r.Answer < Slot:
		return fmt.Errorf("nobody could answer in time: answer_ms = %d < %d", r.Answer, Slot)
	case r.Clock-r.Answer < turns*Slot:
		return fmt.Errorf("who takes a silent side's seat could not finish: clock_ms − answer_ms = %d − %d < %d moves · %d",
			r.Clock, r.Answer, turns, Slot)
	case r.Clock > MaxClock:
		return fmt.Errorf("a dispute could hold up an order for more than two weeks: clock_ms = %d > %d", r.Clock, MaxClock)
	}
	return nil
}

// Keeps returns an error that shows the inequality if work that was leased under old
// rules could no longer be defended: what one game may take of a defender's time for
// an answer must not shrink (job.Params.Replayable). Both are Playable.
//
//	answer_ms / parallel ≥ old answer_ms / old parallel
func (r Rules) Keeps(old Rules) error {
	if r.Answer*int64(old.Parallel) >= old.Answer*int64(r.Parallel) {
		return nil
	}
	return fmt.Errorf("work that is leased could no longer be defended in time: answer_ms / parallel = %d / %d < %d / %d, as it is",
		r.Answer, r.Parallel, old.Answer, old.Parallel)
}

// Tree says which tree is being searched.
type Tree uint8

// The trees.
const (
	TraceTree  Tree = iota + 1 // outputs of the step's nodes
	OutputTree                 // slots of the resulting state
	TileTree                   // tiles of one node's output
)

// Subtree is a commitment that both sides agree on.
type Subtree struct {
	Span canon.Span
	Hash canon.Hash
}

// Hand is the subtree in hand.
type Hand struct {
	Tree Tree
	Span canon.Span
	Top  canon.Hash
}

// Cell is the step in hand of a sequence, and until it is found what the search for it needs.
type Cell struct {
	Chunk, Column, Judged int
	Tokens                []canon.Hash // roots of all pages of tokens
	ChunkRoots            []canon.Hash // of the chunks before, which are agreed on
}

// Game is the whole state of a dispute.
type Game struct {
	Claim Claim
	Rules Rules
	Stage Stage
	Left  [2]int64 // milliseconds left on the clocks of defender and challenger
	Since int64    // protocol time at which the turn began
	Moves int

	Waiting bool // not begun: no clock runs, and nobody moves
	Missed  bool // the side to move has not answered in time
	Silent  bool // the loser let its clock run out

	// Steps Lo to Hi: the state after Lo is agreed, the one after Hi disputed.
	Lo, Hi         int
	LoRoot, HiRoot canon.Hash

	Cell // of a sequence

	Header *graph.Header // of the program, once it is opened
	Agreed []Subtree     // of the trace

	Hand
	Posted []canon.Hash // below the subtree in hand, or between its ends

	Node    int
	Opcode  *graph.Opcode
	Tile    int
	Content []byte
	Element int

	// Fold blocks From to To: the state before From is agreed, the one after To
	// is not. A nil state before block 0 is the primitive's own start.
	From, To   int
	FromState  []tensor.Word
	ToState    []tensor.Word
	BlockState [][]tensor.Word // posted

	Loser  Side
	Reason string
}

// Errors that callers tell apart.
var (
	ErrTurn = errors.New("it is the other side's turn")
	ErrLate = errors.New("the clock has run out")
	ErrWait = errors.New("the game has not begun")
	ErrMove = errors.New("move does not fit the game")
)

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMove, fmt.Sprintf(format, args...))
}

// Opening starts a game: the challenger names the segment of the claim that is
// wrong, and opens the two checkpoints at its ends. A claim of a single step
// has no checkpoints and needs an empty Opening.
type Opening struct {
	Segment          int
	From, To         canon.Hash
	FromPath, ToPath []canon.Hash
}

func (o *Opening) empty() bool {
	return o.Segment == 0 && o.From.IsZero() && o.To.IsZero() && len(o.FromPath) == 0 && len(o.ToPath) == 0
}

// Open starts a game at protocol time now. A claim whose own checkpoints
// contradict its start or its end is lost at once.
func Open(c Claim, r Rules, o Opening, now int64) (Game, error) {
	if err := r.Check(); err != nil {
		return Game{}, err
	}
	g := Game{Claim: c, Rules: r, Left: [2]int64{r.Clock, r.Clock}, Since: now, Moves: 1}
	if c.Sequence != nil {
		return g.openSequence(o)
	}
	if c.Steps < 1 || len(c.Inputs) == 0 {
		return Game{}, bad("a claim of %d steps from %d states", c.Steps, len(c.Inputs))
	}
	if c.Checkpoints.IsZero() {
		if c.Steps != 1 {
			return Game{}, bad("a claim of %d steps without checkpoints", c.Steps)
		}
		if !o.empty() {
			return Game{}, bad("the claim has one step and no checkpoints: there is nothing to open")
		}
		g.Hi, g.LoRoot, g.HiRoot = 1, c.Inputs[0], c.End
		g.narrowSteps()
		return g, nil
	}
	n := c.Segments()
	switch {
	case c.Independent && c.Interval != 1, !c.Independent && len(c.Inputs) != 1:
		return Game{}, bad("a claim from %d states, with %d steps between checkpoints", len(c.Inputs), c.Interval)
	case o.Segment < 0 || o.Segment >= n:
		return Game{}, bad("segment %d of %d", o.Segment, n)
	}
	if err := canon.Verify(c.Checkpoints, n+1, o.Segment, o.From, o.FromPath); err != nil {
		return Game{}, bad("start of segment %d: %v", o.Segment, err)
	}
	if err := canon.Verify(c.Checkpoints, n+1, o.Segment+1, o.To, o.ToPath); err != nil {
		return Game{}, bad("end of segment %d: %v", o.Segment, err)
	}
	g.Lo, g.Hi = o.Segment*c.Interval, min((o.Segment+1)*c.Interval, c.Steps)
	g.LoRoot, g.HiRoot = o.From, o.To
	switch {
	case o.Segment == 0 && o.From != c.Inputs[0]:
		g.end(Defender, "the first checkpoint is not the start state")
	case o.Segment == n-1 && o.To != c.End && !c.Independent:
		g.end(Defender, "the last checkpoint is not the end state")
	default:
		g.narrowSteps()
	}
	return g, nil
}

func (g *Game) end(loser Side, reason string) {
	g.Stage, g.Loser, g.Reason = Over, loser, clip(reason)
}

// maxReason bounds Game.Reason in bytes. Reasons quote names that others chose.
const maxReason = 1 << 10

// clip cuts s between two runes to at most maxReason bytes.
func clip(s string) string {
	if len(s) <= maxReason {
		return s
	}
	end := maxReason
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

func (g *Game) narrowSteps() {
	g.Posted = nil
	if g.Hi-g.Lo > 1 {
		g.Stage = PostRoots
	} else {
		g.Stage = PostTrace
	}
}

// Inputs returns the agreed states that the step in hand reads.
func (g *Game) Inputs() []canon.Hash {
	if g.Claim.Independent || len(g.Claim.Inputs) > 1 {
		return g.Claim.Inputs
	}
	return []canon.Hash{g.LoRoot}
}

// Expired reports whether the side to move has run out of time at now.
func (g *Game) Expired(now int64) bool {
	return g.Stage != Over && !g.Waiting && now-g.Since > g.Left[g.Stage.Turn()-1]
}

// Never is a time that does not come.
const Never = math.MaxInt64

// Deadline returns the protocol time after which the side to move has lost, Never
// while g waits.
func (g *Game) Deadline() int64 {
	if g.Waiting {
		return Never
	}
	return g.Since + g.Left[max(g.Stage.Turn(), 1)-1]
}

// Wait lets a game that was just opened wait until it is begun: its clocks stand
// still. One that is over at once has nothing to wait for.
func Wait(g Game) Game {
	g.Waiting = g.Stage != Over
	return g
}

// Begin begins a game that has waited, at protocol time now.
func Begin(g Game, now int64) Game {
	if g.Waiting {
		g.Waiting, g.Since = false, now
	}
	return g
}

// Wake returns the protocol time after which Expire has something to do, Never while g
// waits.
func (g *Game) Wake() int64 {
	if at := g.Since + g.Rules.Answer; !g.Waiting && !g.Missed && at < g.Deadline() {
		return at
	}
	return g.Deadline()
}

// Expire lets time pass: the side to move misses its answer, and loses when its
// clock has run out.
func Expire(g Game, now int64) Game {
	switch {
	case g.Expired(now):
		g.Silent = true
		g.end(g.Stage.Turn(), "silent until the clock ran out")
	case g.Stage != Over && !g.Waiting && now-g.Since > g.Rules.Answer:
		g.Missed = true
	}
	return g
}

// mayPlay returns an error unless it is a side's turn and its clock has not run
// out.
func (g *Game) mayPlay(side Side, now int64) error {
	switch {
	case g.Stage == Over:
		return fmt.Errorf("the dispute is over: %s", g.Reason)
	case g.Waiting:
		return ErrWait
	case side != g.Stage.Turn():
		return ErrTurn
	case g.Expired(now):
		return ErrLate
	}
	return nil
}

// Substitute gives the seat of the side to move, which has missed its answer, to
// somebody else: the turn begins anew, with what is left on the side's clock.
func Substitute(g Game, side Side, now int64) (Game, error) {
	if err := g.mayPlay(side, now); err != nil {
		return g, err
	}
	if !g.Missed {
		return g, fmt.Errorf("the %v has not missed an answer yet; it has until protocol time %d ms", side, g.Since+g.Rules.Answer)
	}
	g.pass(side, now)
	return g, nil
}

// Drop ends g without a loser: what it was about has been decided elsewhere.
func Drop(g Game, reason string) Game {
	g.Waiting = false
	g.end(Nobody, reason)
	return g
}

// pass charges a turn to its side's clock.
func (g *Game) pass(side Side, now int64) {
	g.Left[side-1] -= max(now-g.Since, 0)
	g.Since, g.Missed = now, false
}

// Apply plays move m of the given side at protocol time now. An error leaves the
// game as it was: a wrong move costs nothing but time.
func Apply(g Game, side Side, m Move, now int64) (Game, error) {
	if err := g.mayPlay(side, now); err != nil {
		return g, err
	}
	if m == nil || !m.fits(g.Stage) {
		return g, bad("%v is expected, not %T", g.Stage, m)
	}
	next := g
	if err := m.play(&next); err != nil {
		return g, err
	}
	next.pass(side, now)
	next.Moves++
	return next, nil
}

// parts returns the positions at which n > 1 transitions from lo are cut into
// at most 2^depth parts: the end of every part but the last.
func parts(lo, hi, depth int) []int {
	n := min(hi-lo, 1<<depth)
	out := make([]int, n-1)
	for i := range out {
		out[i] = lo + (hi-lo)*(i+1)/n
	}
	return out
}

// stateDepth bounds a post of accumulators, of up to tensor.Lanes words each, so
// that it fits a move.
const stateDepth = 7

// Cuts returns the steps or fold blocks that the next post must show.
func (g *Game) Cuts() []int {
	if g.Stage == PostStates || g.Stage == PickState {
		return parts(g.From, g.To, min(g.Rules.Depth, stateDepth))
	}
	return parts(g.Lo, g.Hi, g.Rules.Depth)
}

// Below returns the subtrees that the last or next post shows below the one in
// hand.
func (g *Game) Below() []canon.Span { return g.Span.Expand(g.Rules.Depth) }
