package spatial_test

import (
	"fmt"
	"testing"

	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// Depthwise convolutions of mobile nets and of ConvNeXt: planes, their size, terms, stride.
func BenchmarkDepthwise(b *testing.B) {
	for _, c := range [][4]int{
		{16, 112, 3, 1}, {64, 112, 3, 2}, {72, 56, 3, 1}, {120, 28, 5, 1}, {480, 14, 3, 1}, {672, 14, 5, 1},
		{672, 14, 5, 2}, {960, 7, 5, 1}, {1152, 7, 3, 1}, {384, 14, 7, 1}, {768, 7, 7, 1},
	} {
		planes, size, kernel, stride := c[0], c[1], c[2], c[3]
		p := kerneltest.Convolution{Batch: 1, In: planes, Size: size, Out: planes, Kernel: kernel, Stride: stride, Pad: kernel / 2, Groups: planes}.Primitive()
		b.Run(fmt.Sprintf("%d×%d×%d,%d×%d,%d", planes, size, size, kernel, kernel, stride), func(b *testing.B) {
			kerneltest.Bench(b, p, 2*float64(p.Shape.Elements()*p.Terms()), "GFLOP/s")
		})
	}
}
