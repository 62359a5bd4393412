// Package weights keeps packed weights: constants in the form in which kernels read them.
//
// [New] makes a [Store], which all plans of a process share. [Store.Get] returns the packed
// form of a constant, named by its [Key]: the one that is there, or what the caller packs.
// A [Packed] is what a plan holds; it stays for as long as the plan does. What no plan holds
// is idle. It stays as well, for the next plan, until its memory is wanted.
//
// With a directory, every packed weight becomes a file that other processes and later runs
// map instead of packing again.
//
// Invariants: a store takes no more than its limit, and never fails for want of memory or
// disk: it returns nothing, and the caller packs in every run. Two plans that want the same
// weight at once pack it once. A file is there whole or not at all, and its checksum is
// compared whenever it is mapped.
//
// A checksum finds damage, not malice. Whoever may write to the directory can give a file
// other bytes, with their checksum, and so change results. Who cuts a file that is mapped
// ends the process. So a directory is for users who trust each other.
package weights
