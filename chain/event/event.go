// Package event reads the chain's typed events out of block results.
//
// A module emits an event as a protobuf message; the SDK turns it into a type
// and attributes, and adds attributes of its own. [Parse] is the inverse. Call [Of] for all
// events of one type.
//
// Invariant: what a module emitted is what [Parse] returns.
//
// Source: typed events of the Cosmos SDK.
package event

import (
	"fmt"
	"strings"

	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cosmos/gogoproto/proto"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Parse returns the message that a module of ours emitted, or nil for an event
// of another kind.
func Parse(e abci.Event) (proto.Message, error) {
	if !strings.HasPrefix(e.Type, "tally.") {
		return nil, nil
	}
	own := e
	own.Attributes = nil
	for _, a := range e.Attributes {
		// The phase of the block and the message's place in its transaction.
		if a.Key != "mode" && a.Key != "msg_index" {
			own.Attributes = append(own.Attributes, a)
		}
	}
	m, err := sdk.ParseTypedEvent(own)
	if err != nil {
		return nil, fmt.Errorf("read event %.100s: %w", e.Type, err)
	}
	return m, nil
}

// Of returns the messages of type M among events, in order.
func Of[M proto.Message](events []abci.Event) ([]M, error) {
	var found []M
	for _, e := range events {
		m, err := Parse(e)
		if err != nil {
			return nil, err
		}
		if m, ok := m.(M); ok {
			found = append(found, m)
		}
	}
	return found, nil
}
