package provide

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/node/replay"
)

type state = graph.State

func lossOf(s *state) float32 { return replay.LossOf(s) }

// checkpoint is a state that this provider has reached and stored.
type checkpoint struct {
	Root  canon.Hash
	Inner canon.Hash // of the state within its segment that a replica commits to; else zero
	File  job.File
}

// notes remember how far a unit has come, so that a restart goes on from its
// last checkpoint.
type notes struct{ file string }

// list is the contents of notes.
type list struct{ done []checkpoint }

func (l *list) Code(w *canon.Codec) {
	canon.Seq(w, &l.done, job.MaxSegments, 67, func(w *canon.Codec, c *checkpoint) {
		w.Hash(&c.Root)
		w.Hash(&c.Inner)
		c.File.Code(w)
	})
}

func (p *provider) notes(order canon.Hash, unit, attempt int) notes {
	return notes{filepath.Join(p.env.Notes.Of(order, "units"), fmt.Sprintf("%d-%d", unit, attempt))}
}

// maxNotes bounds a file of notes in bytes.
const maxNotes = 1 << 20

func (n notes) load() ([]checkpoint, error) {
	b, err := bounded.ReadFile(n.file, maxNotes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var l list
	if err := canon.Unmarshal(b, &l); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", n.file, err)
	}
	return l.done, nil
}

func (n notes) save(done []checkpoint) error {
	if err := os.MkdirAll(filepath.Dir(n.file), 0o700); err != nil {
		return err
	}
	return replace.File(n.file, canon.Marshal(&list{done}))
}

func (n notes) remove() error { return os.Remove(n.file) }
