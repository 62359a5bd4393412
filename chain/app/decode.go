package app

import (
	gogoproto "github.com/cosmos/gogoproto/proto"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	errorsmod "cosmossdk.io/errors"

	"github.com/cosmos/cosmos-sdk/client"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
)

// maxNesting bounds the messages of a transaction that lie in one another. Those of the
// chain have seven at most.
const maxNesting = 16

// txConfig is the SDK's, but for transactions that nobody should decode: the SDK's decoder
// copies what an Any holds at each level, and takes thousands of levels, so a megabyte of
// them takes gigabytes. Everybody decodes before anybody has paid.
type txConfig struct{ client.TxConfig }

// TxDecoder returns what decodes transactions of at most MaxTx bytes, and of few messages
// in one another.
func (c txConfig) TxDecoder() sdk.TxDecoder {
	decode := c.TxConfig.TxDecoder()
	return func(raw []byte) (sdk.Tx, error) {
		if len(raw) > MaxTx {
			return nil, errorsmod.Wrapf(sdkerrors.ErrTxTooLarge, "%d bytes, at most %d", len(raw), MaxTx)
		}
		if txTooDeep(raw) {
			return nil, errorsmod.Wrapf(sdkerrors.ErrTxDecode, "more than %d messages in one another: none of the chain has so many", maxNesting)
		}
		return decode(raw)
	}
}

// txTooDeep reports whether a transaction's body or signers hold messages that lie too deep
// in one another. What is no transaction is the decoder's to refuse.
func txTooDeep(raw []byte) bool {
	parts := map[protowire.Number]protoreflect.Name{1: "TxBody", 2: "AuthInfo"} // of TxRaw
	deep := false
	eachField(raw, func(n protowire.Number, value []byte) {
		if name, ok := parts[n]; ok {
			deep = deep || tooDeep(value, messageType(protoreflect.FullName("cosmos.tx.v1beta1").Append(name)), maxNesting)
		}
	})
	return deep
}

// tooDeep reports whether the messages within one, those in Any among them, lie more than
// so many levels deep. It takes no memory for them, and looks once at each field.
func tooDeep(b []byte, of protoreflect.MessageDescriptor, levels int) (deep bool) {
	if of == nil || len(b) == 0 {
		return false
	}
	if levels == 0 {
		return true
	}
	var url string
	var inside []byte
	isAny := of.FullName() == "google.protobuf.Any"
	eachField(b, func(n protowire.Number, value []byte) {
		switch f := of.Fields().ByNumber(n); {
		case deep:
		case isAny && n == 1:
			url = string(value)
		case isAny && n == 2:
			inside = value
		case f != nil && f.Message() != nil:
			deep = tooDeep(value, f.Message(), levels-1)
		}
	})
	if isAny && !deep {
		deep = tooDeep(inside, messageType(protoreflect.FullName(nameOf(url))), levels-1)
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

// nameOf returns the name of a message's type in a URL.
func nameOf(url string) string {
	for i := len(url) - 1; i >= 0; i-- {
		if url[i] == '/' {
			return url[i+1:]
		}
	}
	return url
}

// messageType finds a type of messages, or nil.
func messageType(name protoreflect.FullName) protoreflect.MessageDescriptor {
	d, err := gogoproto.HybridResolver.FindDescriptorByName(name)
	if err != nil {
		return nil
	}
	m, _ := d.(protoreflect.MessageDescriptor)
	return m
}
