// Package archtest holds the tests of the repository's architecture: what may
// import what, what must not appear in code that machines have to agree on, and
// the form of packages and files. Every rule says why it is there.
//
// A rule is data where it can be: change the table, not the test, and say the
// reason in the table.
package archtest
