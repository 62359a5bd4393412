// Package mem holds what every kernel does with memory, and nothing about tensors'
// axes or arithmetic: typed slices over raw addresses ([Slice], [Data], [Bits]),
// buffers that grow and are used again ([Grow]), strided copies ([CopyStrided]), a
// planner that lays ranges into one arena ([Planner]), and huge pages ([HugePages]).
//
// Invariants: nothing here allocates but Grow; nothing checks more than the bounds of
// the slices it is given. Positions and strides count elements; what counts bytes
// says so.
//
// Memory that is read once arrives faster from huge pages (madvise(2), transparent
// huge pages): fewer addresses are translated, and the prefetcher does not stop every
// 4 KiB.
package mem
