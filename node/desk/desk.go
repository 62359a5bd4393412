package desk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/home"
)

// Options say how the home is opened.
type Options struct {
	Dir  string                          // of the home
	Open func() (*home.Home, error)      // called whenever the home may be free; a *home.BusyError says that it is not
	Log  *slog.Logger                    // may be nil
	Tell func(format string, arg ...any) // tells people who has the home; may be nil
}

// Desk is a process's way to a home that others may have open. Safe for concurrent use.
type Desk struct {
	o    Options
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup // watch

	mu  sync.Mutex // held while another counter is looked for
	now counter
}

// counter is a desk as one process sees it: its own, or another's.
type counter interface {
	buyer(context.Context) (consume.Buyer, error)
	keep(ctx context.Context, o *job.Order, body io.Reader) error
	post(ctx context.Context, o *job.Order, body io.Reader) error // what keep does, and more
	deliver(context.Context, DeliveryRequest) (Delivery, error)
	gone() <-chan struct{} // closed once it answers no more
	close() error
}

// DeliveryRequest asks for what a settled order gave, to be written into a directory.
type DeliveryRequest struct {
	Order  canon.Hash `json:"order"`
	Dir    string     `json:"dir"`    // absolute
	Format string     `json:"format"` // of a batch's results
}

// Delivery is what was written: of training, or of a batch.
type Delivery struct {
	Model   *consume.Delivery `json:"model,omitempty"`
	Results *consume.Results  `json:"results,omitempty"`
}

// errGone says that a counter answers no more, so that another may be asked.
var errGone = errors.New("who had the home open has ended")

// patience is how long a home may be taken by somebody who keeps no desk. One who has just opened
// it needs a moment.
const patience = 10 * time.Second

// pause is between two looks for who has the home.
const pause = 50 * time.Millisecond

// Open finds the desk of a home, or opens the home and keeps one. The caller closes it.
func Open(ctx context.Context, o Options) (*Desk, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Tell == nil {
		o.Tell = func(string, ...any) {}
	}
	d := &Desk{o: o}
	d.ctx, d.stop = context.WithCancel(ctx)
	var err error
	if d.now, err = d.find(); err != nil {
		d.stop()
		return nil, err
	}
	if r, ok := d.now.(*remote); ok {
		o.Tell("process %d has %s open; it posts and fetches for this one, too", r.pid, o.Dir)
	}
	d.work.Go(d.watch)
	return d, nil
}

// Own reports whether this process has the home open.
func (d *Desk) Own() bool {
	_, own := d.counter().(*local)
	return own
}

// Close ends this process's part. If it has the home open, another goes on.
func (d *Desk) Close() error {
	d.stop()
	d.work.Wait()
	return d.now.close()
}

// Buyer returns who posts, and the peer that hands over files.
func (d *Desk) Buyer(ctx context.Context) (b consume.Buyer, err error) {
	err = d.ask(ctx, func(c counter) (err error) {
		b, err = c.buyer(ctx)
		return err
	})
	return b, err
}

// Post keeps the files of an order, which body reads one after the other, and posts it. It may be
// read more than once.
func (d *Desk) Post(ctx context.Context, o *job.Order, body func() io.Reader) error {
	return d.ask(ctx, func(c counter) error { return c.post(ctx, o, body()) })
}

// Keep keeps the files of an order that was posted before.
func (d *Desk) Keep(ctx context.Context, o *job.Order, body func() io.Reader) error {
	return d.ask(ctx, func(c counter) error { return c.keep(ctx, o, body()) })
}

// Deliver fetches what a settled order gave.
func (d *Desk) Deliver(ctx context.Context, r DeliveryRequest) (out Delivery, err error) {
	err = d.ask(ctx, func(c counter) (err error) {
		out, err = c.deliver(ctx, r)
		return err
	})
	return out, err
}

// maxAsks bounds how many desks are asked for the same before the last one's trouble is told.
const maxAsks = 64

// ask has a counter do what may be done again, by the next one if it is gone meanwhile.
func (d *Desk) ask(ctx context.Context, do func(counter) error) error {
	for asks := 1; ; asks++ {
		c := d.counter()
		err := do(c)
		if !errors.Is(err, errGone) || ctx.Err() != nil || asks == maxAsks {
			return err
		}
		if err := d.replace(c); err != nil {
			return err
		}
	}
}

func (d *Desk) counter() counter {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// watch looks for another desk as soon as one is gone, for somebody must hand over the files.
func (d *Desk) watch() {
	for d.ctx.Err() == nil {
		c := d.counter()
		select {
		case <-d.ctx.Done():
		case <-c.gone():
			if err := d.replace(c); err != nil && d.ctx.Err() == nil {
				d.o.Log.Warn("nobody has the home open; will be tried again", "error", err)
				select {
				case <-d.ctx.Done():
				case <-time.After(patience):
				}
			}
		}
	}
}

// replace finds another counter, unless somebody else has.
func (d *Desk) replace(old counter) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now != old {
		return nil
	}
	if err := old.close(); err != nil {
		d.o.Log.Warn("close what was left of a desk", "error", err)
	}
	c, err := d.find()
	if err != nil {
		return err
	}
	d.now = c
	if _, own := c.(*local); own {
		d.o.Tell("who had %s open has ended; this process goes on in its place", d.o.Dir)
	}
	return nil
}

// find returns the desk of whoever has the home open: another process, or now this one.
func (d *Desk) find() (counter, error) {
	for until := time.Now().Add(patience); ; {
		h, err := d.o.Open()
		if err == nil {
			l, err := d.serve(h)
			if err != nil {
				return nil, errors.Join(err, h.Close())
			}
			return l, nil
		}
		var busy *home.BusyError
		if !errors.As(err, &busy) {
			return nil, err
		}
		r, failed := dial(d.ctx, d.o.Dir)
		if failed == nil {
			return r, nil
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("%w, which does nothing for others (%v)", err, failed)
		}
		select {
		case <-d.ctx.Done():
			return nil, d.ctx.Err()
		case <-time.After(pause):
		}
	}
}
