package provider

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// candidates are the peers that have the least stake of their role, by group: validators, and the
// providers under each validator. What matches orders reads these alone: to be a peer costs
// a fee and no more.
type candidates struct {
	all collections.Map[collections.Pair[string, sdk.AccAddress], providerv1.Candidate]
	// judges are the validators among them, those with the most stake first.
	judges collections.KeySet[collections.Pair[uint64, sdk.AccAddress]]
	// improved names validators under whom an order may find now what it did not find before. The
	// empty account stands for all of them.
	improved collections.KeySet[sdk.AccAddress]
	// excluded are the owners whose peers get no new work any more.
	excluded collections.KeySet[sdk.AccAddress]
}

// candidateOf returns what matching needs of a peer.
func candidateOf(p providerv1.Peer) providerv1.Candidate {
	return providerv1.Candidate{
		Account: p.Account, PeerKey: p.PeerKey, VrfKey: p.VrfKey,
		UnitPrice: p.Listing.UnitPrice, BytePrice: p.Listing.BytePrice,
		Free: p.Stake - p.Reserved, Stake: p.Stake, JailedUntil: p.JailedUntil, Unanswered: p.Unanswered,
		Owner: p.Owner, Declared: p.Listing.Declared, Speed: wire.SpeedOf(&p.Pace), Lapsed: p.Lapsed,
	}
}

// storePeer stores a peer that was another before, and keeps the index of candidates.
func (k *Keeper) storePeer(ctx context.Context, account sdk.AccAddress, before, after providerv1.Peer) error {
	params, err := k.Params(ctx)
	if err != nil {
		return err
	}
	able := func(p providerv1.Peer) bool { return hasStake(params, p) && p.Unanswered == 0 }
	if rose := after.Stake-after.Reserved > before.Stake-before.Reserved; before.Account != "" && (rose || after.Unanswered < before.Unanswered || able(after) && !able(before)) {
		after.AbleSince = module.Now(ctx)
	}
	if err := k.peers.Set(ctx, account, after); err != nil {
		return err
	}
	return k.candidates.reindex(ctx, account, peerUnder{before, hasStake(params, before)}, peerUnder{after, hasStake(params, after)})
}

// peerUnder is a peer, and whether it has the least stake under the rules of its time.
type peerUnder struct {
	providerv1.Peer
	staked bool
}

// candidacies names the groups in which a peer is a candidate. Nobody draws challengers.
func (p peerUnder) candidacies() (groups []string) {
	if p.staked && is(p.Peer, providerv1.ROLE_PROVIDER) {
		groups = append(groups, p.Listing.Validator)
	}
	if p.staked && is(p.Peer, providerv1.ROLE_VALIDATOR) {
		groups = append(groups, providerv1.ROLE_VALIDATOR.String())
	}
	return groups
}

// reindex lets the index of candidates follow a peer.
func (c candidates) reindex(ctx context.Context, account sdk.AccAddress, before, after peerUnder) error {
	from, to := before.candidacies(), after.candidacies()
	old, now := candidateOf(before.Peer), candidateOf(after.Peer)
	judges := providerv1.ROLE_VALIDATOR.String()
	if err := c.rank(ctx, account, slices.Contains(from, judges), old.Stake, slices.Contains(to, judges), now.Stake); err != nil {
		return err
	}
	for _, group := range without(from, to) {
		if err := c.all.Remove(ctx, collections.Join(group, account)); err != nil {
			return err
		}
	}
	for _, group := range to {
		moved := !slices.Contains(from, group)
		if !moved && reflect.DeepEqual(now, old) {
			continue
		}
		if err := c.all.Set(ctx, collections.Join(group, account), now); err != nil {
			return err
		}
		if !moved && !better(old, now) {
			continue
		}
		if err := c.markGroup(ctx, account, group, moved); err != nil {
			return err
		}
	}
	return nil
}

// rank lets the order of validators by stake follow one of them.
func (c candidates) rank(ctx context.Context, account sdk.AccAddress, was bool, old uint64, is bool, now uint64) error {
	if was == is && old == now {
		return nil
	}
	if was {
		if err := c.judges.Remove(ctx, collections.Join(^old, account)); err != nil {
			return err
		}
	}
	if !is {
		return nil
	}
	return c.judges.Set(ctx, collections.Join(^now, account))
}

// better reports whether a candidate may be wanted where it was not before.
func better(old, now providerv1.Candidate) bool {
	return now.Free > old.Free || now.UnitPrice < old.UnitPrice || now.BytePrice < old.BytePrice ||
		now.JailedUntil < old.JailedUntil || now.Unanswered < old.Unanswered || now.Owner != old.Owner ||
		now.Speed > old.Speed || now.Lapsed < old.Lapsed || !reflect.DeepEqual(now.Declared, old.Declared)
}

// markGroup marks the cluster of a candidate of a group, or all where it is a validator that all
// the others may draw now.
func (c candidates) markGroup(ctx context.Context, account sdk.AccAddress, group string, moved bool) (err error) {
	switch {
	case group != providerv1.ROLE_VALIDATOR.String():
		if account, err = address.Parse(group); err != nil {
			return err
		}
	case moved:
		account = sdk.AccAddress{}
	}
	if has, err := c.improved.Has(ctx, account); has || err != nil {
		return err
	}
	return c.improved.Set(ctx, account)
}

// MarkImproved marks a validator's cluster, of which an order may want now what it did not want.
func (c candidates) MarkImproved(ctx context.Context, validator sdk.AccAddress) error {
	return c.improved.Set(ctx, validator)
}

// TakeImproved returns validators whose clusters have improved since they were last taken: at most so
// many, from an account on and then from the first. It says whether all have, for the least stake has.
func (c candidates) TakeImproved(ctx context.Context, from sdk.AccAddress, most int) (out []sdk.AccAddress, all bool, err error) {
	if all, err = c.improved.Has(ctx, sdk.AccAddress{}); all {
		err = c.improved.Remove(ctx, sdk.AccAddress{})
	}
	if err != nil {
		return nil, all, err
	}
	out, err = module.First(ctx, c.improved, new(collections.Range[sdk.AccAddress]).StartInclusive(from), most)
	if err != nil {
		return nil, all, err
	}
	early, err := module.First(ctx, c.improved, new(collections.Range[sdk.AccAddress]).EndExclusive(from), most-len(out))
	out = append(out, early...)
	for _, a := range out {
		err = errors.Join(err, c.improved.Remove(ctx, a))
	}
	return out, all, err
}

// Candidate returns the candidate that a validator is, or one that nobody wants.
func (c candidates) Candidate(ctx context.Context, validator sdk.AccAddress) (providerv1.Candidate, error) {
	found, err := c.all.Get(ctx, collections.Join(providerv1.ROLE_VALIDATOR.String(), validator))
	if errors.Is(err, collections.ErrNotFound) {
		return providerv1.Candidate{Account: validator.String(), Unanswered: 1}, nil
	}
	return found, err
}

// Seller returns the candidate that a provider is, or one that nobody wants, and its record of valid units.
func (k *Keeper) Seller(ctx context.Context, provider sdk.AccAddress) (c providerv1.Candidate, record uint64, err error) {
	params, err := k.Params(ctx)
	if err != nil {
		return c, 0, err
	}
	p, err := k.peers.Get(ctx, provider)
	if errors.Is(err, collections.ErrNotFound) {
		return providerv1.Candidate{Account: provider.String(), Unanswered: 1}, 0, nil
	}
	if c = candidateOf(p); err == nil && !(is(p, providerv1.ROLE_PROVIDER) && hasStake(params, p)) {
		c.Unanswered++
	}
	return c, p.Record, err
}

// Leads visits the validators that are candidates, in account order: from an account on, until before
// another.
func (c candidates) Leads(ctx context.Context, from, until sdk.AccAddress, visit func(sdk.AccAddress) (stop bool, err error)) error {
	part := collections.NewPrefixedPairRange[string, sdk.AccAddress](providerv1.ROLE_VALIDATOR.String())
	if from != nil {
		part.StartInclusive(from)
	}
	if until != nil {
		part.EndExclusive(until)
	}
	return c.all.Walk(ctx, part, func(at collections.Pair[string, sdk.AccAddress], _ providerv1.Candidate) (bool, error) {
		return visit(at.K2())
	})
}

// Providers returns the candidates that work under a validator: at most so many, from an
// account on and then from the first, in account order.
func (c candidates) Providers(ctx context.Context, validator, from sdk.AccAddress, most int) ([]providerv1.Candidate, error) {
	var late, early []providerv1.Candidate
	read := func(out *[]providerv1.Candidate, part collections.Ranger[collections.Pair[string, sdk.AccAddress]]) error {
		return c.all.Walk(ctx, part, func(_ collections.Pair[string, sdk.AccAddress], x providerv1.Candidate) (bool, error) {
			if len(late)+len(early) >= most {
				return true, nil
			}
			*out = append(*out, x)
			return false, nil
		})
	}
	all := func() *collections.PairRange[string, sdk.AccAddress] {
		return collections.NewPrefixedPairRange[string, sdk.AccAddress](validator.String())
	}
	if err := read(&late, all().StartInclusive(from)); err != nil {
		return nil, err
	}
	err := read(&early, all().EndExclusive(from))
	return append(early, late...), err
}

// Validators returns at most so many of the validators that are candidates, those with the most stake
// first. To be among them costs stake, whenever an order comes and whatever the account.
func (c candidates) Validators(ctx context.Context, most int) (out []providerv1.Candidate, err error) {
	ranked, err := module.First(ctx, c.judges, nil, most)
	for _, at := range ranked {
		x, e := c.all.Get(ctx, collections.Join(providerv1.ROLE_VALIDATOR.String(), at.K2()))
		out, err = append(out, x), errors.Join(err, e)
	}
	return out, err
}

// Free reports whether a candidate may get new work now.
func (x candidates) Free(ctx context.Context, c providerv1.Candidate) bool {
	gone, err := x.isExcluded(ctx, c.Owner)
	return err == nil && !gone && unhindered(ctx, c.JailedUntil, c.Unanswered)
}

// unhindered reports whether nothing but its stake could keep new work from a peer at the
// block's time.
func unhindered(ctx context.Context, jailedUntil int64, unanswered uint32) bool {
	return jailedUntil <= module.Now(ctx) && unanswered == 0
}

// relist makes the index of candidates anew, for new rules.
func (k *Keeper) relist(ctx context.Context, before, after providerv1.Params) error {
	return k.peers.Walk(ctx, nil, func(account sdk.AccAddress, p providerv1.Peer) (bool, error) {
		return false, k.candidates.reindex(ctx, account, peerUnder{p, hasStake(before, p)}, peerUnder{p, hasStake(after, p)})
	})
}

// checkCandidates returns an error unless the index is what the peers make it.
func (k *Keeper) checkCandidates(ctx context.Context) error {
	params, err := k.Params(ctx)
	if err != nil {
		return err
	}
	want, judges := 0, 0
	err = k.peers.Walk(ctx, nil, func(account sdk.AccAddress, p providerv1.Peer) (bool, error) {
		for _, group := range (peerUnder{p, hasStake(params, p)}).candidacies() {
			want++
			if group == providerv1.ROLE_VALIDATOR.String() {
				judges++
				if ranked, err := k.candidates.judges.Has(ctx, collections.Join(^p.Stake, account)); err != nil || !ranked {
					return true, errors.Join(errors.New("validator "+p.Account+" is not ranked by its stake"), err)
				}
			}
			c, err := k.candidates.all.Get(ctx, collections.Join(group, account))
			if is := candidateOf(p); err == nil && !reflect.DeepEqual(c, is) {
				err = errors.New("it is " + is.String() + ", as a candidate " + c.String())
			}
			if err != nil {
				return true, errors.Join(errors.New("candidate "+p.Account), err)
			}
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	err = k.candidates.judges.Walk(ctx, nil, func(at collections.Pair[uint64, sdk.AccAddress]) (bool, error) {
		if judges--; judges < 0 {
			return true, errors.New("a validator is ranked twice, or without its stake: " + at.K2().String())
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	return k.candidates.all.Walk(ctx, nil, func(at collections.Pair[string, sdk.AccAddress], _ providerv1.Candidate) (bool, error) {
		if want--; want < 0 {
			return true, errors.New("there is a candidate too many, in " + at.K1())
		}
		return false, nil
	})
}
