package consensus

import "sync"

// quota is what strangers may have of something, all together and each address.
type quota struct {
	max, maxOfAddress int

	mu  sync.Mutex
	of  map[string]int // what they have, by address
	all int
}

func newQuota(most, ofAddress int) *quota {
	return &quota{max: most, maxOfAddress: ofAddress, of: map[string]int{}}
}

// take gives a host n more, and reports whether there were as many left.
func (q *quota) take(host string, n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n > q.max-q.all || n > q.maxOfAddress-q.of[host] {
		return false
	}
	q.all += n
	q.of[host] += n
	return true
}

// give takes n back from a host.
func (q *quota) give(host string, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all -= n
	if q.of[host] -= n; q.of[host] == 0 {
		delete(q.of, host)
	}
}
