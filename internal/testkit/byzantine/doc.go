// Package byzantine plays a network in which a third of the power cheats in every way that messages and votes allow, all at once,
// epoch after epoch, against the real application.
//
//	w := byzantine.Begin(t, byzantine.Small)
//	w.Play()             // all its epochs; what must never be fails the test
//	t.Log(w.Report())    // what each attack tried, and what it has earned
//
// Accounts with power are honest providers, who delegate it or only compute; honest members with bonds; and the adversary's:
// teams of members and of accounts that delegate to them, one team for each row of [Attacks]. Transactions are signed, and
// pass the ante handler. Votes, turns and evidence are CometBFT's own (comet.go). What work is worth is credited through the keeper
// of x/power, but for a few real orders (orders.go).
//
// What must never be (check.go): a block that fails, a set that CometBFT refuses, a broken invariant; honest money, power or seats
// that fall; a conviction, a sentence or a forfeit without equivocation, absence or a lost dispute; a step of more than a quarter
// of the votes; a message taken that must be refused; a profit of the adversary.
//
// Invariants: a scale determines all that happens; nothing is drawn.
package byzantine
