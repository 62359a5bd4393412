package split

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/home"
)

const (
	plansDir = "splits" // in a consumer's home; in it a folder for each order that is split
	planFile = "plan.json"
	maxPlan  = 64 << 10 // bytes
)

// plan is which validators an order's parts go to. It is on disk before any part is posted. Suppose that the process ends when
// a part was posted and is in no block yet. The next process then posts the very same order, which the chain takes once.
type plan struct {
	Parts []plannedPart `json:"parts"`

	file string
	lock *home.Lock
}

// plannedPart is what is known of a part.
type plannedPart struct {
	Validator string   `json:"validator,omitempty"`
	Seen      []string `json:"seen,omitempty"` // validators under which orders for it were leased: they have its records
}

// openPlan reads the plan of an order, or begins one. Nobody else has it open until it is closed.
func openPlan(dir string, key canon.Hash, n int) (*plan, error) {
	dir = filepath.Join(dir, plansDir, key.Short())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &plan{Parts: make([]plannedPart, n), file: filepath.Join(dir, planFile)}
	var err error
	if p.lock, err = home.Acquire(dir); err != nil {
		if busy := (*home.BusyError)(nil); errors.As(err, &busy) {
			err = fmt.Errorf("process %d follows this order, which is split, already: wait for it, or end it first", busy.PID)
		}
		return nil, err
	}
	text, err := bounded.ReadFile(p.file, maxPlan)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, nil
	case err == nil:
		if err = json.Unmarshal(text, p); err == nil && len(p.Parts) != n {
			err = fmt.Errorf("it has %d parts, not %d", len(p.Parts), n)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read which validators the parts go to, %s: %w: if nothing else helps, remove it; parts that were posted are found on the chain", p.file, err), p.close())
	}
	return p, nil
}

// save keeps the plan, durably.
func (p *plan) save() error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return home.WriteFile(p.file, append(text, '\n'), 0o600)
}

func (p *plan) close() error { return p.lock.Release() }
