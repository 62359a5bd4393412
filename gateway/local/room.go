package local

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tally-network/tally/gateway/api"
)

// makeRoom closes the model that nobody has used for the longest time, if as many are open as may be. Adapted models make room for each other, and leave their
// base when another wants its room.
func (m *Models) makeRoom(adapted bool) error {
	most := m.options.MaxOpen
	if adapted {
		most = m.options.MaxAdapters
	}
	open, idle := m.idle(adapted)
	if open >= most && idle == nil && !adapted {
		for _, x := range m.open { // each alone
			if x.at.adapter != nil && x.users == 0 {
				m.drop(x)
			}
		}
		open, idle = m.idle(adapted)
	}
	switch {
	case open < most:
		return nil
	case idle == nil:
		return &api.Fault{Status: http.StatusServiceUnavailable, Code: "overloaded", Retry: 10 * time.Second, Message: fmt.Sprintf("%d models are in use, as many as may be open at once: try again later", open)}
	}
	m.drop(idle)
	return nil
}

// idle counts the models that are open, adapted ones or others, and returns that which nobody has used for the longest time; nil: all are used.
func (m *Models) idle(adapted bool) (open int, idle *opened) {
	for _, x := range m.open { // the least by time
		if (x.at.adapter != nil) != adapted {
			continue
		}
		if open++; x.users == 0 && (idle == nil || x.until.Before(idle.until)) {
			idle = x
		}
	}
	return open, idle
}

// drop closes a model, and those that are adapted from it.
func (m *Models) drop(x *opened) {
	delete(m.open, x.at)
	if x.timer != nil {
		x.timer.Stop()
	}
	switch {
	case x.base != nil:
		m.left(x.base)
	case x.server != nil:
		for _, y := range m.open { // each alone
			if y.base == x {
				m.drop(y)
			}
		}
		m.closedDrafts.add(x.server.Stats())
		go x.server.Close()
	}
}

// discard closes a model that has failed, so that the next who asks opens it again. What it is adapted from has failed with it.
func (m *Models) discard(x *opened) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x.base != nil {
		x = x.base
	}
	if m.open[x.at] == x {
		m.drop(x)
	}
}
