package devnet

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/home"
)

const (
	endpointsFile = "endpoints.json"
	maxEndpoints  = 1 << 20
)

// Endpoints say where a running network answers.
type Endpoints struct {
	Chain string     `json:"chain"`
	PID   int        `json:"pid"`
	Nodes []Endpoint `json:"nodes"`
	Roles []Endpoint `json:"roles"` // that are no nodes
}

// Endpoint is where one role answers.
type Endpoint struct {
	Name    string   `json:"name"`
	Address string   `json:"address"` // of its account
	Home    string   `json:"home"`
	RPC     string   `json:"rpc,omitempty"`
	GRPC    string   `json:"grpc,omitempty"`
	REST    string   `json:"rest,omitempty"`
	P2P     string   `json:"p2p,omitempty"` // consensus
	Peer    []string `json:"peer"`          // multiaddrs
	Metrics string   `json:"metrics,omitempty"`
}

// Endpoints returns where the network answers.
func (n *Network) Endpoints() Endpoints {
	e := Endpoints{Chain: n.config.Chain, PID: os.Getpid()}
	for _, m := range n.members {
		p := Endpoint{
			Name: m.Env.Name, Address: m.Home.Address, Home: m.Home.Dir, Peer: m.Env.Host.Addrs(), Metrics: m.Metrics,
		}
		if m.Node == nil {
			e.Roles = append(e.Roles, p)
			continue
		}
		at := m.Node.Addrs()
		p.RPC, p.GRPC, p.REST, p.P2P = "http://"+at.RPC, at.GRPC, "http://"+at.REST, at.P2P
		e.Nodes = append(e.Nodes, p)
	}
	return e
}

func (n *Network) writeEndpoints() error {
	text, err := json.MarshalIndent(n.Endpoints(), "", "  ")
	if err != nil {
		return err
	}
	return home.WriteFile(filepath.Join(n.config.Dir, endpointsFile), append(text, '\n'), 0o600)
}

// ReadEndpoints reads what a running network wrote.
func ReadEndpoints(path string) (e Endpoints, err error) {
	text, err := bounded.ReadFile(path, maxEndpoints)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("read %s: %w", path, err)
	}
	if e.Chain == "" || len(e.Nodes) == 0 {
		return e, fmt.Errorf("%s names no node", path)
	}
	return e, nil
}

// Ready waits until every node shows every peer registered and an offer of every
// validator.
func (n *Network) Ready(ctx context.Context) error {
	for _, m := range n.Validators {
		if err := n.ready(ctx, m.Env.Chain); err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) ready(ctx context.Context, chain *client.Client) error {
	roles := len(n.Validators) + len(n.Providers) + len(n.Challengers)
	for height := int64(0); ; {
		peers, err := providerv1.NewQueryClient(chain.Conn).Peers(ctx, &providerv1.QueryPeersRequest{})
		if err != nil {
			return fmt.Errorf("ask for the peers: %w", err)
		}
		offers, err := marketv1.NewQueryClient(chain.Conn).Offers(ctx, &marketv1.QueryOffersRequest{})
		if err != nil {
			return fmt.Errorf("ask for the offers: %w", err)
		}
		if len(peers.Peers) >= roles && len(offers.Offers) >= len(n.Validators) {
			return nil
		}
		select {
		case err := <-n.failed:
			n.fail(err)
			return err
		default:
		}
		b, err := chain.Next(ctx, height)
		if err != nil {
			return err
		}
		height = b.Height
	}
}
