// Package train turns a consumer's forward graph into training: the graph of
// one step, the state it works on, and the order in which records are read.
//
// A step graph is plain ONNX. Its inputs are the slots of the state, by name,
// and batch, int32 [batch, words]: records whose fields ([record.Fields]) the recipe names. Its outputs are the new values
// of the slots, in the same order:
//
//	p/<name>              a parameter: a float32 initializer of the consumer's
//	                      graph that no pattern freezes and a gradient reaches
//	m/<name>, v/<name>    its moments, if the optimizer has them
//	r/<name>              a running statistic of BatchNormalization
//	power/beta1, …        running products of the optimizer's decay rates
//	loss                  the loss of the last batch, float32
//	step                  the number of steps done, int64
//
// Call [New]: it makes the [Training] of a graph, a recipe and records. [Merge] makes the
// program that ends a round. [Training.Evaluate] gives the programs that score a state. Losses are the table in
// loss.go, metrics the one in metric.go. A graph may hold a teacher beside what is trained (distillation.go).
//
// Everything that a run computes follows from the graph, the records, the seed
// of their order and the recipe.
//
// # Invariants
//
// Gradients accumulate in one order ([Gradients]). A merge takes the mean over
// shards in shard order ([Merge]). Each epoch of a shard reads each of its records
// once ([record.Order]).
//
// # Sources
//
// AdamW: Loshchilov and Hutter, arXiv 1711.05101. Averaging of local steps:
// McMahan et al., arXiv 1602.05629. Preferences: Rafailov et al., arXiv 2305.18290.
// Distillation: Hinton et al., arXiv 1503.02531. Permutation by a Feistel network with cycle
// walking: Black and Rogaway, CT-RSA 2002.
package train
