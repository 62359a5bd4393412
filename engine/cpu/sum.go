package cpu

import "github.com/tally-network/tally/core/tensor"

// sum adds the terms in tensor.Lanes lanes and joins them by a tree.
type sum[T number] struct {
	folding
	add    func(dst, x, y []T)
	finish func(T) T
}

func (k *sum[T]) run(w *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	dst := tensor.Of[T](out)
	if k.columns {
		for ; lo < hi; lo += columnChunk {
			k.column(w, dst[lo:min(lo+columnChunk, hi)], args, lo)
		}
		return nil
	}
	buf := row[T](w, 0, args[0].Type)
	for o := lo; o < hi; o++ {
		var lanes [tensor.Lanes]T
		for t := 0; t < k.terms; t += chunk {
			takeTerms(&lanes, load(k.view, args, buf, o*k.terms+t, min(chunk, k.terms-t), 0))
		}
		for half := startHalf(k.terms); half > 0; half /= 2 {
			for l := range half {
				lanes[l] += lanes[l+half]
			}
		}
		dst[o] = k.finish(lanes[0])
	}
	return nil
}

// column sums the elements from o on. Lane l of element i lies at l·len(dst)+i.
func (k *sum[T]) column(w *worker, dst []T, args []*tensor.Tensor, o int) {
	n := len(dst)
	buf := row[T](w, 0, args[0].Type)
	lanes := laneRows[T](w, args[0].Type)[:tensor.Lanes*n]
	clear(lanes)
	for t := range k.terms {
		lane := lanes[t%tensor.Lanes*n:][:n]
		k.add(lane, lane, load(k.view, args, buf, t*k.n+o, n, 0))
	}
	for half := startHalf(k.terms); half > 0; half /= 2 {
		k.add(lanes[:half*n], lanes[:half*n], lanes[half*n:2*half*n])
	}
	for i := range dst {
		dst[i] = k.finish(lanes[i])
	}
}

// startHalf returns half the lanes that the tree starts with. Lanes without
// terms hold +0, and no lane ever holds −0, so adding them changes nothing.
func startHalf(terms int) int {
	half := tensor.Lanes / 2
	for half > 0 && terms <= half {
		half /= 2
	}
	return half
}

// takeTerms adds x to the lanes, from lane 0 on: eight lanes at a time, whose
// sums stay in registers.
func takeTerms[T number](lanes *[tensor.Lanes]T, x []T) {
	for g := 0; g < tensor.Lanes && g+8 <= len(x); g += 8 {
		l := (*[8]T)(lanes[g:])
		a0, a1, a2, a3, a4, a5, a6, a7 := l[0], l[1], l[2], l[3], l[4], l[5], l[6], l[7]
		for i := g; i+8 <= len(x); i += tensor.Lanes {
			v := (*[8]T)(x[i:])
			a0, a1, a2, a3 = a0+v[0], a1+v[1], a2+v[2], a3+v[3]
			a4, a5, a6, a7 = a4+v[4], a5+v[5], a6+v[6], a7+v[7]
		}
		*l = [8]T{a0, a1, a2, a3, a4, a5, a6, a7}
	}
	for i := len(x) &^ 7; i < len(x); i++ {
		lanes[i%tensor.Lanes] += x[i]
	}
}
