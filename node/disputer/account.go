package disputer

import (
	"slices"
	"sync"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
)

// key names what an account is of: a segment of a claim. A receipt and the
// verdicts about it claim the same.
type key struct {
	order   canon.Hash
	target  job.Target
	attempt int
	segment int
}

func keyOf(order canon.Hash, t job.Target, attempt, segment int) key {
	if t.Kind() == job.AboutVerdict {
		t = job.UnitTarget(t.Index())
	}
	return key{order, t, attempt, segment}
}

// account is what this role computes of a segment. The games about it take turns:
// what one has computed the others find.
type account struct {
	mu      sync.Mutex
	witness dispute.Witness
	large   bool // takes more than its share of maxBytes
}

func (a *account) play(g *dispute.Game) (dispute.Move, error) {
	defer a.use()()
	return dispute.Play(g, a.witness)
}

func (a *account) right(g *dispute.Game) (dispute.Side, error) {
	defer a.use()()
	return dispute.Right(g, a.witness)
}

// forgetful is a witness that lets go of the values of a step, most of what it takes. It
// computes them again when it is asked for them.
type forgetful interface{ Forget() }

// use locks the account, until what it returns is called.
func (a *account) use() (done func()) {
	a.mu.Lock()
	return func() {
		if w, ok := a.witness.(forgetful); ok && a.large {
			w.Forget()
		}
		a.mu.Unlock()
	}
}

// Bounds on the accounts that a player holds.
const (
	maxBytes = 1 << 30 // together
	always   = 4       // however large they are: as many games of a defender are played at once
)

// accounts holds the accounts that were used last. The zero value is empty.
type accounts struct {
	mu   sync.Mutex
	held []*entry // the last used is the last
}

type entry struct {
	key
	account
	bytes uint64
}

// get returns the account of k, which make begins unless it is held. Who asks for
// the same while it is begun waits for it.
func (c *accounts) get(k key, bytes uint64, make func() (dispute.Witness, error)) (*account, error) {
	e := c.use(k, bytes)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.witness != nil {
		return &e.account, nil
	}
	var err error
	e.witness, err = make()
	return &e.account, err
}

// put holds an account that was begun elsewhere, unless there is one.
func (c *accounts) put(k key, bytes uint64, w dispute.Witness) {
	_, _ = c.get(k, bytes, func() (dispute.Witness, error) { return w, nil })
}

// use returns the entry of k, as the last used, and lets go of those that were not
// used for longest while all take too much memory.
func (c *accounts) use(k key, bytes uint64) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &entry{key: k, bytes: bytes}
	e.large = bytes > maxBytes/always
	if i := slices.IndexFunc(c.held, func(e *entry) bool { return e.key == k }); i >= 0 {
		e = c.held[i]
		c.held = slices.Delete(c.held, i, i+1)
	}
	c.held = append(c.held, e)
	var total uint64
	for i, e := range slices.Backward(c.held) {
		if total += min(e.bytes, maxBytes); total > maxBytes && len(c.held)-i > always {
			c.held = slices.Delete(c.held, 0, i+1)
			break
		}
	}
	return e
}
