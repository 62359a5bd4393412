package app

import (
	"context"
	"reflect"
	"slices"
	"strings"

	abci "github.com/cometbft/cometbft/abci/types"
	gogoproto "github.com/cosmos/gogoproto/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	errorsmod "cosmossdk.io/errors"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	"github.com/cosmos/cosmos-sdk/types/query"
)

// MaxPage is the most members of a list that one answer holds. Who wants more asks
// again, with the next_key of that answer.
const MaxPage = 1_000

// maxQueryGas bounds what a query reads: the largest lease is one answer, but not a page
// of many.
const (
	maxQueryRead = 72 << 20 // bytes
	gasPerByte   = 3        // storetypes.KVGasConfig().ReadCostPerByte
	maxQueryGas  = maxQueryRead * gasPerByte
)

const (
	maxMethod    = 200    // bytes of a method's name; the longest has 70
	defaultLimit = 100    // members of a page, where a request names no limit
	maxOffset    = 10_000 // members before a page
)

// Query answers a query over ABCI: a method of gRPC, or the value of one key of a
// store. All else is refused: CometBFT's and the SDK's other paths read whole stores,
// or run transactions.
func (a *App) Query(ctx context.Context, req *abci.RequestQuery) (*abci.ResponseQuery, error) {
	switch {
	case a.GRPCQueryRouter().Route(req.Path) != nil:
		data, err := boundData(req.Path, req.Data)
		if err != nil {
			return sdkerrors.QueryResult(err, false), nil
		}
		bounded := *req
		bounded.Data = data
		r, err := a.App.Query(ctx, &bounded)
		if err == nil && outOfGas(r) {
			r = sdkerrors.QueryResult(ErrReadsTooMuch(req.Path), false)
		}
		return r, err
	case isKey(req.Path):
		return a.App.Query(ctx, req)
	}
	err := errorsmod.Wrapf(sdkerrors.ErrUnknownRequest,
		"%q is not answered: use a method of gRPC as path, as /cosmos.tx.v1beta1.Service/Simulate, or /store/NAME/key", req.Path)
	return sdkerrors.QueryResult(err, false), nil
}

// outOfGas reports whether a query ended so: the SDK tells by the text of a panic alone.
func outOfGas(r *abci.ResponseQuery) bool {
	if r.Code != sdkerrors.ErrPanic.ABCICode() {
		return false
	}
	return slices.ContainsFunc([]string{
		storetypes.GasIterNextCostFlatDesc, storetypes.GasValuePerByteDesc, storetypes.GasReadPerByteDesc, storetypes.GasReadCostFlatDesc, storetypes.GasHasDesc,
	}, func(at string) bool {
		return r.Log == errorsmod.Wrapf(sdkerrors.ErrPanic, "%v", storetypes.ErrorOutOfGas{Descriptor: at}).Error()
	})
}

// ErrReadsTooMuch is the error about a method of gRPC that would read more than a query may.
func ErrReadsTooMuch(method string) error {
	next := "ask for less at once"
	if IsPaged(method) {
		next = "ask for fewer members at once by pagination.limit (--page-limit), and for the next ones with next_key"
	}
	return errorsmod.Wrapf(sdkerrors.ErrOutOfGas, "an answer reads %d MiB at most: %s", maxQueryRead>>20, next)
}

// isKey reports whether a path is that of one key of a store.
func isKey(path string) bool {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	return len(parts) == 3 && parts[0] == "store" && parts[2] == "key"
}

// IsPaged reports whether a method of gRPC, as /service/method, answers with pages of a
// list.
func IsPaged(method string) bool { return listRequest(method) != nil }

// listRequest returns the type of the request of a method that answers with pages; nil:
// it does not.
func listRequest(method string) reflect.Type {
	service, name, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if !ok || len(method) > maxMethod { // looking a name up takes the square of its length
		return nil
	}
	d, err := gogoproto.HybridResolver.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return nil
	}
	s, ok := d.(protoreflect.ServiceDescriptor)
	if !ok {
		return nil
	}
	m := s.Methods().ByName(protoreflect.Name(name))
	if m == nil || m.Input().Fields().ByName("pagination") == nil {
		return nil
	}
	return gogoproto.MessageType(string(m.Input().FullName()))
}

// boundData returns the encoded request of a method with its page bounded.
func boundData(method string, data []byte) ([]byte, error) {
	t := listRequest(method)
	if t == nil {
		return data, nil
	}
	req := reflect.New(t.Elem()).Interface().(gogoproto.Message)
	if err := gogoproto.Unmarshal(data, req); err != nil {
		return nil, errorsmod.Wrapf(sdkerrors.ErrInvalidRequest, "read the request of %s: %v", method, err)
	}
	if err := BoundPage(req); err != nil {
		return nil, err
	}
	return gogoproto.Marshal(req)
}

// BoundPage bounds the page that a request asks for; requests without one stay as they
// are. Wallets ask for large pages and for the total of every list, so a limit is
// lowered and no total is counted: next_key says that there is more. It refuses a large
// offset, for lowering it would return another page.
func BoundPage(req any) error {
	v := reflect.ValueOf(req)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	field := v.Elem().FieldByName("Pagination")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*query.PageRequest]() {
		return nil
	}
	var page query.PageRequest
	if p := field.Interface().(*query.PageRequest); p != nil {
		page = *p
	}
	if page.Offset > maxOffset {
		return errorsmod.Wrapf(sdkerrors.ErrInvalidRequest, "offset is above %d: send the next_key of the last page as pagination.key", maxOffset)
	}
	if page.Limit == 0 { // the SDK would count
		page.Limit = defaultLimit
	}
	page.Limit, page.CountTotal = min(page.Limit, MaxPage), false
	field.Set(reflect.ValueOf(&page))
	return nil
}
