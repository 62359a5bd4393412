package auction

import "math/bits"

// decay has ⌊2⁶³·exp(−2^i/2000)⌋. TestDecay checks each against its series.
var decay = [17]uint64{
	0x7fef9ebe9114b743, 0x7fdf3f95bc6a76e9, 0x7fbe878ccf35db8f, 0x7f7d309664c1a790, 0x7efae6db681e8f03, 0x7df7e24f5e68d732,
	0x7bf8060ffed59786, 0x78108c3e3c077cc5, 0x709f091859c54d64, 0x63171583363dbedd, 0x4cb5b970b6ac95bc, 0x2df8ce355859c533,
	0x1082d49ddd094520, 0x2213ae0b916fafc, 0x912777cbd59f7, 0xa49b779540, 0xd3af,
}

// expNeg is 2⁵²·exp(−n/2000), rounded down; at most 17 below.
func expNeg(n uint64) uint64 {
	if n >= 1<<len(decay) {
		return 0
	}
	x := uint64(1) << 63
	for i, d := range decay {
		if n>>i&1 == 1 {
			hi, lo := bits.Mul64(x, d)
			x = hi<<1 | lo>>63
		}
	}
	return x >> 11
}
