package app

import (
	"strings"

	gogoproto "github.com/cosmos/gogoproto/proto"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	errorsmod "cosmossdk.io/errors"

	"github.com/cosmos/cosmos-sdk/client"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"
)

// maxNesting bounds how deep messages of a transaction are nested. Seven levels suffice for
// those of the chain.
const maxNesting = 16

// txConfig is the SDK's, but for transactions that nobody should decode: the SDK's decoder
// copies what an Any holds at each level, and takes thousands of levels, so a megabyte of
// them takes gigabytes. Everybody decodes before anybody has paid.
type txConfig struct {
	client.TxConfig
	types map[string]protoreflect.MessageDescriptor // that an Any may hold, by URL
}

// newTxConfig returns a txConfig for the types of a registry, to which none is added any more.
func newTxConfig(c client.TxConfig, registry codectypes.InterfaceRegistry) txConfig {
	t := txConfig{c, map[string]protoreflect.MessageDescriptor{}}
	for _, name := range registry.ListAllInterfaces() {
		for _, url := range registry.ListImplementations(name) {
			t.types[url] = messageType(url[strings.LastIndexByte(url, '/')+1:])
		}
	}
	for _, part := range txParts[1:] {
		t.types[part] = messageType(part)
	}
	return t
}

// txParts are the messages that TxRaw holds as bytes, by the number of its field.
var txParts = [...]string{1: "cosmos.tx.v1beta1.TxBody", 2: "cosmos.tx.v1beta1.AuthInfo"}

// TxDecoder returns what decodes transactions of at most MaxTx bytes, nested at most
// maxNesting deep.
func (c txConfig) TxDecoder() sdk.TxDecoder {
	decode := c.TxConfig.TxDecoder()
	return func(raw []byte) (sdk.Tx, error) {
		if len(raw) > MaxTx {
			return nil, errorsmod.Wrapf(sdkerrors.ErrTxTooLarge, "%d bytes, at most %d", len(raw), MaxTx)
		}
		if c.txTooDeep(raw) {
			return nil, errorsmod.Wrapf(sdkerrors.ErrTxDecode, "messages nested more than %d deep: send them side by side, in one body", maxNesting)
		}
		tx, err := decode(raw)
		if err == nil {
			err = whole(tx)
		}
		if err != nil {
			return nil, err
		}
		return tx, nil
	}
}

// whole returns an error unless all that the SDK asks a transaction for is there. Its ante handlers would panic, which
// is kept from the chain, and log the stack of each: twelve kilobytes, for nothing.
func whole(tx sdk.Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errorsmod.Wrapf(sdkerrors.ErrTxDecode, "auth_info is not whole: %.200v", p)
		}
	}()
	if t, ok := tx.(sdk.FeeTx); ok {
		t.GetGas()
		t.GetFee()
		t.FeePayer()
		t.FeeGranter()
	}
	t, ok := tx.(authsigning.SigVerifiableTx)
	if !ok {
		return nil
	}
	keys, err := t.GetPubKeys()
	if err != nil {
		return errorsmod.Wrap(sdkerrors.ErrInvalidPubKey, err.Error())
	}
	for _, key := range keys {
		if key != nil {
			key.Address()
		}
	}
	if _, err := t.GetSignaturesV2(); err != nil {
		return errorsmod.Wrap(sdkerrors.ErrTxDecode, err.Error())
	}
	return nil
}

// txTooDeep reports whether messages in a transaction's body or signers are nested too deep.
// What is no transaction is the decoder's to refuse.
func (c txConfig) txTooDeep(raw []byte) (deep bool) {
	eachField(raw, func(n protowire.Number, value []byte) {
		deep = deep || int(n) < len(txParts) && c.tooDeep(value, c.types[txParts[n]], maxNesting)
	})
	return deep
}

// tooDeep reports whether messages, through Any too, are nested deeper than levels. It
// copies nothing, and looks once at each field.
func (c txConfig) tooDeep(b []byte, of protoreflect.MessageDescriptor, levels int) (deep bool) {
	if of == nil || len(b) == 0 {
		return false
	}
	if levels == 0 {
		return true
	}
	var url, inside []byte
	isAny := of.FullName() == "google.protobuf.Any"
	eachField(b, func(n protowire.Number, value []byte) {
		switch f := of.Fields().ByNumber(n); {
		case deep:
		case isAny && n == 1:
			url = value
		case isAny && n == 2:
			inside = value
		case f != nil && f.Message() != nil:
			deep = c.tooDeep(value, f.Message(), levels-1)
		}
	})
	if isAny && !deep {
		deep = c.tooDeep(inside, c.types[string(url)], levels-1)
	}
	return deep
}

// eachField calls do with the fields of a message that have a length, as far as it is one.
func eachField(b []byte, do func(n protowire.Number, value []byte)) {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return
		}
		b = b[size:]
		if size = protowire.ConsumeFieldValue(n, kind, b); size < 0 {
			return
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b)
			do(n, value)
		}
		b = b[size:]
	}
}

// messageType finds a type of messages, or nil. Its time grows with the square of the name's
// length, so names are the program's own.
func messageType(name string) protoreflect.MessageDescriptor {
	d, err := gogoproto.HybridResolver.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil
	}
	m, _ := d.(protoreflect.MessageDescriptor)
	return m
}
