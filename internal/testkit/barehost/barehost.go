// Package barehost makes libp2p hosts without any limit of their own, to play strangers
// that trouble the network: [New].
//
// Invariant: a host dials from the address at which it listens, so that a test decides
// how many strangers share an address.
package barehost

import (
	"crypto/ed25519"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
)

// New returns a host with a new key, which listens at a TCP multiaddr. The caller
// closes it. It fails where the machine does not have the address: Linux has all of
// 127.0.0.0/8, others have 127.0.0.1 alone.
func New(listen string) (host.Host, error) {
	_, seed, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	key, err := crypto.UnmarshalEd25519PrivateKey(seed)
	if err != nil {
		return nil, err
	}
	return libp2p.New(libp2p.Identity(key), libp2p.Transport(tcp.NewTCPTransport), libp2p.Security(noise.ID, noise.New),
		libp2p.ListenAddrStrings(listen), libp2p.ResourceManager(&network.NullResourceManager{}),
		libp2p.DisableRelay(), libp2p.DisableMetrics(), libp2p.ForceReachabilityPublic())
}
