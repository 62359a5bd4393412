package app_test

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	abci "github.com/cometbft/cometbft/abci/types"
	"google.golang.org/protobuf/encoding/protowire"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// field is a field of a message that has a length.
func field(n protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), value)
}

// nested is an Any around an Any around …, with so many bytes in the innermost.
func nested(url string, depth, size int) []byte {
	inner := field(2, bytes.Repeat([]byte("a"), size))
	for range depth {
		inner = field(1, append(field(1, []byte(url)), field(2, inner)...))
	}
	return inner
}

func rawTx(t testing.TB, body, auth []byte) []byte {
	t.Helper()
	b, err := (&txtypes.TxRaw{BodyBytes: body, AuthInfoBytes: auth, Signatures: [][]byte{make([]byte, 64)}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	allowance = "/cosmos.feegrant.v1beta1.AllowedMsgAllowance"
	multisig  = "/cosmos.crypto.multisig.LegacyAminoPubKey"
)

// Transactions at which the SDK's ante handlers would panic are refused in few words.
func TestTransactionsThatAreNotWhole(t *testing.T) {
	a := chaintest.New(t)
	body, err := (&txtypes.TxBody{}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	key := func(url string, size int) *codectypes.Any {
		return &codectypes.Any{TypeUrl: url, Value: field(1, make([]byte, size))}
	}
	direct := &txtypes.ModeInfo{Sum: &txtypes.ModeInfo_Single_{Single: &txtypes.ModeInfo_Single{Mode: signing.SignMode_SIGN_MODE_DIRECT}}}
	fee := &txtypes.Fee{GasLimit: 1}
	for name, auth := range map[string]*txtypes.AuthInfo{
		"no fee":             {},
		"a mode of nothing":  {Fee: fee, SignerInfos: []*txtypes.SignerInfo{{ModeInfo: &txtypes.ModeInfo{}}}},
		"a short key":        {Fee: fee, SignerInfos: []*txtypes.SignerInfo{{PublicKey: key("/cosmos.crypto.secp256k1.PubKey", 3), ModeInfo: direct}}},
		"a short ed25519":    {Fee: fee, SignerInfos: []*txtypes.SignerInfo{{PublicKey: key("/cosmos.crypto.ed25519.PubKey", 3), ModeInfo: direct}}},
		"a granter of chalk": {Fee: &txtypes.Fee{GasLimit: 1, Granter: "chalk"}},
	} {
		text, err := auth.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		raw := rawTx(t, body, text)
		_, err = a.Tx.TxDecoder()(raw)
		check, other := a.CheckTx(&abci.RequestCheckTx{Tx: raw, Type: abci.CheckTxType_New})
		if err == nil || other != nil || check.Code == 0 || len(check.Log) > 500 || strings.Contains(check.Log, "goroutine") {
			t.Errorf("%s: %v, %v, %+v", name, err, other, check)
		}
	}
}

// The SDK's decoder takes memory of depth times size: 250 levels of a transaction of 4 MB
// took a gigabyte, before anything was checked or paid.
func TestNestedMessagesAreRefusedBeforeTheyAreDecoded(t *testing.T) {
	a := chaintest.New(t)
	key := append(field(1, []byte(multisig)), field(2, field(2, make([]byte, 50_000)))...)
	for range 600 { // the keys of a multisig are its field 2
		key = append(field(1, []byte(multisig)), field(2, field(2, key))...)
	}
	for name, raw := range map[string][]byte{
		"in the body":                     rawTx(t, nested(allowance, 800, 60_000), nil),
		"in a signer's key":               rawTx(t, nil, field(1, field(1, key))),
		"before what cannot be read":      rawTx(t, append(nested(allowance, 800, 60_000), 0xff), nil),
		"in an option":                    rawTx(t, field(1023, append(field(1, []byte(allowance)), field(2, nested(allowance, 800, 60_000))...)), nil),
		"longer than any transaction":     rawTx(t, nested(allowance, 1, app.MaxTx), nil),
		"longer, and in a block of 4 MiB": rawTx(t, nested(allowance, 500, 4_000_000), nil),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := a.Tx.TxDecoder()(raw)
		res, other := a.ProcessProposal(&abci.RequestProcessProposal{Height: a.LastBlockHeight() + 1, Time: a.Now(), Txs: [][]byte{raw}})
		check, third := a.CheckTx(&abci.RequestCheckTx{Tx: raw, Type: abci.CheckTxType_New})
		runtime.ReadMemStats(&after)
		if err == nil || other != nil || third != nil || res.Status != abci.ResponseProcessProposal_REJECT || check.Code == 0 {
			t.Errorf("%s: decoded (%v), %v and %v in a block, %+v and %v in the mempool", name, err, res, other, check, third)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
			t.Errorf("%s: refusing %d bytes took %d MiB", name, len(raw), took>>20)
		}
	}
}

func TestNestingOfTransactions(t *testing.T) {
	a := chaintest.New(t)
	for depth, ok := range map[int]bool{1: true, 5: true, 7: true, 8: false, 100: false} {
		// A body, and a message for each Any and what is in it: 1 + 2·depth levels.
		deep := a.TooDeep(rawTx(t, nested(allowance, depth, 10), nil))
		if deep == ok {
			t.Errorf("%d Any in one another: too deep %v", depth, deep)
		}
	}
	for name, raw := range map[string][]byte{
		"nothing": nil, "no transaction": []byte("no transaction"), "unknown types": rawTx(t, nested("/tally.None", 100, 10), nil),
		"bytes that look like messages": rawTx(t, field(2, nested(allowance, 100, 10)), nil), // a memo
	} {
		if a.TooDeep(raw) {
			t.Errorf("%s is too deep", name)
		}
	}
}

// Looking a type up by name took the square of the name's length: 14 s for one block.
func BenchmarkLongURLs(b *testing.B) {
	a := chaintest.New(b)
	raw := rawTx(b, field(1, field(1, append([]byte("/"), bytes.Repeat([]byte("."), 120_000)...))), nil)
	b.ReportAllocs()
	for b.Loop() {
		if a.TooDeep(raw) {
			b.Fatal("too deep")
		}
	}
}

// Every type that an Any may hold is known to the walk, so that it sees what the decoder
// sees.
func TestWalkKnowsAllTypes(t *testing.T) {
	a := chaintest.New(t)
	n := 0
	for _, name := range a.Registry.ListAllInterfaces() {
		for _, url := range a.Registry.ListImplementations(name) {
			if n++; !a.KnowsType(url) {
				t.Errorf("the walk does not know %s", url)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d types", n)
	}
}
