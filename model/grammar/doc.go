// Package grammar binds replies of language models to a form: a finite automaton over bytes, and with a tokenizer's vocabulary over tokens.
//
// Write a form with a [Builder], from its end to its start, and call [Builder.Build]. The [Automaton] is what a request carries. Make a
// [Vocabulary] of what a model's tokens add to a text, and bind both by [NewIndex]: the [Index] says which tokens may come in a state, and
// which state follows. [Index.Tables] are the same as numbers, which a program gathers.
//
// Invariants: an automaton has at most MaxStates states and MaxMoves moves. From every state its end can be reached. It is minimal as built, and
// its states are numbered as they are found from the start, byte by byte: one language has one automaton, and one encoding. What would be
// larger is refused after bounded work. In an index some token may come in every state that does not accept, so a reply never stands still.
//
// Sources: subset construction (Rabin and Scott, 1959), minimisation by refinement that keeps the greater part (Hopcroft, 1971), and masks
// by states as Outlines has them (Willard and Louf, 2023).
package grammar
