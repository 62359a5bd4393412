package local

import (
	"fmt"
	"slices"
	"sync"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/replies"
)

// Drafts refuses a model that cannot draft for another one: it has other tokens.
func Drafts(draft, of *files.Files) error {
	if err := (replies.Speculation{Model: draft.Weights}).Check(of.Weights); err != nil {
		return err
	}
	a, b := draft.Tokenizer, of.Tokenizer
	if a.Size() != b.Size() {
		return fmt.Errorf("the tokenizer of the draft model has %d tokens, that of the model %d: take a draft model of the same family", a.Size(), b.Size())
	}
	for id := range int32(a.Size()) {
		x, _ := a.Token(id)
		if y, _ := b.Token(id); x != y {
			return fmt.Errorf("token %d of the draft model is %.40q, of the model %.40q: take a draft model of the same family", id, x, y)
		}
	}
	return nil
}

// opensDraft opens the draft model at a path, when it is needed first.
func opensDraft(path string) func() (*files.Files, error) {
	return sync.OnceValues(func() (*files.Files, error) {
		f, err := safely(func() (*files.Files, error) { return files.Open(path) })
		if err != nil {
			err = fmt.Errorf("draft model: %w", err)
		}
		return f, err
	})
}

// repliesOf returns how a model is served. One that was named by its path must be fit for the draft model; another goes without.
func (m *Models) repliesOf(x *opened, f *Files) (replies.Options, error) {
	o := m.options.Replies
	if m.options.Draft == "" || f.Language == nil || x.at.adapter != nil || x.at.path == m.options.Draft {
		return o, nil
	}
	d, err := m.draft()
	if err != nil {
		return o, err
	}
	if err := Drafts(d, f.Language); err == nil {
		o.Speculative.Model = d.Weights
	} else if slices.ContainsFunc(m.files, func(f file) bool { return f.path == x.at.path }) {
		return o, api.Invalid("model", "%v", err)
	}
	return o, nil
}

// tally adds up what servers that are closed have drafted.
type tally struct{ drafted, accepted int64 }

func (t *tally) add(s replies.Stats) {
	t.drafted += s.Drafted
	t.accepted += s.Accepted
}

// Drafts implements reply.Drafts.
func (m *Models) Drafts() (drafted, accepted int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.closedDrafts
	for _, x := range m.open { // a sum
		if x.server != nil && x.base == nil {
			all.add(x.server.Stats())
		}
	}
	return all.drafted, all.accepted
}
