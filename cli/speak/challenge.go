package speak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/contest"
	"github.com/tally-network/tally/node/hire"
	"github.com/tally-network/tally/node/role"
)

func (e *Env) challengeReceipt() *cobra.Command {
	var at receiptModel
	var open OpenConsumer
	cmd := &cobra.Command{
		Use: "challenge RECEIPT", Short: "Dispute a wrong reply on the chain, and play the dispute to its end",
		Long: `Re-executes a reply with the model on this machine. If it is wrong, disputes it on the chain: locks a bond, and makes every move until the chain
has decided. A provider that loses is convicted: it pays the consumer back and rewards the challenger, and the bond returns. What was begun before goes on.
RECEIPT is a file, or the id of one that a gateway of --home has kept. Everybody sees tokens of a page where a dispute ends.`,
		Example: "  tally session challenge 3f2a… --home consumer\n  tally session challenge receipt.json --model smollm2.gguf --home watcher --endpoints tally-devnet/endpoints.json",
		Args:    cobra.MatchAll(named("RECEIPT"), cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := e.openReceipt(args[0], at)
			if err != nil {
				return err
			}
			return e.challenge(cmd.Context(), open, r)
		},
	}
	at.flags(cmd)
	open = e.Consumer(cmd.Flags())
	return cmd
}

// Challenged is what tally session challenge prints.
type Challenged struct {
	Verified
	Dispute uint64 `json:"dispute"`
	Moves   uint32 `json:"moves"`
	Loser   string `json:"loser"`
	Reason  string `json:"reason"`
}

func (e *Env) challenge(ctx context.Context, open OpenConsumer, r *receipt) error {
	found, err := r.reExecute(ctx)
	if err != nil {
		return err
	}
	if found.Right {
		return fmt.Errorf("the reply is right, all %d tokens: there is nothing to dispute", found.Tokens)
	}
	fmt.Fprintln(e.Err, errWrong{found}.Error())
	h, env, err := open(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	m := contest.NewModel(r.manifest.Disputed(), r.files.Weights, executor(r.threads), r.threads)
	book := contest.New(ctx, env, hire.Disputed(filepath.Join(*e.Home, "sessions")), func(root canon.Hash) contest.Model {
		if root == r.Terms.Model {
			return m
		}
		return nil
	})
	d, err := e.playOut(ctx, env, book, r)
	stop()
	book.Wait()
	if err := errors.Join(err, h.Close()); err != nil {
		return err
	}
	out := Challenged{Verified: found, Dispute: d.Id, Moves: d.Moves, Loser: dispute.Side(d.Loser).String(), Reason: d.Reason}
	return e.Show(out, func(w io.Writer) {
		fmt.Fprintf(w, "dispute %d is over after %d moves: the %s has lost, for %s\n", out.Dispute, out.Moves, out.Loser, out.Reason)
	})
}

// playOut opens a dispute, unless it is open, and plays it to its end.
func (e *Env) playOut(ctx context.Context, env *role.Env, book *contest.Book, r *receipt) (over *disputev1.Dispute, err error) {
	if d, err := findDispute(ctx, env, r); err != nil {
		return nil, err
	} else if d == nil {
		if err := book.Open(ctx, &r.Proof); err != nil {
			return nil, fmt.Errorf("open the dispute: %w", err)
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stage := ""
	err = env.EachBlock(ctx, func(ctx context.Context, _ client.Block) error {
		d, err := findDispute(ctx, env, r)
		if err != nil || d == nil {
			return err
		}
		if d.Stage != stage {
			stage = d.Stage
			fmt.Fprintf(e.Err, "dispute %d, after %d moves: %s\n", d.Id, d.Moves, stage)
		}
		if d.Stage == dispute.Over.String() {
			over = d
			stop()
			return nil
		}
		return book.Block(ctx)
	})
	if over != nil {
		return over, nil
	}
	return nil, errors.Join(err, errors.New("the dispute goes on: give the same command again before its clock runs out"))
}

// findDispute returns this account's dispute about a receipt, nil if there is none.
func findDispute(ctx context.Context, env *role.Env, r *receipt) (*disputev1.Dispute, error) {
	all, err := disputev1.NewQueryClient(env.Chain.Conn).Disputes(ctx, &disputev1.QueryDisputesRequest{Order: r.Receipt.Receipt.Session.String()})
	if err != nil {
		return nil, err
	}
	id := r.Receipt.Receipt.ID()
	for i := range all.Disputes {
		if d := &all.Disputes[i]; d.Parties.Challenger == env.Account.Address && d.Parties.Reply != nil && bytes.Equal(d.Parties.Reply.Receipt, id[:]) {
			return d, nil
		}
	}
	return nil, nil
}
