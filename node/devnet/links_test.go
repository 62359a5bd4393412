package devnet

import "testing"

// However many validators a network has, it stays whole without any one of them.
func TestLinksHoldANetworkTogether(t *testing.T) {
	for n := 2; n <= MaxPeers; n++ {
		for away := range n {
			first := 0
			if away == 0 {
				first = 1
			}
			reached := map[int]bool{first: true}
			for queue := []int{first}; len(queue) > 0; queue = queue[1:] {
				for i := range n {
					if i != away && !reached[i] && linked(max(i-queue[0], queue[0]-i)) {
						reached[i] = true
						queue = append(queue, i)
					}
				}
			}
			if len(reached) != n-1 {
				t.Errorf("%d validators without number %d: %d are connected", n, away, len(reached))
			}
		}
	}
}
