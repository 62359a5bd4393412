package op_test

import "math"

var _ = add(
	sample{name: "Det", op: "Det", in: []arg{f(2, 4, 4)}, want: determinant},
	sample{name: "Det of one", op: "Det", in: []arg{f(1, 1)}, want: determinant},
)

// determinant eliminates with pivots.
func determinant(in []array) []array {
	x := in[0]
	n := x.shape[len(x.shape)-1]
	y := array{shape: x.shape[:len(x.shape)-2]}
	for lo := 0; lo < len(x.v); lo += n * n {
		m := append([]float64{}, x.v[lo:lo+n*n]...)
		det := 1.0
		for k := range n {
			p := k
			for i := k; i < n; i++ {
				if math.Abs(m[i*n+k]) > math.Abs(m[p*n+k]) {
					p = i
				}
			}
			for j := range n {
				m[k*n+j], m[p*n+j] = m[p*n+j], m[k*n+j]
			}
			if p != k {
				det = -det
			}
			det *= m[k*n+k]
			for i := k + 1; i < n; i++ {
				for j := n - 1; j >= k; j-- {
					m[i*n+j] -= m[i*n+k] / m[k*n+k] * m[k*n+j]
				}
			}
		}
		y.v = append(y.v, det)
	}
	return []array{y}
}
