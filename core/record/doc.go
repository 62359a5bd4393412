// Package record is what training reads: records of named fields, and the order in which its steps read them.
//
// [Fields] say what lies in a record: [Fields.Pack] makes records of values, [Fields.Unpack] takes them apart, and
// [Fields.Read] writes what does so into a graph. [Order] says which records a step of a shard reads.
//
// Invariants: records are one int32 tensor, whatever they hold. An order depends on its four numbers alone, and the cost
// of one step's records is that of any other's.
//
// Source: docs/spec/programs.md; docs/adr/0072-records-of-fields.md.
package record
