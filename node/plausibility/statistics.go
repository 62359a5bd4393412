package plausibility

import (
	"math"
	"slices"
)

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// upper is the probability that a standard normal number is above z; quantile is
// its inverse.
func upper(z float64) float64    { return math.Erfc(z/math.Sqrt2) / 2 }
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfcinv(2*p) }

// moments returns mean and standard deviation.
func moments(v []float32) (mean, deviation float64) {
	for _, x := range v {
		mean += float64(x)
	}
	mean /= float64(max(len(v), 1))
	for _, x := range v {
		deviation += (float64(x) - mean) * (float64(x) - mean)
	}
	return mean, math.Sqrt(deviation / float64(max(len(v), 1)))
}

func sorted(v []float32) []float32 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v
}

func sortedFloats(v []float64) []float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v
}

// between is Wasserstein's distance W1 of two sorted samples of one size.
func between(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += math.Abs(float64(a[i]) - float64(b[i]))
	}
	return sum / float64(len(a))
}

// fit is the least Kolmogorov–Smirnov distance of v from a normal, a uniform and
// a two-humped distribution of its mean and deviation. The last is the mixture
// that MatrixAI requires: humps of deviation s at ±2s.
func fit(v []float32) float64 {
	mean, deviation := moments(v)
	v = sorted(v)
	best := 1.0
	for _, cdf := range []func(x float64) float64{
		func(x float64) float64 { return upper(-x) },
		func(x float64) float64 { return min(max(0.5+x/math.Sqrt(12), 0), 1) },
		func(x float64) float64 {
			x *= math.Sqrt(5) // in deviations of a hump
			return (upper(-(x - 2)) + upper(-(x + 2))) / 2
		},
	} {
		worst := 0.0
		for i, x := range v {
			f, n := cdf((float64(x)-mean)/deviation), float64(len(v))
			worst = max(worst, f-float64(i)/n, float64(i+1)/n-f)
		}
		best = min(best, worst)
	}
	return best
}

// kolmogorov is the probability that √n times the distance of a sample from its
// own distribution is above x.
func kolmogorov(x float64) float64 {
	if x < 0.2 {
		return 1
	}
	sum := 0.0
	for k := 1.0; k <= 20; k++ {
		sum += sign(math.Mod(k, 2)-0.5) * math.Exp(-2*k*k*x*x)
	}
	return min(max(2*sum, 0), 1)
}

// leading is the share of variance in the first principal component of a matrix
// whose columns have been centred, by power iteration.
func leading(v []float32, rows, cols int) float64 {
	mean := make([]float64, cols)
	for i, x := range v {
		mean[i%cols] += float64(x) / float64(rows)
	}
	at := func(i, j int) float64 { return float64(v[i*cols+j]) - mean[j] }
	total := 0.0
	for i := range rows {
		for j := range cols {
			total += at(i, j) * at(i, j)
		}
	}
	x := make([]float64, cols)
	for j := range x {
		x[j] = math.Cos(float64(j*j + 1)) // no direction in particular
	}
	value := 0.0
	for range 60 {
		norm := 0.0
		for _, a := range x {
			norm += a * a
		}
		norm = math.Sqrt(norm)
		if norm == 0 || total == 0 {
			return 0
		}
		next := make([]float64, cols)
		value = 0
		for i := range rows {
			y := 0.0
			for j := range cols {
				y += at(i, j) * x[j] / norm
			}
			value += y * y
			for j := range cols {
				next[j] += y * at(i, j)
			}
		}
		x = next
	}
	return value / total
}

// edge is the share that leading finds in a matrix of independent entries: the
// edge of Marchenko and Pastur's law, and what it fluctuates by in small ones
// (Tracy and Widom's scale).
func edge(rows, cols int) float64 {
	m, n := float64(max(rows, cols)), float64(min(rows, cols))
	share := (1 + math.Sqrt(n/m)) * (1 + math.Sqrt(n/m)) / n
	return min(share*(1+2*math.Pow(n, -2.0/3)), 1)
}

// neighbours is the correlation of entries some rows and columns apart, in
// standard deviations of that of independent ones.
func neighbours(v []float32, rows, cols, down, right int) float64 {
	mean, deviation := moments(v)
	sum, n := 0.0, 0
	for i := range rows - down {
		for j := range cols - right {
			sum += (float64(v[i*cols+j]) - mean) * (float64(v[(i+down)*cols+j+right]) - mean)
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n) / (deviation * deviation) * math.Sqrt(float64(n))
}

// ranks returns the position of each value in ascending order; ties share the
// mean of theirs.
func ranks(v []float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		for j, y := range v {
			switch {
			case y < x:
				out[i]++
			case y == x && j != i:
				out[i] += 0.5
			}
		}
	}
	return out
}
