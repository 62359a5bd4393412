// Package local puts models of this machine behind a gateway: files that people have, and what the library holds.
//
// [New] gives [Models], which opens them when they are asked for and lets go of them when nobody has asked for a while.
//
// Invariants: a model is opened once, however many ask for it at the same time. No more than Options.MaxOpen are open,
// and adapted ones besides, as Options.MaxAdapters says; those that nobody uses make room. A model in use is never closed but by [Models.Close].
//
// Source: ollama's keep_alive.
package local
