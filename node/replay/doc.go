// Package replay computes what an order asks for. A provider plays a unit for
// the first time; auditors, challengers and verifiers play the same steps again
// and must get the same bits.
//
// A Job is an order's problem made concrete: model, records and programs in
// memory, each checked against the root that the order binds it by. Nothing is
// computed from bytes that have not been checked.
package replay
