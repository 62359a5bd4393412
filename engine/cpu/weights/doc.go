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
package weights
