package mem

import "unsafe"

// CopyStrided copies src[at + i·srcStep] to dst[i·dstStep] for i < n; n is positive.
func CopyStrided[T any](dst []T, dstStep int, src []T, at, srcStep, n int) {
	last := n - 1
	_, _, _ = dst[last*dstStep], src[at], src[at+last*srcStep] // nothing else is checked
	size := int(unsafe.Sizeof(dst[0]))
	to, from := First(dst), unsafe.Pointer(&src[at])
	for i, j := 0, 0; n > 0; n-- {
		*(*T)(unsafe.Add(to, i)) = *(*T)(unsafe.Add(from, j))
		i, j = i+dstStep*size, j+srcStep*size
	}
}

// ReadStrided fills dst with src[at], src[at+stride], …
func ReadStrided[T any](dst, src []T, at, stride int) {
	if len(dst) == 0 {
		return
	}
	switch stride {
	case 1:
		copy(dst, src[at:at+len(dst)])
	case 0:
		Fill(dst, src[at])
	default:
		CopyStrided(dst, 1, src, at, stride, len(dst))
	}
}
