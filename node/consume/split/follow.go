package split

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/desk"
)

// follow looks after all parts side by side, until each has ended, or has handed over its files if nobody waits for more. The
// results of a part are fetched once it is settled: custodians let them go while others go on.
func (r *run) follow(ctx context.Context) {
	var all sync.WaitGroup
	for _, p := range r.parts {
		all.Go(func() { r.followPart(ctx, p) })
	}
	all.Wait()
	if ctx.Err() != nil {
		r.interrupted()
	}
}

func (r *run) followPart(ctx context.Context, p *part) {
	told := ""
	last, err := r.net.Follow(ctx, p.id, func(now consume.Progress) bool {
		if text := now.String(); text != told {
			told = text
			if left := now.Left(r.net.Now(), 0); left != "" {
				text += "; " + left
			}
			r.Tell("%s: %s", r.name(p), text)
		}
		r.see(p, now)
		return !r.Wait && now.HandedOver
	})
	if last.Ended() || err == nil {
		r.see(p, last)
	}
	switch {
	case ctx.Err() != nil:
		p.err = ctx.Err()
	case errors.Is(err, consume.ErrUnmet):
		p.err, p.ended = err, true
	case err != nil:
		p.err = err
	case last.Ended() && last.Lease.Round == 0:
		p.err, p.ended = fmt.Errorf("it ended before all its records had results: %s", last.Lease.Reason), true
	case r.Wait:
		p.err = r.fetch(ctx, p)
	}
	if p.err != nil && ctx.Err() == nil {
		r.Tell("%s has no results: %v%s", r.name(p), p.err, next(p))
	}
}

// next says what to do about a part that has failed.
func next(p *part) string {
	if !p.ended {
		return ". The same command takes it up again"
	}
	return ". The same command posts this part alone anew, perhaps under another validator; the others are not paid twice"
}

// see enters how far a part has come. Once all are in the network's hands, it says who sees what.
func (r *run) see(p *part, now consume.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.last, p.handed = now, p.handed || now.HandedOver
	if now.Lease == nil {
		return
	}
	r.viewers.Add(p.at, now.Lease)
	for _, other := range r.parts {
		if !other.handed {
			return
		}
	}
	if !r.viewsTold {
		r.viewsTold = true
		r.Tell("The network has the files of all parts. So far:\n%s", strings.TrimSuffix(r.viewers.Views().String(), "\n"))
	}
}

// interrupted says how the parts stand, and how to go on.
func (r *run) interrupted() {
	var without []string
	for _, p := range r.parts {
		if !p.handed && p.err != nil && !p.ended {
			without = append(without, fmt.Sprint(p.at+1))
		}
	}
	if len(without) > 0 {
		r.Tell("The network does NOT have the files of these parts, or nobody could tell: %s. What is matched while you are away ends without a result, and its deposit is lost.", strings.Join(without, ", "))
	}
	for _, p := range r.parts {
		if p.last.Lease == nil && !p.ended {
			r.Tell("%s waits for an offer. To take it back while it does:\n  tally tx market cancel-order %s --home %s -y", r.name(p), p.id, r.Home)
		}
	}
	r.Tell("Parts that have handed over their files go on without you. The same command takes all of them up where they stand.")
}

const (
	fetched = "results.safetensors" // of a part
	proof   = consume.BundleName
)

// folder is where a part's proof lies, in the directory of the results.
func folder(dir string, p *part) string { return filepath.Join(dir, fmt.Sprintf("part-%d", p.at+1)) }

// fetch has the results of a part, and their proof, in its folder. They are there whole or not at all.
func (r *run) fetch(ctx context.Context, p *part) error {
	to := folder(r.stage, p)
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	if err := os.MkdirAll(r.stage, 0o755); err != nil {
		return err
	}
	r.Tell("%s: fetching its results and their proof", r.name(p))
	partial := to + ".tmp"
	_, err := r.net.Deliver(ctx, desk.DeliveryRequest{Order: p.id, Dir: partial, Format: "safetensors"})
	if err == nil {
		err = os.Rename(partial, to)
	}
	return err
}
