package split

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/consume/parts"
)

// Options are what a consumer wants of a run.
type Options struct {
	Home   string                          // directory in which plans are kept
	Wait   bool                            // until all parts are settled, and their results are fetched
	Again  bool                            // post parts that were posted before once more, unless their results are fetched already
	Out    string                          // directory of the results; "": called after the order
	Format string                          // of the results: one of outputs.Formats
	Force  bool                            // overwrite what is there
	Tell   func(format string, arg ...any) // called by one part at a time
}

// run is one call of Run.
type run struct {
	Options
	net   Network
	batch *Batch
	plan  *plan
	parts []*part
	stage string // directory in which results are gathered; beside Out

	mu        sync.Mutex // of viewers, viewsTold, and how far parts have come
	viewers   *parts.Viewers
	viewsTold bool // who sees what was told
}

// part is how far one part has come.
type part struct {
	at        int
	validator string
	id        canon.Hash
	last      consume.Progress
	handed    bool
	err       error // why it has no results
	ended     bool  // without them: the same command posts it anew
}

func (r *run) name(p *part) string { return fmt.Sprintf("part %d of %d", p.at+1, len(r.batch.Drafts)) }

// Run posts the parts of an order that were not posted before, follows all of them, and joins what they gave. Once all parts
// have orders, it returns a report, with an error as well if a part has failed or ctx is done.
func Run(ctx context.Context, net Network, b *Batch, o Options) (*Report, error) {
	key, err := b.key(net.Buyer())
	if err != nil {
		return nil, err
	}
	if o.Out == "" {
		o.Out = "split-" + key.Short()
	}
	if o.Out, err = filepath.Abs(o.Out); err != nil {
		return nil, err
	}
	o.Tell = oneByOne(o.Tell)
	r := &run{Options: o, net: net, batch: b, stage: o.Out + ".partial-" + key.Short(), viewers: parts.NewViewers()}
	if o.Wait { // before anything is paid for it
		if err := consume.CanDeliverResults(o.Out, o.Force); err != nil {
			return nil, err
		}
	}
	if r.plan, err = openPlan(o.Home, key, len(b.Drafts)); err != nil {
		return nil, err
	}
	report, err := r.run(ctx)
	return report, errors.Join(err, r.plan.close())
}

// oneByOne makes parts that are followed side by side wait for each other's words.
func oneByOne(tell func(format string, arg ...any)) func(format string, arg ...any) {
	var mu sync.Mutex
	return func(format string, arg ...any) {
		mu.Lock()
		defer mu.Unlock()
		tell(format, arg...)
	}
}

func (r *run) run(ctx context.Context) (*Report, error) {
	if err := r.place(ctx); err != nil {
		return nil, err
	}
	r.follow(ctx)
	report, err := r.report(ctx)
	if err != nil || !r.Wait {
		return report, err
	}
	return report, r.gather(report)
}

// place finds the orders of parts, and posts those that have none.
func (r *run) place(ctx context.Context) error {
	owners, err := r.net.Owners(ctx)
	if err != nil {
		return err
	}
	var open []wanted
	for i := range r.batch.Drafts {
		p := &part{at: i}
		r.parts = append(r.parts, p)
		w, err := r.find(ctx, p)
		if err != nil {
			return err
		}
		if w.order != nil {
			open = append(open, w)
		}
	}
	if err := r.assign(ctx, owners, open); err != nil {
		return err
	}
	if err := r.afford(ctx, open); err != nil {
		return err
	}
	for _, w := range open {
		p, d := r.parts[w.part], *r.batch.Drafts[w.part]
		d.Terms.Validator = p.validator
		r.Tell("%s, records %v, goes to validator %s", r.name(p), r.batch.Ranges[w.part], p.validator)
		if p.id, err = r.net.Post(ctx, &d, r.again(p)); err != nil {
			return fmt.Errorf("%s: %w", r.name(p), err)
		}
	}
	return nil
}

// find looks for an order of a part that has its result, or still can. It returns what is wanted if there is none.
func (r *run) find(ctx context.Context, p *part) (w wanted, err error) {
	o, err := r.batch.order(p.at, r.net.Buyer())
	if err != nil {
		return w, err
	}
	w = wanted{part: p.at, failed: map[string]bool{}}
	if r.batch.Wish.Validators != nil {
		w.only = r.batch.Wish.Validators[p.at]
	}
	planned := &r.plan.Parts[p.at]
	earlier, err := r.net.Similar(ctx, &o)
	if err != nil {
		return w, err
	}
	for _, e := range earlier {
		v := e.Order.Conditions.Validator
		if v == "" {
			continue
		}
		if e.Progress.Lease != nil && !slices.Contains(planned.Seen, v) {
			planned.Seen = append(planned.Seen, v)
		}
		if w.only != "" && v != w.only {
			continue
		}
		if e.Resumable && !r.again(p) {
			return w, r.resume(ctx, p, e)
		}
		w.failed[v] = w.failed[v] || !e.Resumable
	}
	w.order = &o
	switch {
	case w.only != "" && planned.Validator != w.only: // whether it takes the part is looked at first
	case !w.failed[planned.Validator] && !r.again(p):
		p.validator = planned.Validator // it may be posted, and in no block yet
	}
	return w, nil
}

// again reports whether a part is posted anew in any case. One whose results were fetched is paid for, and done.
func (r *run) again(p *part) bool {
	_, err := os.Lstat(folder(r.stage, p))
	return r.Again && err != nil
}

// resume takes up an order of a part.
func (r *run) resume(ctx context.Context, p *part, e *consume.EarlierOrder) error {
	id := e.Order.ID()
	if !e.OwnPeer {
		return fmt.Errorf("order %s is %s, and was posted from another home, which alone can hand over its files: go on there, or post all parts anew with --again", id, r.name(p))
	}
	r.Tell("order %s is %s, under validator %s: taking it up", id, r.name(p), e.Order.Conditions.Validator)
	p.validator, p.id = e.Order.Conditions.Validator, id
	if was, is := e.Order.Conditions.MaxPrice, r.batch.Drafts[p.at].Terms.MaxPrice; e.Progress.Lease == nil && was != is {
		r.Tell("It waits for an offer of at most %v, and would now be posted at %v. To have that, take it back, and give the same command again:\n  tally tx market cancel-order %s --home %s -y", consume.Amount(was), consume.Amount(is), id, r.Home)
	}
	return r.net.Keep(ctx, &e.Order, r.batch.Drafts[p.at].Body)
}

// assign gives each open part a validator, and keeps which.
func (r *run) assign(ctx context.Context, owners map[string]string, open []wanted) error {
	owner := func(v string) string { return cmp.Or(owners[v], v) }
	var without []wanted
	for _, w := range open {
		if r.parts[w.part].validator != "" {
			continue
		}
		w.closed = map[string]bool{}
		for i, other := range r.parts {
			if i == w.part {
				continue
			}
			if other.validator != "" {
				w.closed[owner(other.validator)] = true
			}
			for _, v := range r.plan.Parts[i].Seen {
				w.closed[owner(v)] = true
			}
		}
		without = append(without, w)
	}
	if len(without) > 0 {
		chosen, err := choose(ctx, r.net, owners, without, len(r.parts))
		if err != nil {
			return err
		}
		for i, w := range without {
			r.parts[w.part].validator = chosen[i].Validator
		}
	}
	for i, p := range r.parts {
		for j, other := range r.parts[:i] {
			if r.batch.Wish.Validators != nil && owner(other.validator) == owner(p.validator) {
				return fmt.Errorf("conditions.split: %s and %s belong to one owner, who would see parts %d and %d: name a validator of another", other.validator, p.validator, j+1, i+1)
			}
		}
		for j, other := range r.plan.Parts {
			if j != i && slices.ContainsFunc(other.Seen, func(v string) bool { return owner(v) == owner(p.validator) }) {
				r.Tell("WARNING: %s, to whom part %d goes, has had the records of part %d in an earlier order", p.validator, i+1, j+1)
			}
		}
		r.plan.Parts[i].Validator = p.validator
	}
	return r.plan.save()
}

// afford returns an error unless the account can lock the prices of all parts that are to be posted.
func (r *run) afford(ctx context.Context, open []wanted) error {
	if len(open) == 0 {
		return nil
	}
	all := job.Order{Consumer: open[0].order.Consumer}
	for _, w := range open {
		all.Conditions.MaxPrice += w.order.Conditions.MaxPrice
	}
	return r.net.Afford(ctx, &all)
}
