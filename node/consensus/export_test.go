package consensus

import (
	"net"
	"strings"
	"testing"

	cmtdb "github.com/cometbft/cometbft-db"
	abci "github.com/cometbft/cometbft/abci/types"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/cosmos/gogoproto/proto"
	"google.golang.org/genproto/googleapis/api/annotations"
	protov2 "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"cosmossdk.io/log/v2"
)

// WebsocketsOfAddress are as many as one address of strangers can have open.
const WebsocketsOfAddress = heldOfAddress / (heldOfStream + heldOfRequest)

// ServeElsewhere serves the node's RPC to whoever connects to l, as to a stranger.
func (n *Node) ServeElsewhere(l net.Listener) {
	s := limitedServer(newReplyBudget().http(n.rpcHandler(log.NewNopLogger(), newShare())))
	go func() { _ = s.Serve(elsewhere{l, "203.0.113.1"}) }()
}

// HangUp ends all connections of the node, as no error that CometBFT would mend.
func (n *Node) HangUp() {
	for _, p := range n.comet.Switch().Peers().Copy() {
		n.comet.Switch().StopPeerGracefully(p)
	}
}

// Costly returns the methods of gRPC that take their turn and that REST has, each with
// its path there up to the first parameter. The value: whether it takes its turn there too.
func (n *Node) Costly() map[string]bool {
	out := map[string]bool{}
	for service := range n.grpcServer(newShare()).GetServiceInfo() {
		d, err := proto.HybridResolver.FindDescriptorByName(protoreflect.FullName(service))
		if err != nil {
			continue
		}
		methods := d.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			m := methods.Get(i)
			rule, _ := protov2.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
			if name := "/" + service + "/" + string(m.Name()); rule != nil && costlyMethod(name) {
				for _, r := range append(rule.AdditionalBindings, rule) {
					path, _, _ := strings.Cut(r.GetGet()+r.GetPost(), "{")
					out[name+" "+path] = costlyPath(path)
				}
			}
		}
	}
	return out
}

// BeginBlock keeps trials waiting, as a block does that is being written, until it ends.
func (n *Node) BeginBlock() (end func()) {
	n.app.mu.Lock()
	return n.app.mu.Unlock
}

// SignBy lets f change what signs a node's votes and proposals.
func (c *Config) SignBy(f func(cmttypes.PrivValidator) cmttypes.PrivValidator) {
	c.overrides.signer = f
}

// AnswerBy lets f change what CometBFT asks.
func (c *Config) AnswerBy(f func(abci.Application) abci.Application) { c.overrides.app = f }

// StoreBy lets f change CometBFT's databases.
func (c *Config) StoreBy(f func(cmtdb.DB) cmtdb.DB) { c.overrides.store = f }

// Base returns the height of the first block that the node has.
func (n *Node) Base() int64 { return n.comet.BlockStore().Base() }

// Export returns the state after a block, as text.
func (n *Node) Export(t testing.TB, height int64) string {
	ctx, err := n.app.CreateQueryContext(height, false)
	if err != nil {
		t.Fatal(err)
	}
	state, err := n.app.Export(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return string(state)
}

// Stored returns the height of the newest state.
func (n *Node) Stored() int64 { return n.app.LastBlockHeight() }

// Capacity returns how many bytes a message of a peer may have, by the reactor that takes it.
func (n *Node) Capacity(reactor string) (most int) {
	r, _ := n.comet.Switch().Reactor(reactor)
	for _, c := range r.GetChannels() {
		most = max(most, c.RecvMessageCapacity)
	}
	return most
}
