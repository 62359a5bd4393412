package adversary

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/cosmos/gogoproto/proto"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/event"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// play is a history under way.
type play struct {
	*World
	script *Script
	ctx    sdk.Context // the branch
	block  sdk.Context // of the block under way
	height int64
	now    time.Time
	hash   [32]byte

	orders []*order
	views  map[int]*job.Lease // by order
	games  map[uint64]*game   // open ones
	dirty  bool               // something has happened since these were read

	had      map[string]uint64 // what everybody owned when the history began
	sent     []sentMsg         // by hostile people, and taken
	sentNow  int               // messages that were taken in the block under way
	txs      int               // messages that were sent
	unjudged bool              // an honest account may lose: not all of what it does is played here
	alone    bool              // honest people go on alone: hostile ones do nothing any more
	jumped   bool              // time has jumped further than honest people could follow
	found    *Finding
}

type sentMsg struct {
	by  string
	msg sdk.Msg
}

// Finding is what must never be.
type Finding struct {
	Kind   string // stuck, unreadable, …
	Detail string
	Script Script
	Txs    int // of the history, until it was found
}

// String describes the finding in a line.
func (f *Finding) String() string { return f.Kind + ": " + f.Detail }

// fail records the first finding of a history.
func (p *play) fail(kind, format string, args ...any) {
	if p.found == nil {
		p.found = &Finding{Kind: kind, Detail: fmt.Sprintf(format, args...)}
	}
}

// Play plays a script to its end, and returns what it shows, nil if all is well, and
// how many messages were sent.
func (w *World) Play(s Script) (*Finding, int) {
	p := w.branch(&s)
	p.begin()
	for _, b := range s.Blocks {
		for range max(b.Times, 1) {
			p.step(b)
			if p.found != nil {
				break
			}
		}
	}
	p.end()
	if p.found != nil {
		p.found.Script, p.found.Txs = s, p.txs
	}
	return p.found, p.txs
}

// begin posts the orders of honest people.
func (p *play) begin() {
	p.next(1000)
	for i, by := range p.script.Orders {
		p.do(Op{By: by, Msg: "market.MsgPostOrder", Order: i, Pick: p.script.Pick})
	}
	p.endBlock()
}

// follows is the time between blocks, in ms, in which honest people do what is due.
const follows = 10_000

// step makes a block: duties first, then what hostile people send besides.
func (p *play) step(b Block) {
	if p.found != nil {
		return
	}
	due := p.due()
	p.next(b.Wait)
	if b.Wait > follows {
		p.jumped = true
	}
	for _, o := range due {
		p.do(o)
	}
	for _, o := range b.Ops {
		for range o.times() {
			p.do(o)
		}
	}
	p.endBlock()
}

// do composes the message of an op and sends it.
func (p *play) do(op Op) {
	if p.found != nil {
		return
	}
	if op.Msg == "again" {
		if n := len(p.sent); n > 0 {
			p.deliver(p.sent[op.Pick%n].by, p.sent[op.Pick%n].msg, op)
		}
		return
	}
	c := p.composer(op)
	m, _, err := c.message()
	if err != nil {
		if p.Trace != nil {
			p.Trace("%v cannot be composed: %v", op, err)
		}
		return
	}
	p.deliver(op.By, m, op)
}

// deliver lets a message happen, as in a transaction.
func (p *play) deliver(by string, m sdk.Msg, op Op) {
	p.txs++
	ctx, write := p.block.CacheContext()
	meter := storetypes.NewGasMeter(app.MaxGas)
	ctx = ctx.WithGasMeter(meter)
	begun, at := p.costs.allocated(), time.Now()
	err := p.handle(ctx, m)
	took, bytes := time.Since(at), p.costs.allocated()-begun
	if s := p.spender; s != nil {
		s.spend(proto.MessageName(m), meter.GasConsumed(), took, func() time.Duration { return p.time(m) })
	}
	if p.Trace != nil {
		p.Trace("%d %v: %v", p.now.UnixMilli()%10_000_000, op, err)
	}
	p.measure(op, m, meter.GasConsumed(), bytes, took)
	if err != nil {
		return
	}
	write()
	p.dirty = true
	p.sentNow++
	p.reached.sent(m)
	if _, hostile := p.script.Hostile[by]; hostile {
		p.sent = append(p.sent, sentMsg{by, m})
	}
	if o, ok := m.(*marketv1.MsgPostOrder); ok {
		p.posted(by, o, op.Pick)
		p.burden()
	}
}

// handle gives a message to its module; a panic is a finding.
func (p *play) handle(ctx sdk.Context, m sdk.Msg) (err error) {
	defer func() {
		r := recover()
		if _, spent := r.(storetypes.ErrorOutOfGas); spent {
			err = errors.New("out of gas")
		} else if r != nil {
			err = fmt.Errorf("%v", r)
			if at := where(); at != "" {
				p.fail("panic", "%s: %v at %s", proto.MessageName(m), r, at)
			}
		}
	}()
	h := p.MsgServiceRouter().Handler(m)
	if h == nil {
		return errors.New("no module takes the message")
	}
	if v, ok := m.(sdk.HasValidateBasic); ok {
		if err := v.ValidateBasic(); err != nil {
			return err
		}
	}
	_, err = h(ctx, m)
	return err
}

// time returns how long a message takes. Its effects are dropped.
func (p *play) time(m sdk.Msg) time.Duration {
	ctx, _ := p.block.CacheContext()
	begun := time.Now()
	_ = p.handle(ctx.WithGasMeter(storetypes.NewGasMeter(app.MaxGas)), m)
	return time.Since(begun)
}

// where returns the innermost function on the stack that is ours, "" if none is: the
// SDK's own handlers panic on some messages, which an application takes as an error.
func where() string {
	for _, line := range strings.Split(string(debug.Stack()), "\n") {
		if strings.HasPrefix(line, ours+"core/") || strings.HasPrefix(line, ours+"chain/") {
			return strings.TrimPrefix(line, ours)
		}
	}
	return ""
}

const ours = "github.com/tally-network/tally/"

// ticked reports whether time has passed for a lease, which need not leave an event: a
// question is drawn without one.
func (p *play) ticked() bool {
	for i := range p.orders {
		if l := p.live(i); l != nil && l.Wake() <= p.clock() {
			return true
		}
	}
	return false
}

// endBlock ends a block, and looks for what must never be.
func (p *play) endBlock() {
	if p.found != nil {
		return
	}
	ctx := p.block.WithTxCount(p.sentNow)
	at := time.Now()
	branch, write := ctx.CacheContext()
	end, err := p.ModuleManager.EndBlock(branch)
	if err != nil {
		p.fail("halt", "the end of a block: %v", err)
		return
	}
	p.measureEnd(time.Since(at), ctx)
	write()
	if len(end.Events) > 0 || p.ticked() {
		p.dirty = true
	}
	stuck, err := event.Of[*workv1.EventStuck](end.Events)
	if err == nil && len(stuck) > 0 {
		p.fail("stuck", "a lease: %s", stuck[0].Reason)
	}
	fast, err := event.Of[*disputev1.EventStuck](end.Events)
	if err == nil && len(fast) > 0 {
		p.fail("stuck", "a dispute: %s", fast[0].Reason)
	}
	obstacles, err := event.Of[*marketv1.EventObstacle](end.Events)
	if err == nil && len(obstacles) > 0 && obstacles[0].Validator == "" {
		p.fail("stuck", "an order: %s", obstacles[0].Reason)
	}
	if !p.dirty {
		return
	}
	if err := p.CheckInvariants(ctx); err != nil {
		p.fail(kindOf(err), "%v", err)
		return
	}
	p.refresh()
	p.bounds()
}

// kindOf tells what cannot be read from what does not add up.
func kindOf(err error) string {
	if strings.Contains(err.Error(), "not a canonical encoding") {
		return "unreadable"
	}
	return "invariant"
}
