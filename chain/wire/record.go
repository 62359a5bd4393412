package wire

import "github.com/tally-network/tally/core/canon"

// RecordStore names the store that holds the accumulator of all settlements: that of x/work.
const RecordStore = "work"

// AccumulatorPrefix is the first byte of the accumulator's key there, and all of it.
const AccumulatorPrefix = 20

// AccumulatorKey returns the key in RecordStore under which outsiders prove the canonical
// encoding of a canon.Accumulator, whose leaves are those of settlements.
func AccumulatorKey() []byte { return []byte{AccumulatorPrefix} }

// SettlementLeaf returns the leaf of a settlement, of which b is the canonical encoding.
func SettlementLeaf(b []byte) canon.Hash { return canon.Sum(canon.DomainSettlement, b) }
