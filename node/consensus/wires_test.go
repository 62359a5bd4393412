package consensus_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// wires are what connects the nodes of a network: between each two, what can be cut.
type wires map[[2]int]*wire

// wire carries connections from one node to another.
type wire struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	free  *sync.Cond
	state wireState
	conns map[net.Conn]bool
}

type wireState int

const (
	whole  wireState = iota
	silent           // what is sent waits, as while packets are lost
	cut              // connections end, and none begins
)

// lay puts wires between the nodes of a network that is about to start.
func (n *network) lay(t *testing.T) wires {
	t.Helper()
	all, at := wires{}, map[string]int{}
	for i, c := range n.configs {
		at[c.Listen.P2P] = i
	}
	for i := range n.configs {
		for p, peer := range n.configs[i].Peers {
			id, addr, dials := strings.Cut(peer, "@")
			if !dials {
				continue
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			w := &wire{listener: l, to: addr, conns: map[net.Conn]bool{}}
			w.free = sync.NewCond(&w.mu)
			t.Cleanup(func() { _ = l.Close(); w.set(cut) })
			go w.serve()
			all[[2]int{i, at[addr]}] = w
			n.configs[i].Peers[p] = id + "@" + l.Addr().String()
		}
	}
	return all
}

// split puts all wires between one part of the nodes and the rest into a state.
func (all wires) split(s wireState, part ...int) {
	in := map[int]bool{}
	for _, i := range part {
		in[i] = true
	}
	for ends, w := range all {
		if in[ends[0]] != in[ends[1]] {
			w.set(s)
		}
	}
}

// mend makes all wires whole.
func (all wires) mend() {
	for _, w := range all {
		w.set(whole)
	}
}

func (w *wire) set(s wireState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state = s; s == cut {
		for c := range w.conns {
			_ = c.Close()
		}
	}
	w.free.Broadcast()
}

func (w *wire) serve() {
	for {
		from, err := w.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", w.to)
		if err != nil || !w.hold(from, to) {
			_ = from.Close()
			if to != nil {
				_ = to.Close()
			}
			continue
		}
		go w.carry(from, to)
		go w.carry(to, from)
	}
}

// hold keeps the ends of a connection, unless the wire is cut.
func (w *wire) hold(ends ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == cut {
		return false
	}
	for _, c := range ends {
		w.conns[c] = true
	}
	return true
}

// carry moves what one end says to the other, until either ends.
func (w *wire) carry(from io.Reader, to io.Writer) {
	for b := make([]byte, 32<<10); ; {
		n, err := from.Read(b)
		w.mu.Lock()
		for w.state == silent {
			w.free.Wait()
		}
		w.mu.Unlock()
		if err == nil {
			_, err = to.Write(b[:n])
		}
		if err != nil {
			w.drop(from.(net.Conn), to.(net.Conn))
			return
		}
	}
}

func (w *wire) drop(ends ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range ends {
		_ = c.Close()
		delete(w.conns, c)
	}
}
