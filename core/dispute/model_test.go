package dispute

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// In these games one side is honest and the other does whatever it can think of.

// left says how much is left of a game, in lexical order: which search it is in,
// how much that has before it, and whether the post is still to come.
func (g *Game) left() []int {
	post := 0
	if g.Stage.Turn() == Defender {
		post = 1
	}
	switch g.Stage {
	case PostRoots, PickRoot:
		return []int{7, g.Hi - g.Lo, post}
	case PostTrace:
		return []int{6, graph.MaxNodes, post}
	case PickTrace:
		return []int{6, g.Span.N, post}
	case PostSubtree, PickSubtree:
		return []int{map[Tree]int{TraceTree: 6, OutputTree: 5, TileTree: 4}[g.Tree], g.Span.N, post}
	case PostNode:
		return []int{5, 0, post}
	case PostTile, PickElement:
		return []int{3, 0, post}
	case PostStates, PickState:
		return []int{2, g.To - g.From, post}
	case ProveBlock, ProveOutput:
		return []int{1}
	}
	return []int{0}
}

// mustFollow checks what holds after every move that is taken.
func mustFollow(t testing.TB, before, after *Game, now int64) {
	t.Helper()
	side := before.Stage.Turn()
	stored(t, *after)
	clocks := before.Left
	clocks[side-1] -= now - before.Since
	switch {
	case after.Moves != before.Moves+1 || after.Left != clocks || after.Since != now || min(clocks[0], clocks[1]) < 0:
		t.Fatalf("stage %v: move %d at %d ms with clocks %v comes after move %d with clocks %v", before.Stage, after.Moves, now, after.Left, before.Moves, before.Left)
	case (after.Stage == Over) != (after.Loser != Nobody):
		t.Fatalf("stage %v: %v has lost", after.Stage, after.Loser)
	case slices.Compare(after.left(), before.left()) >= 0:
		t.Fatalf("from stage %v to %v nothing was narrowed: %v, %v", before.Stage, after.Stage, before.left(), after.left())
	}
}

// mustRefuse plays a move that is not allowed.
func mustRefuse(t testing.TB, g *Game, side Side, m Move, now int64, want error) {
	t.Helper()
	before := canon.Marshal(g)
	after, err := Apply(*g, side, m, now)
	if err == nil || want != nil && !errors.Is(err, want) {
		t.Fatalf("stage %v: %T by the %v gave %v", g.Stage, m, side, err)
	}
	if !bytes.Equal(canon.Marshal(&after), before) {
		t.Fatalf("stage %v: a refused move changed the game", g.Stage)
	}
}

// everyKind is a move of each kind, without content.
func everyKind() (out []Move) {
	for kind := range uint8(255) {
		m := newMove(kind)
		if n, ok := m.(*Node); ok {
			n.Leaf.Opcode.Primitive = &tensor.Primitive{} // as decoding would
		}
		if m != nil {
			out = append(out, m)
		}
	}
	return out
}

// Every sequence of moves by which a defender of a false claim can answer an
// honest challenger, up to the depth of the game: each post is any mixture of
// what four accounts (the truth, the claim's own and two other false ones) and
// plain noise have in its places. At every point either side may fall silent
// instead, and every move of another kind or by the wrong side is refused.
func TestNoSequenceOfLiesBeatsAnHonestChallenger(t *testing.T) {
	right := newParty(t, honest)
	lies := []Witness{newParty(t, fault{2, 3, 4, 0, false}), newParty(t, fault{2, 6, 50, 0, false}), newParty(t, fault{3, 3, 4, 1, false}), right}
	games, positions, deepest := 0, 0, 0
	var explore func(g Game)
	explore = func(g Game) {
		if g.Stage == Over {
			games++
			deepest = max(deepest, g.Moves)
			if g.Loser != Defender {
				t.Fatalf("an honest challenger lost: %s", g.Reason)
			}
			return
		}
		positions++
		side := g.Stage.Turn()
		if late := Expire(g, g.Deadline()+1); late.Loser != side {
			t.Fatalf("the %v fell silent and the %v lost", side, late.Loser)
		}
		for _, m := range everyKind() {
			mustRefuse(t, &g, 3-side, m, 0, ErrTurn)
			if !m.fits(g.Stage) {
				mustRefuse(t, &g, side, m, 0, ErrMove)
			}
		}
		taken := 0
		for _, m := range answers(t, &g, right, lies) {
			next, err := Apply(g, side, m, 0)
			if err != nil {
				if side == Challenger {
					t.Fatalf("stage %v: an honest move was refused: %v", g.Stage, err)
				}
				continue
			}
			mustFollow(t, &g, &next, 0)
			taken++
			explore(next)
		}
		if taken == 0 { // nothing fits what was committed to
			games++
			deepest = max(deepest, g.Moves)
		}
	}
	for _, author := range lies[:3] {
		c, points := author.(*party).claim()
		o, err := Challenge(c, points, right)
		if err != nil {
			t.Fatal(err)
		}
		g, err := Open(c, toyRules, o, 0)
		if err != nil {
			t.Fatal(err)
		}
		explore(g)
	}
	if games < 300 || deepest < 8 {
		t.Fatalf("only %d games, at most %d moves", games, deepest)
	}
	t.Logf("%d games, %d positions, at most %d moves", games, positions, deepest)
}

// answers are the moves that an honest challenger makes, which is one, or those
// that a dishonest defender can make up.
func answers(t *testing.T, g *Game, right Witness, lies []Witness) []Move {
	if g.Stage.Turn() == Challenger {
		m, err := Play(g, right)
		if err != nil {
			t.Fatalf("stage %v: an honest challenger has nothing to say: %v", g.Stage, err)
		}
		return []Move{m}
	}
	var whole []Move
	for _, w := range lies {
		if m, err := Play(g, w); err == nil {
			whole = append(whole, m)
		}
	}
	var out []Move
	seen := map[string]bool{}
	add := func(m Move) {
		if b := string(EncodeMove(m)); !seen[b] {
			seen[b] = true
			out = append(out, m)
		}
	}
	for _, m := range whole {
		for _, mixed := range mixtures(hashesOf(m), whole) {
			add(withHashes(m, mixed))
		}
		switch m := m.(type) {
		case *States:
			for i := range m.States {
				bent := &States{slices.Clone(m.States)}
				bent.States[i] = slices.Clone(m.States[i])
				bent.States[i][0] ^= 1
				add(bent)
			}
		case *Tile:
			bent := &Tile{slices.Clone(m.Content)}
			bent.Content[0] ^= 1
			add(bent)
		}
	}
	return out
}

// mixtures returns all lists that have in each place what one of the posts has
// there, or noise.
func mixtures(like []canon.Hash, posts []Move) [][]canon.Hash {
	out := [][]canon.Hash{nil}
	for i := range like {
		var longer [][]canon.Hash
		choices := []canon.Hash{canon.Sum("noise")}
		for _, m := range posts {
			if h := hashesOf(m); i < len(h) && !slices.Contains(choices, h[i]) {
				choices = append(choices, h[i])
			}
		}
		for _, head := range out {
			for _, h := range choices {
				longer = append(longer, append(slices.Clip(head), h))
			}
		}
		out = longer
	}
	return out
}

// hashesOf returns what a post commits to.
func hashesOf(m Move) []canon.Hash {
	switch m := m.(type) {
	case *Roots:
		return m.Roots
	case *Trace:
		return m.Below
	case *Below:
		return m.Below
	case *Node:
		return m.Below
	}
	return nil
}

// withHashes returns m with other commitments.
func withHashes(m Move, hashes []canon.Hash) Move {
	switch m := m.(type) {
	case *Roots:
		return &Roots{hashes}
	case *Trace:
		return &Trace{m.Header, hashes}
	case *Below:
		return &Below{hashes}
	case *Node:
		return &Node{m.Leaf, m.Path, hashes}
	}
	return m
}

// world is something to dispute about: who computed it rightly, and some who did
// not.
type world struct {
	right Witness
	wrong []Witness
	claim func(Witness) (Claim, []canon.Hash)
}

func worlds(t *testing.T) []world {
	toy := world{right: newParty(t, honest), claim: func(w Witness) (Claim, []canon.Hash) { return w.(*party).claim() }}
	r := rand.New(rand.NewPCG(4, 4))
	truth, _ := toy.claim(toy.right)
	nodes := toy.right.(*party).p.Nodes
	for len(toy.wrong) < 40 {
		f := fault{step: r.IntN(toySteps), node: r.IntN(len(nodes))}
		if f.slot = r.IntN(6) == 0; f.slot {
			f.node, f.element = r.IntN(3), 1
		} else {
			f.element, f.block = r.IntN(nodes[f.node].Shape.Elements()), r.IntN(max(nodes[f.node].Blocks(), 1))
		}
		w := newParty(t, f)
		if c, _ := w.claim(); c.End != truth.End {
			toy.wrong = append(toy.wrong, w)
		}
	}
	merge := world{}
	claims := map[Witness]Claim{}
	for bend := -1; bend < 2; bend++ {
		c, w := newMerge(t, bend)
		claims[w] = c
		if bend < 0 {
			merge.right = w
		} else {
			merge.wrong = append(merge.wrong, w)
		}
	}
	merge.claim = func(w Witness) (Claim, []canon.Hash) { return claims[w], nil }
	return []world{toy, toy, toy, merge}
}

// games is how many random games are played; TALLY_GAMES asks for more.
func games(t *testing.T) int {
	s := os.Getenv("TALLY_GAMES")
	if s == "" {
		return 3000
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("TALLY_GAMES: %v", err)
	}
	return n
}

// Random games: openings, moves and silences of a cheat at random, against an
// honest side that only ever plays the truth.
func TestRandomCheatsLose(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all := worlds(t)
	n := games(t)
	tally := map[string]int{}
	for range n {
		x := &match{T: t, r: r, world: all[r.IntN(len(all))], cheat: Side(1 + r.IntN(2)), tally: tally}
		x.play()
	}
	t.Logf("%d games: %v", n, tally)
	for _, what := range []string{"refused", "silent", "defender", "challenger", "fold block", "slot"} {
		if tally[what] < n/200 {
			t.Errorf("hardly any game ended or went on like this: %s", what)
		}
	}
}

// match is one random game.
type match struct {
	*testing.T
	world
	r     *rand.Rand
	cheat Side
	now   int64
	tally map[string]int
}

func (x *match) liar() Witness { return x.wrong[x.r.IntN(len(x.wrong))] }

func (x *match) play() {
	g, own := x.open()
	begun := x.now
	for refused := 0; g.Stage != Over; {
		if x.r.IntN(4) == 0 {
			g = stored(x.T, g)
		}
		side := g.Stage.Turn()
		if side == x.cheat && (refused > 6 || x.r.IntN(40) == 0) {
			x.tally["silent"]++
			g = Expire(g, g.Deadline()+1)
			x.now = g.Deadline() + 1
			break
		}
		x.now += x.r.Int64N(12)
		m, err := Play(&g, x.right)
		if side == x.cheat {
			m = x.deviate(&g, own)
		} else if err != nil {
			x.Fatalf("stage %v: the honest %v has nothing to say: %v", g.Stage, side, err)
		}
		if m == nil {
			refused++
			continue
		}
		next, err := Apply(g, side, m, x.now)
		if err != nil {
			if side != x.cheat {
				x.Fatalf("stage %v: the honest %v was refused: %v", g.Stage, side, err)
			}
			mustRefuse(x.T, &g, side, m, x.now, nil)
			x.tally["refused"]++
			refused++
			continue
		}
		mustFollow(x.T, &g, &next, x.now)
		g = next
	}
	if g.Loser != x.cheat {
		x.Fatalf("the honest side lost to a cheating %v: %s", x.cheat, g.Reason)
	}
	if passed := x.now - begun; passed > 2*g.Rules.Clock+2 {
		x.Fatalf("a game took %d ms, both clocks together have %d", passed, 2*g.Rules.Clock)
	}
	x.tally[g.Loser.String()]++
	for _, word := range []string{"fold block", "slot"} {
		if bytes.HasPrefix([]byte(g.Reason), []byte(word)) {
			x.tally[word]++
		}
	}
}

// open starts a game, after some openings that must be refused. It returns the
// cheat's account: of a false claim, or against a true one.
func (x *match) open() (Game, Witness) {
	own := x.liar()
	author, challenger := x.right, own
	if x.cheat == Defender {
		author, challenger = own, x.right
	}
	rules := toyRules
	rules.Depth = 1 + x.r.IntN(3)
	c, points := x.claim(author)
	o, err := Challenge(c, points, challenger)
	if err != nil {
		x.Fatal(err)
	}
	if x.cheat == Challenger && len(points) > 0 && x.r.IntN(3) == 0 { // anywhere, without a reason
		tree := canon.NewTree(points)
		s := x.r.IntN(c.Segments())
		o = Opening{s, points[s], points[s+1], tree.Prove(s), tree.Prove(s + 1)}
	}
	for range x.r.IntN(3) {
		b := canon.Marshal(&o)
		b[x.r.IntN(len(b))] ^= 1 << x.r.IntN(8)
		var bent Opening
		if canon.Unmarshal(b, &bent) != nil {
			continue
		}
		if g, err := Open(c, rules, bent, x.now); err == nil {
			x.Fatalf("a bent opening was taken: segment %d", g.Lo)
		}
		x.tally["refused"]++
	}
	g, err := Open(c, rules, o, x.now)
	if err != nil {
		x.Fatal(err)
	}
	return g, own
}

// deviate returns a move of the cheat, or nil if it finds none.
func (x *match) deviate(g *Game, own Witness) Move {
	account := own
	switch x.r.IntN(10) {
	case 0, 1:
		account = x.right
	case 2, 3:
		account = x.liar()
	}
	m, err := Play(g, account)
	if err != nil {
		m = &Pick{Index: x.r.IntN(3)}
	}
	switch x.r.IntN(8) {
	case 0: // some other kind of move
		kinds := everyKind()
		return kinds[x.r.IntN(len(kinds))]
	case 1: // a random choice
		switch g.Stage {
		case PickElement:
			return &Element{x.r.IntN(len(g.Content) / g.Opcode.Type.Size())}
		case PickTrace:
			return &Pick{Outputs: true}
		}
		return &Pick{Index: x.r.IntN(1 + max(len(g.Posted), len(g.BlockState)))}
	case 2: // bent on its way
		b := EncodeMove(m)
		b[x.r.IntN(len(b))] ^= 1 << x.r.IntN(8)
		m, _ = DecodeMove(b)
	case 3: // another commitment
		if h := hashesOf(m); len(h) > 0 {
			h = slices.Clone(h)
			h[x.r.IntN(len(h))] = canon.Sum("noise")
			m = withHashes(m, h)
		}
	}
	return m
}
