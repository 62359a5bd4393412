package canon

import "unsafe"

// UnmarshalWithin is Unmarshal for a value that may take at most room bytes
// beside b: lists of small items take many times their encoding.
func UnmarshalWithin(b []byte, v Coded, room int) error {
	d := NewDecoder(b)
	d.room, d.bounded = room, true
	v.Code(&Codec{dec: d})
	return d.Done()
}

// afford takes n items from the room that is left, or fails.
func afford[T any](d *Decoder, n int) {
	if !d.bounded || d.err != nil || n == 0 {
		return
	}
	var item T
	size := max(int(unsafe.Sizeof(item)), 1)
	if n > d.room/size {
		d.Fail("list of %d items of %d bytes, %d are left", n, size, d.room)
		return
	}
	d.room -= n * size
}
