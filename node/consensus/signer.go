package consensus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtlog "github.com/cometbft/cometbft/libs/log"
	"github.com/cometbft/cometbft/p2p"
	"github.com/cometbft/cometbft/privval"
	cmttypes "github.com/cometbft/cometbft/types"
)

// CheckSigner refuses what is neither tcp://host:port nor unix://path.
func CheckSigner(at string) error {
	protocol, place, _ := strings.Cut(at, "://")
	if protocol == "unix" && place != "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(place); protocol != "tcp" || err != nil {
		return fmt.Errorf("signer %q is neither tcp://host:port nor unix://path", at)
	}
	return nil
}

// validator returns what signs this node's votes: the key in its directory, or a signer that dials it.
func (n *Node) validator(ctx context.Context, c *Config, chainID string, key *p2p.NodeKey, logger cmtlog.Logger) (cmttypes.PrivValidator, error) {
	if c.Signer == "" {
		return loadValidator(c.comet())
	}
	if err := CheckSigner(c.Signer); err != nil {
		return nil, err
	}
	protocol, place, _ := strings.Cut(c.Signer, "://")
	if protocol == "unix" {
		if err := os.Remove(place); err != nil && !errors.Is(err, os.ErrNotExist) { // a killed node left it
			return nil, err
		}
	}
	l, err := net.Listen(protocol, place)
	if err != nil {
		return nil, fmt.Errorf("wait for the signer: %w", err)
	}
	var listener net.Listener
	switch known, _ := key.PrivKey.(cmted25519.PrivKey); protocol {
	case "unix":
		listener = privval.NewUnixListener(l)
	default:
		listener = privval.NewTCPListener(l, known) // a signer can tell the node by its id
	}
	endpoint := privval.NewSignerListenerEndpoint(logger.With("module", "privval"), listener)
	client, err := privval.NewSignerClient(endpoint, chainID)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	n.closers = append(n.closers, client.Close)
	c.Logger.Warn("waiting for the signer", "at", c.Signer)
	for {
		if _, err := client.GetPubKey(); err == nil {
			break
		} else if ctx.Err() != nil {
			return nil, fmt.Errorf("no signer at %s: %w: start it, as docs/validate.md shows: %w", c.Signer, err, ctx.Err())
		}
	}
	const tries, rest = 10, 100 * time.Millisecond // less than a round: a vote too late is none
	return privval.NewRetrySignerClient(client, tries, rest), nil
}
