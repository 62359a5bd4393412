package sortition

import (
	"maps"
	"math"
	"slices"
)

// binomial returns the odds of j of n, for each j. It goes by logarithms from none on.
func binomial(n uint64, p float64) func(j uint64) float64 {
	log := logBinomial(n, p)
	return func(j uint64) float64 { return math.Exp(log(j)) }
}

func logBinomial(n uint64, p float64) func(j uint64) float64 {
	logs := []float64{float64(n) * math.Log1p(-p)}
	ratio := math.Log(p) - math.Log1p(-p)
	return func(j uint64) float64 {
		if j > n {
			return math.Inf(-1)
		}
		for i := uint64(len(logs)); i <= j; i++ {
			logs = append(logs, logs[i-1]+math.Log(float64(n-i+1))-math.Log(float64(i))+ratio)
		}
		return logs[j]
	}
}

// addLogs returns the logarithm of a sum.
func addLogs(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// fit returns how many sigma counts are from odds, by χ². What is expected fewer than eight times is put together.
func fit(count map[uint64]int, runs int, odds func(uint64) float64) float64 {
	var chi, seen, want, chance float64
	bins, left := 0, float64(runs)
	add := func(seen, want float64) {
		chi += (seen - want) * (seen - want) / want
		bins++
		left -= seen
	}
	for j := uint64(0); (1-chance)*float64(runs) > 16; j++ {
		seen, want, chance = seen+float64(count[j]), want+odds(j)*float64(runs), chance+odds(j)
		if want >= 8 {
			add(seen, want)
			seen, want = 0, 0
		}
	}
	if want += (1 - chance) * float64(runs); want > 1e-6 { // all that is beyond
		add(left, want)
	}
	return sigmas(chi, bins-1)
}

// fitOfTwo returns how many sigma two counts of equally many runs are apart, by χ².
func fitOfTwo(a, b map[uint64]int) float64 {
	both := maps.Clone(a)
	for j, c := range b {
		both[j] += c
	}
	var chi, x, y float64
	bins := 0
	for _, j := range slices.Sorted(maps.Keys(both)) {
		if x, y = x+float64(a[j]), y+float64(b[j]); x+y >= 16 {
			chi += (x - y) * (x - y) / (x + y)
			bins, x, y = bins+1, 0, 0
		}
	}
	return sigmas(chi, bins-1)
}

// sigmas returns how many sigma χ² is above its mean, as Wilson and Hilferty have it.
func sigmas(chi float64, freedom int) float64 {
	v := 2 / (9 * float64(freedom))
	return (math.Cbrt(chi/float64(freedom)) - (1 - v)) / math.Sqrt(v)
}
