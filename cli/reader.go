package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
)

// reader is a verb that asks a node, and needs no home for itself.
type reader struct {
	e         *env
	endpoints string
	node      home.Node

	role    *role.Env // that can ask the chain, and nothing else
	account string    // of the home, if there is one
}

func (r *reader) flags(f *pflag.FlagSet) {
	f.StringVar(&r.endpoints, "endpoints", "", "endpoints.json of a devnet to ask (default the node of the home)")
	nodeFlags(f, &r.node, "ask")
}

// nodeFlags adds the flags that name a node. Half of them would leave the other half to another node.
func nodeFlags(f *pflag.FlagSet, n *home.Node, to string) {
	f.StringVar(&n.RPC, "rpc", "", "CometBFT RPC of a node to "+to+", as http://host:port")
	f.StringVar(&n.GRPC, "grpc", "", "gRPC of the same node, as host:port")
	_ = f.SetAnnotation("rpc", "cobra_annotation_required_if_others_set", []string{"rpc grpc"})
	_ = f.SetAnnotation("grpc", "cobra_annotation_required_if_others_set", []string{"rpc grpc"})
}

// dial connects to the node. The caller closes the connection.
func (r *reader) dial(ctx context.Context) error {
	dir := r.e.home
	known := home.Exists(dir)
	if known {
		var err error
		if r.account, err = home.Address(dir); err != nil {
			return err
		}
	}
	switch {
	case r.endpoints != "":
		at, err := devnet.ReadEndpoints(r.endpoints)
		if err != nil {
			return fmt.Errorf("read --endpoints (does the devnet run?): %w", err)
		}
		r.node = home.Node{RPC: at.Nodes[0].RPC, GRPC: at.Nodes[0].GRPC}
	case r.node.RPC != "" && r.node.GRPC != "":
	case known:
		s, err := home.LoadSettings(dir)
		if err != nil {
			return err
		}
		r.node = s.Node
	default:
		return fmt.Errorf("%s is no home, and there is no node to ask", dir)
	}
	at := client.Endpoints{RPC: r.node.RPC, GRPC: r.node.GRPC}
	if err := client.Probe(ctx, at); err != nil {
		return err
	}
	c, err := client.Dial(ctx, at)
	if err != nil {
		return err
	}
	r.role = role.New(role.Parts{Chain: c})
	return nil
}

// asks runs do while it is connected to the node.
func (r *reader) asks(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := r.dial(cmd.Context()); err != nil {
			return err
		}
		return errors.Join(do(cmd.Context(), args), r.close())
	}
}

func (r *reader) close() error { return r.role.Chain.Close() }
