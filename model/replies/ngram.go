package replies

// Ends of a sequence that are looked up, in tokens: one token says too little, and longer ends find no better places. It looks back so far at most.
const (
	minNgram = 2
	maxNgram = 16
	lookBack = 1 << 15
)

// lookUp returns where the longest end of tokens occurred before, as the index of what followed; −1: nowhere. Of several places it is the last.
func lookUp(tokens []int32) (next int) {
	next = -1
	end := len(tokens) - 1
	for i, longest := end-1, minNgram-1; i >= max(0, end-lookBack) && longest < maxNgram; i-- {
		if tokens[i] != tokens[end] {
			continue
		}
		n := 1
		for n <= i && n < maxNgram && tokens[i-n] == tokens[end-n] {
			n++
		}
		if n > longest {
			longest, next = n, i+1
		}
	}
	return next
}

// follow returns n tokens as they stand from a place on. What reaches the end goes on with itself, so a period repeats.
func follow(tokens []int32, from, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		if at := from + i; at < len(tokens) {
			out[i] = tokens[at]
		} else {
			out[i] = out[at-len(tokens)]
		}
	}
	return out
}
