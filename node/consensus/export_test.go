package consensus

// HangUp ends all connections of the node, as no error that CometBFT would mend.
func (n *Node) HangUp() {
	for _, p := range n.comet.Switch().Peers().Copy() {
		n.comet.Switch().StopPeerGracefully(p)
	}
}
