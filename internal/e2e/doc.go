// Package e2e holds end-to-end tests: whole networks in this process (nettest), with real
// chains, peers and stores, in which roles do their work or fail in it, and are killed.
//
// What one role decides from a lease is tested beside its code, in node; what a chain
// does, in internal/testkit/worktest. Here is only what takes several roles to show.
package e2e
