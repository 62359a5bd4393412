package devnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/tally-network/tally/node/consensus"
	"github.com/tally-network/tally/node/home"
)

// Enter lets one more home of the network's directory take part, made if it is new. It is no validator. It sees the
// chain through one of the network's nodes. ctx bounds the start alone: it works until it leaves, or the network stops.
func (n *Network) Enter(ctx context.Context, s home.Settings) (m *Member, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("enter %s: %w", s.Name, err)
		}
	}()
	if s.Role == home.Validator {
		return nil, errors.New("the validators of a network are fixed when it is made")
	}
	n.mu.Lock()
	s.Chain, s.Threads, s.Node = n.config.Chain, n.config.Threads, n.node(n.entered)
	n.entered++
	n.mu.Unlock()
	dir := filepath.Join(n.config.Dir, s.Name)
	if _, err := home.Create(dir, s); err != nil {
		return nil, err
	}
	h, err := home.Open(dir)
	if err != nil {
		return nil, err
	}
	m = &Member{Home: h, done: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	h.Settings.Node = s.Node
	var ports consensus.Ports
	if err := errors.Join(listen(&ports, h), ports.Close()); err != nil {
		return nil, err
	}
	within, cancel := context.WithCancel(n.ctx)
	m.cancel = cancel
	if m.Env, err = h.Env(ctx, home.Options{Log: n.config.Log, Observe: n.config.Observe}); err != nil {
		cancel()
		return nil, err
	}
	n.duties.Go(func() {
		defer close(m.done)
		if err := n.config.Run(within, h, m.Env); err != nil && within.Err() == nil {
			n.fail(fmt.Errorf("%s: %w", m.Env.Name, err))
		}
	})
	return m, nil
}

// farewell is how long a member that has entered may take to notice that it leaves, on a machine with much to do.
const farewell = time.Minute

// Leave stops a member that has entered, at whatever it is, and closes its home. What it promised stays undone. Nobody else
// has the home until the member does nothing more.
func (m *Member) Leave() error {
	m.cancel()
	select {
	case <-m.done:
		return m.Home.Close()
	case <-time.After(farewell):
		return errors.Join(fmt.Errorf("%s does not stop with its context", m.Home.Dir), m.Home.Close())
	}
}

// listen gives a home ports that are free now. They stay the same unless another program has taken one.
func listen(ports *consensus.Ports, h *home.Home) error {
	for i, a := range h.Settings.Listen {
		port, ok := strings.CutPrefix(a, "/ip4/127.0.0.1/tcp/")
		if !ok {
			continue
		}
		addr, err := ports.Take(net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			return err
		}
		_, port, _ = net.SplitHostPort(addr)
		h.Settings.Listen[i] = "/ip4/127.0.0.1/tcp/" + port
	}
	return h.Settings.Save(h.Dir)
}
