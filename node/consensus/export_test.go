package consensus

import (
	"net"

	"cosmossdk.io/log/v2"
)

// ServeElsewhere serves the node's RPC to whoever connects to l, as to a stranger.
func (n *Node) ServeElsewhere(l net.Listener) {
	s := limitedServer(newReplies().http(n.rpcHandler(log.NewNopLogger(), newShare())))
	go func() { _ = s.Serve(elsewhere{l, "203.0.113.1"}) }()
}

// HangUp ends all connections of the node, as no error that CometBFT would mend.
func (n *Node) HangUp() {
	for _, p := range n.comet.Switch().Peers().Copy() {
		n.comet.Switch().StopPeerGracefully(p)
	}
}
