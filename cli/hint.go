package cli

import (
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"syscall"

	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/tally-network/tally/cli/lines"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/format/bundle"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/home"
)

// hints say what to do about an error; the first that fits is shown.
var hints = []struct {
	fits func(error) bool
	next string
}{
	{as[*home.BusyError], "stop that process first, or name another directory; tally order show, ls and validate, and tally query, need none of their own, and tally train, batch and order watch share one with each other"},
	{as[*engine.LargeError], "raise --memory-mb, or memory_gb in tally.yaml, as far as this machine has memory"},
	{is(errNoOffer), "change in the order what the offers above do not meet; it would wait for another until it expires"},
	{is(consume.ErrCancelled), "the same command orders it anew"},
	{is(consume.ErrUnmet), "tally order validate shows what offers, or an auction, ask now; change conditions in the order and send it again"},
	{as[*consume.PoorError], "send the account money: tally tx bank send FROM TO AMOUNTutally"},
	{as[*bundle.VersionError], "verify it with the tally that wrote it, or ask who gave it to you for one of this version"},
	{as[*client.PriceError], "name another node in tally.yaml; if the chain really asks for so much, set gas_price there to it"},
	{says("its lease was pruned at"), "tally verify checks the bundle, and tally order renew anchors it anew; an order that goes on from its final state needs no parent"},
	{as[*blobs.FetchError], "if those who kept it have let it go, a quarter of an hour after the order was settled (keep_ended), the same command with --again has it computed again"},
	{is(bundle.ErrDamaged), "fetch the bundle again: this copy was damaged or changed"},
	{is(errUnanchored), "name the validator set that you trust with --trust HASH; who runs the chain, or its explorer, can tell it; or pin a block: tally trust pin"},
	{says("trust root"), "give the hash of the validator set that you trust, of 64 hexadecimal digits, or a file as ./trust.json"},
	{says("digits, want 64"), "tally order show ID --json has the whole id of an order, from its beginning"},
	{says("by validator set"), "--trust names the validators of another time or chain, or the bundle is forged; a pinned block is followed to any time: tally trust pin"},
	{says("is no registered provider"), "tally cluster lists those that may move, and tally query provider peers --role provider all"},
	{says("there is no node to ask"), "name a home with --home, or a node: --endpoints DIR/endpoints.json of a devnet, or --rpc and --grpc"},
	{says("needs --genesis and --peers"), "give both, or name with --home one that tally devnet --create made"},
	{is(home.ErrNone), "make one with tally provide or tally watch, or name another with --home"},
	{says("no node"), "name a running network: --endpoints DIR/endpoints.json of a devnet, or --rpc and --grpc of a node"},
	{says("is in no block yet"), "ask with tally query tx HASH whether it came through, before you send it again"},
	{says("no block from"), "start the node, or correct the node in tally.yaml"},
	{says("is tally data share still running"), "ask who shares the file; what has come is kept, and the same command goes on"},
	{or(is(syscall.ECONNREFUSED), says("connection refused")), "nobody listens there: start the network, name a home of it with --home, or correct the address (--node, or node in tally.yaml)"},
	{is(syscall.ENOSPC), "free some disk space, then do the same again"},
	{is(syscall.EADDRINUSE), "another program listens there: name another address, by --listen or in tally.yaml"},
	{says("account sequence mismatch"), "wait for the next block: the account's transaction before this one is in none yet"},
	{says("passphrase attempts"), "give the passphrase that the keyring was made with"},
	{is(sdkerrors.ErrInsufficientFee), "leave out --fees and --gas-prices, so that it pays what the chain asks for, or give more: tally query block params tells the price"},
	{is(sdkerrors.ErrInsufficientFunds), "send the account money: tally tx bank send FROM TO AMOUNTutally"},
	{says("has it ever received money"), "send the account money: tally tx bank send FROM TO AMOUNTutally"},
	{says(".info: key not found"), "tally keys list shows the keys of this home; --home names another"},
	{says("chain ID required"), "name the chain with --chain-id, or a home whose tally.yaml does with --home"},
	{is(fs.ErrPermission), "become the owner of the directory, or name another"},
}

func hint(err error, usage bool) string {
	for _, h := range hints {
		if h.fits(err) {
			return h.next
		}
	}
	if usage {
		return "see tally --help, or the verb's --help"
	}
	return ""
}

// plain takes out of a message what only programs want to know.
func plain(err error) string {
	return lines.Printable(machinery.ReplaceAllString(err.Error(), ""))
}

var machinery = regexp.MustCompile(`rpc error: code = \w+ desc = |failed to execute message; message index: 0: |: (invalid request|key not found)$| \[[^\]]*\.go:\d+\]`)

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

func or(fits ...func(error) bool) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(fits, func(f func(error) bool) bool { return f(err) })
	}
}

// says is for errors of others that are texts alone.
func says(words string) func(error) bool {
	return func(err error) bool { return strings.Contains(err.Error(), words) }
}
