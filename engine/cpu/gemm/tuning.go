package gemm

// What follows trades one cost for another. None of it changes a bit. The values were
// found by the benchmarks of this package on the machine of docs/performance.md; L2 is
// its second-level cache.

// Block sizes: panels stay in the caches, and several threads have blocks to share.
const (
	maxMC        = 1024    // rows of a block
	maxNC        = 3072    // columns of a block
	maxKC        = 1024    // words packed at a time; divides tensor.KBlock
	maxAcc       = 1 << 17 // accumulators of a block that is not computed in the output: half of L2
	maxBStrip    = 1 << 15 // elements of operand b that one row of tiles reads, before the next row does
	maxPackRows  = 192     // rows of operand a packed at a time
	minBlockWork = 1 << 18 // multiply-adds of a block that is split off

	minBlocks   = 8  // blocks that need no more splitting
	fewBlocks   = 4  // the same if neighbours share lines of a padded input
	fineBlocks  = 32 // the same of blocks that pack no more, taken together, than one would
	inputBlocks = 16 // the same of blocks that share a padded input and pack nothing
)

// In place or packed.
const (
	maxInPlaceTiles  = 4       // tiles that share too little of an operand to pack it
	maxBInL2         = 1 << 17 // elements of operand b that stay in L2
	maxColsPerRow    = 4       // columns for each row beside which it is best to keep all of them
	maxIndirection   = 1 << 16 // terms whose indirection table is made once
	maxPrefetchTiles = 8       // tiles of rows that take less time than reading operand b from memory
)

// Few rows: reading operand b takes the time.
const (
	gemvRows    = 2    // rows for which that is all the time
	axpyNC      = 2048 // columns read side by side in axpy form, if there are as many
	dotKC       = 4096 // terms taken column by column in dot form; divides tensor.KBlock
	maxDotTiles = 2    // tiles of rows for which dot form is worth its transposition
)

// Implicit GEMM.
const (
	maxInput        = 1 << 18 // elements of a padded input, which should stay in L2
	maxLineInput    = 1 << 20 // the same, if it is read by the line of rows
	maxPlaneInput   = 1 << 22 // the same, if lines run along its planes
	minPhaseColumns = 64      // columns of a line for which splitting an axis into phases is worth while
	minLineRows     = 3       // rows of a line that tiles read in place
	maxLineRows     = 32      // rows of a line that waste little if they are columns instead,
	manyTerms       = 512     // unless there are so many terms, beside which transposing C takes no time
	minLineColumns  = 32      // columns beside such rows
	maxPhases       = 4       // phases along one axis
)

// Costs, in multiply-adds for each term.
const (
	columnPackCost = 12  // of packing a column
	rowPackCost    = 8   // of packing a row
	scatterCost    = 128 // of storing an element alone
	transposeCost  = 8   // of storing an element transposed with its neighbours
)
