package consensus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/cometbft/cometbft/crypto"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtlog "github.com/cometbft/cometbft/libs/log"
	"github.com/cometbft/cometbft/p2p"
	"github.com/cometbft/cometbft/privval"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
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

// privValidator returns what signs this node's votes: the key in its directory, or a signer that dials it.
func (n *Node) privValidator(ctx context.Context, c *Config, chainID string, nodeKey *p2p.NodeKey, logger cmtlog.Logger) (cmttypes.PrivValidator, error) {
	if c.Signer == "" {
		return loadValidator(c.comet())
	}
	l, err := listenForSigner(c.Signer, nodeKey)
	if err != nil {
		return nil, fmt.Errorf("wait for the signer at %s: %w", c.Signer, err)
	}
	endpoint := privval.NewSignerListenerEndpoint(logger.With("module", "privval"), l, privval.SignerListenerEndpointTimeoutReadWrite(signerPatience))
	client, err := privval.NewSignerClient(endpoint, chainID)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	n.closers = append(n.closers, endpoint.Stop)
	c.Logger.Warn("waiting for the signer", "at", c.Signer)
	for {
		key, err := client.GetPubKey()
		if err == nil {
			return remoteSigner{client, key}, nil
		}
		if refusal := (*privval.RemoteSignerError)(nil); errors.As(err, &refusal) {
			return nil, fmt.Errorf("the signer at %s refuses: %w: is it set up for chain %s?", c.Signer, err, chainID)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("no signer at %s: %w: start it, as docs/validate.md shows: %w", c.Signer, err, ctx.Err())
		case <-time.After(signerRest):
		}
	}
}

const (
	signerPatience = 2 * time.Second // for an answer; consensus waits meanwhile
	signerRest     = 100 * time.Millisecond
)

// listenForSigner listens where a signer dials: tcp://host:port or unix://path.
func listenForSigner(at string, nodeKey *p2p.NodeKey) (net.Listener, error) {
	if err := CheckSigner(at); err != nil {
		return nil, err
	}
	protocol, place, _ := strings.Cut(at, "://")
	if protocol == "tcp" {
		key, ok := nodeKey.PrivKey.(cmted25519.PrivKey)
		if !ok {
			return nil, fmt.Errorf("the node's key is a %s, and signers know ed25519", nodeKey.PrivKey.Type())
		}
		l, err := net.Listen(protocol, place)
		if err != nil {
			return nil, err
		}
		return privval.NewTCPListener(l, key), nil // a signer can tell the node by its id
	}
	if info, err := os.Lstat(place); err == nil { // a killed node left its socket
		if info.Mode()&os.ModeSocket == 0 {
			return nil, errors.New("another file is there: name a place for the socket")
		}
		if c, err := net.Dial(protocol, place); err == nil {
			return nil, errors.Join(errors.New("another process listens there"), c.Close())
		}
		if err := os.Remove(place); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen(protocol, place)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(place, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return privval.NewUnixListener(l), nil
}

// remoteSigner asks a signer while it is there. CometBFT's own client waits for one that is away, and all of consensus with it.
type remoteSigner struct {
	client *privval.SignerClient
	key    crypto.PubKey
}

// GetPubKey implements cmttypes.PrivValidator.
func (r remoteSigner) GetPubKey() (crypto.PubKey, error) { return r.key, nil }

// SignVote implements cmttypes.PrivValidator.
func (r remoteSigner) SignVote(chainID string, vote *cmtproto.Vote) error {
	if !r.client.IsConnected() {
		return errSignerAway
	}
	return r.client.SignVote(chainID, vote)
}

// SignProposal implements cmttypes.PrivValidator.
func (r remoteSigner) SignProposal(chainID string, proposal *cmtproto.Proposal) error {
	if !r.client.IsConnected() {
		return errSignerAway
	}
	return r.client.SignProposal(chainID, proposal)
}

var errSignerAway = errors.New("the signer is away")
