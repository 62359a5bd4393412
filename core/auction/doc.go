// Package auction clears a combinatorial double auction: tasks that each want several kinds of resource, all or
// nothing, meet providers that sell units of them.
//
// Begin with [NewBook], which checks what is bid. [Clear] clears a book by one [Measure], [Search] looks for a good one,
// and [Fallback] is what happens if nobody has. Each returns an [Outcome] and its [Certificate], which a [Check] checks in
// slices, in linear time. [Params] choose among the rules by which prices are made.
//
// Tasks come by density, and each takes the cheapest units that are left, if it can pay for all that it demands. What is
// left of a kind is then always the end of one list. So what a task's units cost follows from two places in that list,
// whoever has won before. This is why clearing takes O((m+n)·log n) steps for each kind, and checking O(m+n).
//
// Invariants: the result follows from the book, the rules and the measure alone. Nothing is sold that is not there. Nobody
// pays above its bid or earns below its ask, and payments cover earnings, except for bids under [Literal]. Each measure has
// one certificate that is accepted. No number overflows, within the limits that NewBook checks.
//
// Sources: Distribute.AI, §4, with its defects mended; Lehmann, O'Callaghan and Shoham (2002) for greedy rules with critical
// values; McAfee (1992); Segal-Halevi, Hassidim and Aumann (2016) for SBBA; McSherry and Talwar (2007) for the exponential
// mechanism. docs/spec/auction.md has the formulas and what differs.
package auction
