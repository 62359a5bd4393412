// Package nettest runs whole networks for tests: real consensus, real peers and
// real roles in one process, with an order so small that a scenario takes
// seconds.
//
// Call [Start], then [Network.Post] and [Network.Settle]:
//
//	n := nettest.Start(t, nettest.Options{Bend: …})
//	l := n.Settle(n.Post(nil))
//
// Any role can be made to compute wrongly, to wait, to stop and to begin again at a step of the
// test's choosing. So a scenario does not depend on who is fast. Settle follows an order to its
// end and checks what must hold whatever the roles did. The supply is intact after every block.
// The lease's ledger and the accounts' balances tell the same story. The final root is the one
// that the order alone determines, which is computed here without a network.
package nettest
