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
// string, nor a list of messages of such. The SDK encodes all of an event as JSON, parses that, and
// takes five times as long.
func flat(event proto.Message) []abci.EventAttribute {
	v := reflect.ValueOf(event).Elem()
	fields := fieldsOf(v.Type())
	if fields == nil {
		return nil
	}
	out := make([]abci.EventAttribute, len(fields))
	for i, f := range fields {
		out[i] = abci.EventAttribute{Key: f.name, Value: f.text(v.Field(f.index))}
	}
	slices.SortFunc(out, func(a, b abci.EventAttribute) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// text returns a value of the field as JSON.
func (f *field) text(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return quoted(v.String())
	case reflect.Uint64:
		return `"` + strconv.FormatUint(v.Uint(), 10) + `"`
	case reflect.Int64:
		return `"` + strconv.FormatInt(v.Int(), 10) + `"`
	case reflect.Uint32:
		return strconv.FormatUint(v.Uint(), 10)
	}
	list := make([]string, v.Len())
	for i := range list {
		members := make([]string, len(f.of))
		for j, m := range f.of {
			members[j] = `"` + m.name + `":` + m.text(v.Index(i).Field(m.index))
		}
		list[i] = "{" + strings.Join(members, ",") + "}"
	}
	return "[" + strings.Join(list, ",") + "]"
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
	of    []field // those of its messages, if it is a list of messages
}

// knownFields are those of each type of event.
var knownFields sync.Map // sync: trials of transactions run beside blocks

// fieldsOf returns the fields of an event as they are declared, nil if some are not of the kinds that
// flat knows.
func fieldsOf(t reflect.Type) []field {
	if known, ok := knownFields.Load(t); ok {
		return known.([]field)
	}
	out := readFields(t, true)
	knownFields.Store(t, out)
	return out
}

// readFields reads the fields of a message, which may have lists of messages that have none.
func readFields(t reflect.Type, lists bool) (out []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		_, name, _ := strings.Cut(f.Tag.Get("protobuf"), ",name=")
		name, _, _ = strings.Cut(name, ",")
		known := field{name: name, index: i}
		switch f.Type {
		case reflect.TypeFor[string](), reflect.TypeFor[uint64](), reflect.TypeFor[int64](), reflect.TypeFor[uint32]():
		default:
			if lists && f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
				known.of = readFields(f.Type.Elem(), false)
			}
			if known.of == nil {
				return nil
			}
		}
		out = append(out, known)
	}
	return out
}

// Charge takes gas for what is computed, beside that for reading and writing.
func Charge(ctx context.Context, gas uint64, what string) {
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(gas, what)
}
