package hire

import "github.com/tally-network/tally/chain/wire"

// drawChecker draws one by stake, so that neither price nor the number of accounts makes it likelier to be drawn.
func drawChecker(all []*wire.Listed) *wire.Listed {
	total := uint64(0)
	for _, l := range all {
		total += weight(l)
	}
	at := draw64() % total
	for _, l := range all {
		if at < weight(l) {
			return l
		}
		at -= weight(l)
	}
	return all[len(all)-1]
}

func weight(l *wire.Listed) uint64 { return 1 + min(l.Free, 1<<40) }
