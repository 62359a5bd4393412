// Package filelock keeps other processes off what a file stands for.
//
// Call [Try] on a file that is open for writing. Closing the file ends the lock.
//
// Invariant: of all processes and all open files, one at most holds the lock of a file. The kernel
// ends it with the process, however that ends, so there is no stale lock.
package filelock
