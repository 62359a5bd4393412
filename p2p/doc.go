// Package p2p connects the machines of the network: a libp2p host that proves
// its ed25519 peer key (Noise over TCP, TLS over QUIC), and stream protocols of
// one request and one response. [New] starts a host; [Host.SetAddrs] says where peers
// are, [Host.Handle] answers requests, and [Host.Call] sends them. A [Streaming] protocol answers
// by many messages, each as soon as it is there: [Streaming.Handle] and [Streaming.Call].
//
// On the wire a request is its length, four bytes big-endian, and its bytes; a
// response is a status byte, then the same. The bytes are opaque here; Typed
// puts an encoding on top. The answer of a stream is one response after another, and its end.
// The blob protocol gives one block for one CID, asked for under an order. [Host.Links]
// tells how fast registered peers were, in this protocol and in that of links.
//
// Invariants:
//   - A handler knows who asks: the peer.ID it gets is the peer key that the
//     connection proved, and PublicKey returns that key.
//   - A length is compared with the protocol's limit, and reserved with the
//     resource manager, before memory is allocated for it.
//   - Every exchange ends by its protocol's timeout, and sooner if its bytes do not come
//     within seconds or at a least rate. One peer has a bounded number of them. Whoever
//     runs the fewest is answered first, so a slow or greedy peer does not hold others up.
//   - Connections that have proven no key, strangers, registered peers, and parties of
//     a lease have shares of their own (shares in door.go); none can take another's.
//     The node says who is who: SetRegistered, SetParties, SetAddrs.
//   - Blocks are served only to whom the node's callback allows them; without a
//     callback, to nobody.
//   - A host makes no use of relays, NAT mapping or address guessing; it dials
//     what the chain's registry says.
//
// Source: libp2p specifications (github.com/libp2p/specs); the protocols are
// ours.
package p2p
