// Package seat is what a machine does for seats in consensus: it shows them to people, and proves its own.
//
// [Look] asks who has which seats, and by what power. [Run] shows the outputs of a member's VRF for the draws that ask
// for them; node/runner calls it for every validator. Where seats are given by shares or by lots of the
// beacon there is nothing to do. Whoever is no member of consensus does nothing either.
//
// Invariants: a draw is answered once; the chain knows whether it was, so a restart changes nothing. Which key counts
// the chain knows too: another's proof is refused and costs nothing.
//
// Source: docs/spec/seats.md.
package seat

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/role"
)

// Run answers draws until ctx is done.
func Run(ctx context.Context, env *role.Env) error {
	return env.EachBlock(ctx, func(ctx context.Context, b client.Block) error {
		s, err := seatsv1.NewQueryClient(env.Chain.Conn).Status(ctx, &seatsv1.QueryStatusRequest{})
		if err != nil || s.Draw == nil || s.Draw.WalkHeight <= b.Height+1 { // the next block takes it no more
			return err
		}
		return answer(ctx, env, s.Draw)
	})
}

// OtherKey says what to do if the chain knows an account's member by another consensus key than its node votes with: no vote of that
// node counts. It is empty if all is well, or if the account is no member.
func OtherKey(ctx context.Context, conn grpc.ClientConnInterface, account string, key []byte) (string, error) {
	r, err := seatsv1.NewQueryClient(conn).Member(ctx, &seatsv1.QueryMemberRequest{Account: account})
	if status.Code(err) == codes.NotFound {
		return "", nil
	} else if err != nil {
		return "", err
	}
	if bytes.Equal(r.Member.ConsensusKey, key) {
		return "", nil
	}
	return fmt.Sprintf("the chain knows %s by the consensus key %X, and this node votes with %X, which counts for nothing: bring the other key back, as docs/validate.md shows, or leave, and join anew once the bond is back",
		account, r.Member.ConsensusKey, key), nil
}

// answer proves for a draw that waits, if this account is drawn and has not proved yet.
func answer(ctx context.Context, env *role.Env, d *seatsv1.Draw) error {
	me := env.Account.Address
	r, err := seatsv1.NewQueryClient(env.Chain.Conn).Member(ctx, &seatsv1.QueryMemberRequest{Account: me})
	if status.Code(err) == codes.NotFound {
		return nil
	} else if err != nil {
		return err
	}
	m := &r.Member
	if m.Status != seatsv1.STATUS_ACTIVE || m.FromEpoch > d.Epoch || m.OutputEpoch == d.Epoch {
		return nil
	}
	var refused error
	for _, key := range env.Keys.Provers {
		_, proof, err := vrf.Prove(key, wire.SeatInput(d.Value, d.Epoch))
		if err != nil {
			return err
		}
		if _, err = env.Account.Send(ctx, &seatsv1.MsgProve{Account: me, Epoch: d.Epoch, Proof: proof}); err == nil {
			return nil
		}
		refused = errors.Join(refused, err)
	}
	return fmt.Errorf("prove for the draw of epoch %d: %w", d.Epoch, refused)
}
