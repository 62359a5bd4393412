package wire

import "github.com/tally-network/tally/core/canon"

// SettlementStore names the store that holds settlements: that of x/work.
const SettlementStore = "work"

// SettlementPrefix is the first byte of a settlement's key there.
const SettlementPrefix = 5

// SettlementKey returns the key of an order's settlement in SettlementStore, under which
// outsiders prove it. The value is the canonical encoding of a job.Settlement.
func SettlementKey(order canon.Hash) []byte {
	return append([]byte{SettlementPrefix}, order[:]...)
}
