// Package steps shows of a language model what a game about a reply needs: the table of its steps, and what each of them computes.
//
// Call [New] for the [Table] of a model, which has its [dispute.Model] but for the assets, and [Table.Witness] for the account of one reply,
// which plays by [dispute.WitnessOf].
//
// Invariants: a step's program is that of [lm.Model.Column]; so a reply that model/lm has made is right here, and no other. A witness holds
// the keys and values of its sequence, what one chunk gives, and the values of one step.
//
// Source: docs/adr/0071-disputes-of-replies.md.
package steps
