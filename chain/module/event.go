package module

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cosmos/gogoproto/proto"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Emit adds an event to those of the transaction, or of the block: the same that the SDK's
// EmitTypedEvent adds.
func Emit(ctx context.Context, event proto.Message) error {
	events := sdk.UnwrapSDKContext(ctx).EventManager()
	attributes := flat(event)
	if attributes == nil {
		return events.EmitTypedEvent(event)
	}
	events.EmitEvent(sdk.Event{Type: proto.MessageName(event), Attributes: attributes})
	return nil
}

// flat returns the attributes of an event, nil if it has a field that is neither a number nor a
// string. The SDK encodes all of an event as JSON, parses that, and takes five times as long.
func flat(event proto.Message) []abci.EventAttribute {
	v := reflect.ValueOf(event).Elem()
	fields := fieldsOf(v.Type())
	if fields == nil {
		return nil
	}
	out := make([]abci.EventAttribute, len(fields))
	for i, f := range fields {
		out[i].Key = f.name
		switch x := v.Field(f.index); x.Kind() {
		case reflect.String:
			out[i].Value = quoted(x.String())
		case reflect.Uint64:
			out[i].Value = `"` + strconv.FormatUint(x.Uint(), 10) + `"`
		case reflect.Int64:
			out[i].Value = `"` + strconv.FormatInt(x.Int(), 10) + `"`
		case reflect.Uint32:
			out[i].Value = strconv.FormatUint(x.Uint(), 10)
		}
	}
	return out
}

// quoted returns a string as JSON has it.
func quoted(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\<>&`, r) }) {
		b, _ := json.Marshal(s) // a string always can be
		return string(b)
	}
	return `"` + s + `"`
}

// field is a field of an event.
type field struct {
	name  string // in its .proto
	index int
}

// knownFields are those of each type of event.
var knownFields sync.Map // sync: trials of transactions run beside blocks

// fieldsOf returns the fields of an event by name, nil if some are not of the kinds that flat knows.
func fieldsOf(t reflect.Type) (out []field) {
	if known, ok := knownFields.Load(t); ok {
		return known.([]field)
	}
	for i := range t.NumField() {
		f := t.Field(i)
		_, name, _ := strings.Cut(f.Tag.Get("protobuf"), ",name=")
		name, _, _ = strings.Cut(name, ",")
		switch f.Type {
		case reflect.TypeFor[string](), reflect.TypeFor[uint64](), reflect.TypeFor[int64](), reflect.TypeFor[uint32]():
			out = append(out, field{name, i})
		default:
			knownFields.Store(t, []field(nil))
			return nil
		}
	}
	slices.SortFunc(out, func(a, b field) int { return cmp.Compare(a.name, b.name) })
	knownFields.Store(t, out)
	return out
}

// Charge takes gas for what is computed, beside that for reading and writing.
func Charge(ctx context.Context, gas uint64, what string) {
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(gas, what)
}
