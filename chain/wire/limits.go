package wire

// Limits on listings of peers.
const (
	MaxAddrs = 8
	MaxAddr  = 256               // bytes
	MaxPrice = 1_000_000_000_000 // utally per GFLOP or GB
)

// MaxFeeBps is the greatest fee of an offer, in 1/10000: as much as the providers' pay.
const MaxFeeBps = 10_000
