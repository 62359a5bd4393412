package canon

// A Domain separates the hashes of one kind of value from those of every
// other kind.
type Domain string

// The domains of the protocol. The strings are consensus: never reuse one.
const (
	DomainNode       Domain = "node"       // inner node of a Merkle tree: left ‖ right
	DomainTree       Domain = "tree"       // root of a Merkle tree: leaf count ‖ top
	DomainEntry      Domain = "entry"      // leaf of a keyed tree: key, value hash
	DomainTile       Domain = "tile"       // bytes of one 32×32 tile
	DomainTensor     Domain = "tensor"     // dtype, shape, root of tiles
	DomainOpcode     Domain = "opcode"     // one node of a lowered program
	DomainProgram    Domain = "program"    // a lowered program
	DomainGraph      Domain = "graph"      // canonical bytes of an ONNX-shaped graph
	DomainOrder      Domain = "order"      // a consumer's order
	DomainPool       Domain = "pool"       // parties that a lease draws from
	DomainReceipt    Domain = "receipt"    // a provider's signed claim
	DomainPeer       Domain = "peer"       // statement that binds a peer key to an account
	DomainPossession Domain = "possession" // statement by which a consensus key is shown to be an account's
	DomainFounder    Domain = "founder"    // what a founder of a chain tells of itself
	DomainAccept     Domain = "accept"     // a provider's signed acceptance of a unit
	DomainAudit      Domain = "audit"      // an auditor's salted digest
	DomainCommit     Domain = "commit"     // what a replica of a unit says before others have said it
	DomainDraw       Domain = "draw"       // input and output of pseudo-random draws
	DomainBeacon     Domain = "beacon"     // a value of the beacon
	DomainLots       Domain = "lots"       // what one draw by the beacon is made from
	DomainBatch      Domain = "batch"      // key of a batch-order permutation
	DomainBlob       Domain = "blob"       // index block of a blob of several blocks
	DomainBundle     Domain = "bundle"     // manifest of a proof bundle
	DomainRecord     Domain = "record"     // an ended lease
	DomainSettlement Domain = "settlement" // leaf of the accumulator of all settlements
	DomainInit       Domain = "init"       // initial values that follow from a name
	DomainSplit      Domain = "split"      // which records of a data set are held out
	DomainCut        Domain = "cut"        // assignment of a round's units
	DomainSeal       Domain = "seal"       // a sealed bid of an auction
	DomainProbe      Domain = "probe"      // what a probe of speed computes from
	DomainModel      Domain = "model"      // what a language model is: its weights and files
	DomainAssets     Domain = "assets"     // what a language model is beside its steps
	DomainFile       Domain = "file"       // a file of a language model that has no weights
	DomainRequest    Domain = "request"    // what a reply follows from
	DomainGrammar    Domain = "grammar"    // an automaton that a reply is bound to
	DomainStep       Domain = "step"       // a step of a language model: its program and its weights
	DomainPages      Domain = "pages"      // salted root of the pages of a sequence
	DomainSession    Domain = "session"    // terms of a session with a language model
	DomainServed     Domain = "served"     // a provider's signed claim of a reply, or of a check of one
	DomainVoucher    Domain = "voucher"    // what a consumer has paid in a session
	DomainRelease    Domain = "release"    // a provider's consent that escrow goes back
	DomainFinal      Domain = "final"      // what a session comes to, as both sides say
)
