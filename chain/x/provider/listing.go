package provider

import (
	"slices"
	"strings"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// CheckPeer checks all of a peer but its stake, without the registry.
func CheckPeer(p providerv1.Peer) error {
	if _, err := address.Parse(p.Account); err != nil {
		return errorsmod.Wrap(ErrListing, err.Error())
	}
	if _, err := address.Parse(p.Owner); p.Owner != "" && (err != nil || p.Owner == p.Account) {
		return errorsmod.Wrapf(ErrListing, "owner %.80q: give another account, or none", p.Owner)
	}
	if err := vrf.CheckKey(p.PeerKey); err != nil {
		return errorsmod.Wrapf(ErrKey, "peer_key: %s", err)
	}
	if err := vrf.CheckKey(p.VrfKey); err != nil {
		return errorsmod.Wrapf(ErrKey, "vrf_key: %s", err)
	}
	return CheckListing(p.Roles, p.Listing)
}

// CheckListing checks roles, and a listing for them. The text of an address is
// checked for its shape only: what the multiaddr library takes may change with
// its version, and the chain must not.
func CheckListing(roles []providerv1.Role, l providerv1.Listing) error {
	if len(roles) == 0 {
		return errorsmod.Wrap(ErrListing, "roles: choose of provider, validator and challenger")
	}
	for i, r := range roles {
		if r < providerv1.ROLE_PROVIDER || r > providerv1.ROLE_CHALLENGER || i > 0 && r <= roles[i-1] {
			return errorsmod.Wrapf(ErrListing, "roles %v: choose of provider, validator and challenger, in this order, each once", roles)
		}
	}
	if len(l.Addrs) > wire.MaxAddrs {
		return errorsmod.Wrapf(ErrListing, "%d addrs: give at most %d", len(l.Addrs), wire.MaxAddrs)
	}
	for _, a := range l.Addrs {
		if len(a) > wire.MaxAddr || !strings.HasPrefix(a, "/") || strings.ContainsFunc(a, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return errorsmod.Wrapf(ErrListing, "addr %.40q: give a multiaddr such as /ip4/192.0.2.1/tcp/4001, at most %d bytes", a, wire.MaxAddr)
		}
	}
	if l.UnitPrice > wire.MaxPrice || l.BytePrice > wire.MaxPrice {
		return errorsmod.Wrapf(ErrListing, "price: at most %d utally", wire.MaxPrice)
	}
	declared, err := wire.DeclaredFromProto(&l.Declared)
	if err == nil {
		err = declared.Check()
	}
	if err != nil {
		return errorsmod.Wrapf(ErrListing, "declared: %s", err)
	}
	if slices.Contains(roles, providerv1.ROLE_PROVIDER) {
		if _, err := address.Parse(l.Validator); err != nil {
			return errorsmod.Wrapf(ErrListing, "validator: name the one to work under: %s", err)
		}
	} else if l.Validator != "" || l.UnitPrice != 0 || l.BytePrice != 0 || l.Declared.Size() > 0 {
		return errorsmod.Wrap(ErrListing, "validator, unit_price, byte_price, declared: only a provider has them; leave them empty")
	}
	return nil
}
