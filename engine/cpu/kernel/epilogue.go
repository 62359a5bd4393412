package kernel

import "unsafe"

// Epilogue is what follows a producer, element by element: bias, normalisation,
// activation, a residual. It takes some rows of n elements of the producer's output,
// of which the first begins at an element and each next one pitch elements later. They
// are in the output already, unless from says where they are instead.
type Epilogue func(at, n, rows, pitch int, from Source) error

// Source is where rows of an output are that have not been copied to it, such as the
// accumulators of a block. A row is some lines of one length, which are contiguous in
// the output, and apart here. The zero value says that the rows are in the output.
type Source struct {
	Data      []float32 // from the first row on
	RowPitch  int       // elements from row to row
	Lines     int       // in a row
	LinePitch int       // elements from line to line
}

// CopyTo copies rows of n elements to the output, where the first begins at an element
// and each next one pitch elements later.
func (s Source) CopyTo(out []float32, at, n, rows, pitch int) {
	if s.Data == nil {
		return
	}
	width := n / s.Lines
	for i := range rows * s.Lines {
		row, line := i/s.Lines, i%s.Lines
		copy(out[at+row*pitch+line*width:][:width], s.Data[row*s.RowPitch+line*s.LinePitch:])
	}
}

// Address returns where a line of a row begins, nil if that is in the output.
func (s Source) Address(row, line int) unsafe.Pointer {
	if s.Data == nil {
		return nil
	}
	return unsafe.Pointer(&s.Data[row*s.RowPitch+line*s.LinePitch])
}
