package erasure

// The field of 256 elements: polynomials over the bits, modulo x⁸+x⁴+x³+x²+1.
// Addition is xor; 2, which is x, generates all but zero.
const modulus = 0x11d

var powers, logs = generate()

// generate returns the powers of 2, twice over so that sums of two logarithms need
// no reduction, and their logarithms.
func generate() (powers [510]byte, logs [256]byte) {
	x := 1
	for i := range 255 {
		powers[i], powers[i+255], logs[x] = byte(x), byte(x), byte(i)
		if x <<= 1; x > 255 {
			x ^= modulus
		}
	}
	return powers, logs
}

func times(a, b byte) byte {
	if a == 0 || b == 0 {
		return 0
	}
	return powers[int(logs[a])+int(logs[b])]
}

// inverse returns 1/a; a must not be zero.
func inverse(a byte) byte { return powers[255-int(logs[a])] }

// add adds c times src, followed by zeros, to dst.
func add(dst []byte, c byte, src []byte) {
	dst = dst[:len(src)]
	switch c {
	case 0:
	case 1:
		for i, b := range src {
			dst[i] ^= b
		}
	default:
		var product [256]byte
		for b := range product {
			product[b] = times(c, byte(b))
		}
		for i, b := range src {
			dst[i] ^= product[b]
		}
	}
}

// combine sets dst to the sum of c[i] times src[i]. Each is at most as long as dst,
// and stands for itself followed by zeros.
func combine(dst, c []byte, src [][]byte) {
	clear(dst)
	for i, s := range src {
		add(dst, c[i], s)
	}
}

// invert returns the inverse of a square matrix, which it destroys; false if there
// is none.
func invert(m [][]byte) (inv [][]byte, ok bool) {
	inv = make([][]byte, len(m))
	for i := range inv {
		inv[i] = make([]byte, len(m))
		inv[i][i] = 1
	}
	for i := range m {
		pivot := i
		for pivot < len(m) && m[pivot][i] == 0 {
			pivot++
		}
		if pivot == len(m) {
			return nil, false
		}
		m[i], m[pivot] = m[pivot], m[i]
		inv[i], inv[pivot] = inv[pivot], inv[i]
		scale := inverse(m[i][i])
		for _, row := range [][]byte{m[i], inv[i]} {
			for j := range row {
				row[j] = times(scale, row[j])
			}
		}
		for r := range m {
			if c := m[r][i]; r != i && c != 0 {
				add(m[r], c, m[i])
				add(inv[r], c, inv[i])
			}
		}
	}
	return inv, true
}
