// Package tuning is the table of constants that trade one cost for another in engine/cpu.
// None of them changes a bit, and no test may depend on one.
//
// Each stands with its unit, what it trades, and what was measured: the speed with half of
// it and with twice as much, relative to that with the value in the table. Below 1 is slower.
// A figure is the mean of the benchmarks that are named, each the best of many short rounds
// on one thread. Times are of the processor, not of the clock. The machine was shared, with
// two cores of an AMD EPYC: AVX2, no AVX-512, 32 KB of L1 and 512 KB of L2. Up to five
// hundredths are noise. To measure a constant again, see "Change a blocking parameter" in
// CONTRIBUTING.md.
package tuning

// Block sizes of a contraction. Several threads need blocks to share; large ones pack less.
const (
	// MaxMC: rows of a block. Trades packing B again for other rows against panels of A in L2. Measured: half 1.00, twice 1.01; products from 512³
	MaxMC = 1024

	// MaxNC: columns of a block. Trades packing A again for other columns against panels of B in L3. Measured: half 1.00, twice 1.00; products from 512³
	MaxNC = 3072

	// MaxKC: words of a panel packed at a time, a divisor of tensor.KBlock. Trades loading accumulators again against a panel in L1. Measured: half 0.95, twice 1.00; products from 512³
	MaxKC = 1024

	// MaxAccumulators: elements of a block that is not computed in the output. Trades smaller blocks against half of L2. Measured: half 1.00, twice 1.00; convolutions
	MaxAccumulators = 1 << 17

	// MaxBStrip: elements of B that one row of tiles reads before the next row does. Trades calls of micro-kernels against a strip in L1 and L2. Measured: half 0.98, twice 0.99; products from 512³
	MaxBStrip = 1 << 15

	// MaxPackRows: rows of A packed at a time. Trades reading strips of B again against panels of A in L2. Measured: half 0.97, twice 0.99; products from 512³
	MaxPackRows = 192

	// PackTerms: terms of contiguous rows that are packed for all tiles before the next ones. Trades lines of panels that are written in part against lines read again for every tile. Measured: half 0.95, twice 1.01; gradients of weights of 256 to 1024 rows, AVX-512
	PackTerms = 8

	// EpilogueElements: elements of a block that are computed before an epilogue takes them. Trades reading strips of B again against elements in L1 and L2. Measured: half 1.00, twice 0.96; products of 2048 rows with 256 terms and their epilogues, AVX-512
	EpilogueElements = 1 << 14

	// MaxEpilogueB: elements of B for which that is done. Trades the same, for these stay in L2. Measured: 1 << 18, the greatest of a GPT's step, gains 0.05 of it; more was not tried
	MaxEpilogueB = 1 << 18

	// MinBlockWork: multiply-adds of a block that is split off. Trades packing against work for another thread. Measured: half 1.02, twice 0.99; products from 512³
	MinBlockWork = 1 << 18

	// MinBlocks: blocks that need no more splitting. Trades packing against an even load of threads. Measured: half 1.00, twice 1.00; convolutions and their gradients
	MinBlocks = 8

	// FewBlocks: the same if neighbours share lines of a padded input. Trades filling lines twice against an even load. Measured: half 1.01, twice 0.99; convolutions
	FewBlocks = 4

	// FineBlocks: the same of blocks that pack no more, taken together, than one would. Trades starting blocks against an even load. Measured: half 0.98, twice 0.98; products from 512³
	FineBlocks = 32

	// InputBlocks: the same of blocks that share a padded input and pack nothing. Trades starting blocks against an even load. Measured: half 0.98, twice 1.00; convolutions
	InputBlocks = 16
)

// Operands of a contraction in place, or packed.
const (
	// MaxInPlaceTiles: tiles that share too little of an operand to pack it. Trades packing against reading lines far apart. Measured: half 0.96, twice 0.99; products to 1024³, batched
	MaxInPlaceTiles = 4

	// MaxBInL2: elements of B that stay in L2 beside many rows. Trades splitting columns against splitting rows. Measured: half 1.00, twice 0.98; products to 1024³, batched
	MaxBInL2 = 1 << 17

	// MaxColsPerRow: columns for each row beside which all of them are best kept. Trades the same. Measured: half 1.00, twice 0.99; products to 1024³, batched
	MaxColsPerRow = 4

	// MaxIndirection: terms whose indirection table is made once. Trades memory, 8 bytes each, against making it in every block. Measured: half 1.02, twice 1.00; convolutions and their gradients
	MaxIndirection = 1 << 16

	// MaxPrefetchTiles: tiles of rows that take less time than reading packed B from memory. Trades fetching what is in the cache against waiting for it. Measured: of AVX-512 alone, which has such micro-kernels; on the machine of docs/performance.md
	MaxPrefetchTiles = 8

	// CrowdedBytes: a step between terms whose multiples share few sets of the cache. Trades packing B against reading it in place. Measured: half 0.99, twice 0.99; products to 1024³
	CrowdedBytes = 512

	// CrowdedTerms: terms that find room even in few sets. Trades the same. Measured: packing so few, where half applies, 0.84 and 0.92; products of 64 and 96 by 12544 with 16 terms, AVX-512, Zen 4
	CrowdedTerms = 32

	// NearElements: elements of accumulators that an epilogue takes together. Trades starting it against accumulators in L1. Measured: with others, as docs/performance.md tells, and not alone
	NearElements = 4096
)

// Contractions of few rows, where reading B takes the time.
const (
	// GEMVRows: rows for which that is all the time. Trades wide blocks against packing what is soon read. Measured: half 0.99, twice 1.02; 1 to 8 rows
	GEMVRows = 2

	// AxpyNC: columns swept side by side in axpy form. Trades accumulators in L1 against long streams of B. Measured: half 0.98, twice 1.04; 1 to 8 rows
	AxpyNC = 2048

	// StreamKC: terms of a large B in place that tiles of few rows take before the next columns, a divisor of tensor.KBlock. Trades loading accumulators again against rows of B that are read side by side. Measured: half 0.88, twice 0.82; 16 rows by 4096² with AVX-512, by the clock
	StreamKC = 32

	// DotKC: terms taken column by column in dot form, a divisor of tensor.KBlock. Trades loading accumulators again against values of A in L1. Measured: half 1.00; 1 to 8 rows
	DotKC = 4096

	// MaxDotTiles: tiles of rows for which dot form is worth its transposition. Trades transposing in registers, for each tile, against packing. Measured: half 1.02, twice 0.99; 1 to 8 rows
	MaxDotTiles = 2
)

// Memory of packed weights, and others that are read once and again.
const (
	// LeastHuge: bytes of a buffer for which huge pages are asked that it shares with its neighbours. Trades memory that nobody needs against misses of the
	// TLB. Measured: reading 98 MB of weights, half a megabyte each, 7.5 GB/s without and 16 with, one thread, by the clock
	LeastHuge = 32 << 10
)

// Contractions that read blocks of quantised weights.
const (
	// BlockRows: rows for which blocks are unpacked tile by tile. Trades panels in L1 against rows of A in L2 that each tile reads again. Measured: eight times as much 1.01 at 256 rows and 0.88 at 512; a sixteenth 0.57 at 16 rows and 0.67 at 128; Q4_1 of 1536 by 768, AVX-512, by the clock
	BlockRows = 128

	// BlockKC: terms of a tile that is unpacked, a divisor of tensor.KBlock. Trades starting micro-kernels against a panel in L1. Measured: half 0.91 and twice 0.84 at one row, 0.95 and 0.99 at 128; the same
	BlockKC = 128

	// DirectColumns: columns that all rows take before the next ones, a multiple of asm.PanelColumns. Trades chains that hide the latency of one another against an even load. Measured: half 0.69 at one row and 1.04 at 8, twice 1.08 and 1.07; the same, on a machine that others used
	DirectColumns = 64
)

// Products of which each row has a band of the terms.
const (
	// BandedMC: rows of a block. Trades reading B again against an even load of threads. Measured: no difference that stood out of the noise of a fifth; 128 queries of 2048 keys, AVX-512
	BandedMC = 128

	// BandedKC: terms taken together, a divisor of tensor.KBlock. Trades loading accumulators again against terms of B in L2. Measured: the same
	BandedKC = 1024

	// CachedKeys: keys of a cache that are scaled together, a multiple of asm.DotColumns. Trades calls of kernels against keys in L1. Measured: half 0.78, twice 0.76; 256 keys of three heads of 64, AVX-512, by the clock
	CachedKeys = 64
)

// Implicit GEMM.
const (
	// MaxInput: elements of a padded input of columns. Trades filling lines twice against L2. Measured: half 1.01, twice 0.96; convolutions
	MaxInput = 1 << 18

	// MaxLineInput: the same, if it is read by the line of rows. Trades packing against L3. Measured: half 1.00, twice 1.00; convolutions
	MaxLineInput = 1 << 20

	// MaxPlaneInput: the same, if lines run along its planes. Trades packing against L3. Measured: half 1.01, twice 0.99; gradients
	MaxPlaneInput = 1 << 22

	// MinPhaseColumns: columns of a line for which an axis is split into the phases of its stride. Trades filling against gathering. Measured: half 0.93, twice 0.95; convolutions
	MinPhaseColumns = 64

	// MinLineRows: rows of a line that tiles read in place. Trades tiles of few rows against packing. Measured: half 1.03, twice 0.98; convolutions and their gradients
	MinLineRows = 3

	// MaxLineRows: rows of a line that waste little if they are columns instead. Trades transposing C against columns between lines. Measured: half 1.01, twice 1.00; convolutions
	MaxLineRows = 32

	// ManyTerms: terms beside which transposing C takes no time. Trades the same. Measured: half 1.02, twice 1.02; convolutions
	ManyTerms = 512

	// MinLineColumns: columns beside rows that are read by the line. Trades vectors that are not full against packing. Measured: half 1.03, twice 0.97; convolutions and their gradients
	MinLineColumns = 32

	// MaxPhases: phases along one axis. Trades blocks of few terms against terms that are padding. Measured: half 1.03, twice 0.94; gradients
	MaxPhases = 4
)

// Costs in multiply-adds for each term, by which a contraction chooses its operands.
const (
	// ColumnPackCost: multiply-adds of packing a column. Trades packing columns against computing what stands for no output. Measured: half 0.98, twice 1.01; convolutions and their gradients
	ColumnPackCost = 12

	// RowPackCost: multiply-adds of packing a row. Trades the same for rows. Measured: half 0.99, twice 1.03; convolutions and their gradients
	RowPackCost = 8

	// ScatterCost: multiply-adds of storing an element alone. Trades storing by columns against packing the other operand. Measured: half 1.04, twice 0.99; convolutions and their gradients
	ScatterCost = 128

	// TransposeCost: multiply-adds of storing an element transposed with its neighbours. Trades the same. Measured: half 1.02, twice 1.05; convolutions and their gradients
	TransposeCost = 8

	// SegmentCost: multiply-adds of gathering a segment of what is no matrix. Trades the choice of operands. Measured: half 0.98, twice 1.00; convolutions and their gradients
	SegmentCost = 128

	// WordCost: multiply-adds of gathering a word of it. Trades the same. Measured: half 1.06, twice 1.01; convolutions and their gradients
	WordCost = 8

	// GatherTransposeCost: multiply-adds of transposing a gathered word. Trades the same. Measured: half 0.99, twice 1.00; convolutions and their gradients
	GatherTransposeCost = 16
)

// Elementwise loops, folds, windows.
const (
	// Chunk: elements that loops take at a time, a multiple of tensor.Lanes. Trades starting loops against operands and result in L1. Measured: half 0.93, twice 1.04; folds, copies and maps
	Chunk = 1024

	// CopyBlock: lines of a transposing copy that are written together. Trades reads far apart against lines in L1. Measured: half 1.09, twice 1.00; transposing copies
	CopyBlock = 32

	// TransposedRows: rows across lines of memory that a load of a fusion takes together. Trades reading lines again against scratch memory. Measured: half 0.90, twice 0.93; elementwise tasks of ConvNeXt-T, AVX-512, Zen 4
	TransposedRows = 16

	// MaxTransposed: elements of such loads of one fusion. Trades the same against L2. Measured: half 0.95, twice 0.95; the same
	MaxTransposed = 1 << 17

	// RowTerms: least terms for which a fold along rows is worth its start. Trades starting a row against folding columns. Measured: half 1.12, twice 1.02; folds
	RowTerms = 32

	// MinPeriod: elements for which one scalar is worth a row of a chain of its own. Trades starting rows against broadcasting to scratch. Measured: with others, as docs/performance.md tells, and not alone
	MinPeriod = 16

	// MaxTaps: terms of a window. Trades a pass for each against the loops of other folds. Measured: half 0.99, twice 1.23; a depthwise convolution
	MaxTaps = 64

	// MaxWindowBuffer: elements of a window buffer, unless a plane has more. Trades starting blocks against L1. Measured: half 1.00, twice 1.04; a depthwise convolution
	MaxWindowBuffer = 6 << 10

	// MaxChannelBuffer: elements of the turned input of a depthwise convolution, unless a line has more. Trades lines that two blocks turn against L2, and blocks for threads. Measured: half 0.99, twice 1.03; eleven depthwise convolutions of mobile nets, AVX-512 and AVX2
	MaxChannelBuffer = 24 << 10

	// MaxTurnedLine: elements of a line that is turned with all others, and then copied. Trades a copy against calls for each line. Measured: half 0.98, twice 0.98; the same
	MaxTurnedLine = 24

	// MaxWindowWaste: elements of a window buffer for one of the output. Trades copying against the loops of other folds. Measured: half 0.49, twice 0.97; a depthwise convolution
	MaxWindowWaste = 3
)

// Plans.
const (
	// MaxMembers: nodes of a fusion. Trades loads and stores between fusions against its values in L2. Measured: with others, as docs/performance.md tells, and not alone
	MaxMembers = 64

	// MaxRowElements: elements of a row of a fusion. Trades the same against rows for threads to share. Measured: with others, as docs/performance.md tells, and not alone
	MaxRowElements = 4096

	// FusionWindow: groups that are looked at for one that reads the same. Trades the time of planning against loads. Measured: with others, as docs/performance.md tells, and not alone
	FusionWindow = 16

	// MaxConcatLeaves: nodes that compute the parts of an elided join. Trades a copy of joins of more parts against planning, which goes through all of them for each reader. Measured: planning a tree of 4,096 parts that as many nodes read takes 0.1 s, and 28 s without a limit; others used the cores
	MaxConcatLeaves = 256

	// MaxRecomputed: nodes in a row that are computed again for one load. Trades arithmetic against memory traffic. Measured: with others, as docs/performance.md tells, and not alone
	MaxRecomputed = 4

	// MaxPeriod: groups of a repeated step. Trades the time of planning against longer steps that are found. Measured: with others, as docs/performance.md tells, and not alone
	MaxPeriod = 64

	// MinSteps: steps that are worth a loop. Trades kernels for each step against one that all share. Measured: with others, as docs/performance.md tells, and not alone
	MinSteps = 3

	// MaxStepNs: nanoseconds of a step, as estimated, that one thread computes sooner than two. Trades waits for threads against their work. Measured: with others, as docs/performance.md tells, and not alone
	MaxStepNs = 20_000

	// StepRows: rows of a product in a step. Trades what package gemm prepares against tiles of A in place. Measured: with others, as docs/performance.md tells, and not alone
	StepRows = 16

	// StepBlockWork: multiply-adds of a block of such a product. Trades starting blocks against an even load. Measured: with others, as docs/performance.md tells, and not alone
	StepBlockWork = 1 << 15

	// FLOPsPerNs: operations that a thread is supposed to do in a nanosecond. Trades a wait for another thread against its work. Measured: with others, as docs/performance.md tells, and not alone
	FLOPsPerNs = 20

	// BytesPerNs: bytes that it is supposed to move. Trades the same. Measured: with others, as docs/performance.md tells, and not alone
	BytesPerNs = 40

	// GrainNs: nanoseconds of work, as estimated, that are worth a thread. Trades the same. Measured: with others, as docs/performance.md tells, and not alone
	GrainNs = 5_000
)

// Runs: memory and threads.
const (
	// SpinLimit: looks for work before a thread sleeps, some hundred microseconds. Trades another program's time against that of waking. Measured: about 300 µs here; the wait for another thread’s last block, or for a task that has but one, is no longer as a rule
	SpinLimit = 40_000

	// IdlePools: pools of threads that an executor keeps for runs at once. Trades sleeping goroutines against starting them, some microseconds for each run. Measured: with others, as docs/performance.md tells, and not alone
	IdlePools = 8

	// CollectBytes: bytes of a new state before which garbage is collected. Trades milliseconds against the last state's memory. Measured: a collection takes about 1 ms beside 8 ms of making 16 MB of state
	CollectBytes = 16 << 20

	// IdleWeights: bytes of packed weights that no plan holds. Trades memory against packing them again for the next plan. Measured: packing takes 1 s for each GB (BenchmarkPackWeight)
	IdleWeights = 256 << 20

	// MinCollected: bytes of constants that packed ones have replaced, before they are collected. Trades milliseconds of collections against memory. Measured: peak of 1,007 MB of weights 1.07 (ADR 28); packing 8 MB takes 8 ms, a collection 1 to 3
	MinCollected = 8 << 20

	// CollectedShare: the same as a share of all constants: one in so many. Trades the same. Measured: peak of 1,007 MB of weights 1.07 (ADR 28)
	CollectedShare = 40

	// TileGrain: tiles of a state that are worth a thread that hashes them. Trades starting a thread against an even load. Measured: 64 tiles take 70 µs with AVX-512, 130 µs with the instructions for SHA-256 (BenchmarkRoot)
	TileGrain = 64

	// NodeGrain: leaves of a tree that are worth the same, a power of two. Trades the same. Measured: the nodes over 1,024 take 40 µs with AVX-512 (BenchmarkDigest, x16/64)
	NodeGrain = 1024

	// YieldBytes: what is hashed between two chances for others to run. Trades calls of the scheduler against a computation beside, whose threads wait for one another. Measured: 64 KB take some 20 µs; with others, as docs/performance.md tells, and not alone
	YieldBytes = 64 << 10
)
