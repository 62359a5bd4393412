package app

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	errorsmod "cosmossdk.io/errors"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/tally-network/tally/chain/vrf"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
)

// proofGas is what a proof may use: it is a few times what it takes.
const proofGas = 300_000

// ProveWith gives this node the keys with which it proves the beacon's values when it
// proposes: its own, and one that will count. It comes before the first block.
func (a *App) ProveWith(keys ...ed25519.PrivateKey) { a.provers = keys }

// Begun returns transactions with the proof of the beacon's value before them, if a block of
// them needs one.
func (a *App) Begun(ctx sdk.Context, txs [][]byte) ([][]byte, error) {
	waits, err := a.drawWaits(ctx)
	if err != nil || len(txs) == 0 && !waits {
		return txs, err
	}
	proof, err := a.prove(ctx)
	return append([][]byte{proof.raw}, txs...), err
}

// Drawer is a module that draws at the end of a block. Waits reports whether it will, if the block
// has a value.
type Drawer interface {
	Waits(ctx context.Context) (bool, error)
}

// drawWaits reports whether a draw waits for the value of a block.
func (a *App) drawWaits(ctx sdk.Context) (bool, error) {
	ctx, _ = ctx.WithGasMeter(storetypes.NewInfiniteGasMeter()).CacheContext()
	if err := a.countTime(ctx); err != nil {
		return false, err
	}
	for _, m := range a.modules {
		if d, ok := m.(Drawer); ok {
			if waits, err := d.Waits(ctx); err != nil || waits {
				return waits, err
			}
		}
	}
	return false, nil
}

// prove returns the transaction that gives the value of the block that this node proposes.
func (a *App) prove(ctx sdk.Context) (entry, error) {
	account, public, err := a.Beacon.KeyOf(ctx, ctx.BlockHeader().ProposerAddress)
	if err != nil {
		return entry{}, err
	}
	i := slices.IndexFunc(a.provers, func(k ed25519.PrivateKey) bool { return bytes.Equal(k.Public().(ed25519.PublicKey), public) })
	if i < 0 {
		return entry{}, fmt.Errorf("it has no key to %x, with which %s proves: put that file back, or set another key and wait for two epochs", public, account)
	}
	input, err := a.Beacon.Input(ctx)
	if err != nil {
		return entry{}, err
	}
	_, pi, err := vrf.Prove(a.provers[i], input)
	if err != nil {
		return entry{}, err
	}
	return a.proofTx(&beaconv1.MsgProve{Account: account.String(), Proof: pi})
}

// proofTx returns the one transaction that holds a proof: nobody signs it, and nobody pays.
func (a *App) proofTx(m *beaconv1.MsgProve) (entry, error) {
	b := a.Tx.NewTxBuilder()
	if err := b.SetMsgs(m); err != nil {
		return entry{}, err
	}
	b.SetGasLimit(proofGas)
	raw, err := a.Tx.TxEncoder()(b.GetTx())
	return entry{raw: raw, tx: b.GetTx(), gas: proofGas, move: true}, err
}

// holdsProof reports whether a proof is among the messages of a transaction.
func holdsProof(tx sdk.Tx) bool {
	return slices.ContainsFunc(tx.GetMsgs(), func(m sdk.Msg) bool { _, ok := m.(*beaconv1.MsgProve); return ok })
}

// Proves reports whether a transaction is a proof of the beacon's value.
func (a *App) Proves(raw []byte) bool {
	_, err := a.proofOf(raw)
	return err == nil
}

// proofOf returns the proof that a transaction is, if it is nothing else.
func (a *App) proofOf(raw []byte) (*beaconv1.MsgProve, error) {
	tx, err := a.Tx.TxDecoder()(raw)
	if err != nil {
		return nil, err
	}
	if len(tx.GetMsgs()) == 1 {
		if m, ok := tx.GetMsgs()[0].(*beaconv1.MsgProve); ok {
			if only, err := a.proofTx(m); err != nil || !bytes.Equal(only.raw, raw) {
				return nil, errors.Join(errors.New("a proof with something beside it"), err)
			}
			return m, nil
		}
	}
	return nil, errors.New("no proof: the first transaction is another")
}

// checkProof returns an error unless a block begins with the proof of its proposer, and has
// no other, or needs none and has none.
func (a *App) checkProof(ctx sdk.Context, txs [][]byte) error {
	if len(txs) == 0 {
		if waits, err := a.drawWaits(ctx); err != nil || waits {
			return errors.Join(err, errors.New("no proof: a draw waits for this block"))
		}
		return nil
	}
	m, err := a.proofOf(txs[0])
	if err != nil {
		return err
	}
	if len(txs) == 1 {
		if waits, err := a.drawWaits(ctx); err != nil || !waits {
			return errors.Join(err, errors.New("a proof without need: an idle block has none"))
		}
	}
	for _, raw := range txs[1:] {
		if tx, err := a.Tx.TxDecoder()(raw); err != nil || holdsProof(tx) {
			return errors.Join(err, errors.New("a second proof: a block has one value"))
		}
	}
	_, err = a.Beacon.Check(ctx, m)
	return err
}

// proofs admits a proof where it belongs, the first transaction of a block, and nowhere else.
type proofs struct{ *App }

// AnteHandle implements sdk.AnteDecorator. A proof passes no other decorator: it has no
// signature, and pays no fee.
func (x proofs) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	if !holdsProof(tx) {
		return next(ctx, tx, simulate)
	}
	if simulate || ctx.ExecMode() != sdk.ExecModeFinalize || ctx.TxIndex() != 0 {
		return ctx, errorsmod.Wrap(sdkerrors.ErrUnauthorized, "the proposer of a block puts its own proof there, first: it cannot be sent")
	}
	if _, err := x.proofOf(ctx.TxBytes()); err != nil {
		return ctx, errorsmod.Wrap(sdkerrors.ErrUnauthorized, err.Error())
	}
	return ctx.WithGasMeter(storetypes.NewGasMeter(proofGas)), nil
}
