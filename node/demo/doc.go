// Package demo holds what the demonstration trains: a small text and a
// character-level language model for it.
package demo
