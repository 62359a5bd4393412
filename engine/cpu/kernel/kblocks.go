package kernel

// KBlocks are sums of finished K-blocks of some accumulators, as in a binary counter: each of twice as many K-blocks as the next.
// Between elements, begin with an empty slice of what there was.
type KBlocks [][]float32

// End puts the sums of the nth K-block away, counted from 1. The accumulators are worth nothing then.
func (k *KBlocks) End(acc []float32, n int) {
	for ; n%2 == 0; n /= 2 {
		last := len(*k) - 1
		AddTo(acc, (*k)[last])
		*k = (*k)[:last]
	}
	if len(*k) < cap(*k) {
		*k = (*k)[:len(*k)+1]
	} else {
		*k = append(*k, nil)
	}
	top := &(*k)[len(*k)-1]
	*top = append((*top)[:0], acc...)
}

// AddTo adds x to sums, as the tree of K-blocks does: x first.
func AddTo(sums, x []float32) {
	for i := range sums {
		sums[i] = x[i] + sums[i]
	}
}
