package canon

import (
	"strings"
	"testing"
)

// wide is small when encoded and large in memory.
type wide struct {
	text string
	_    [15]uint64
}

type wides struct{ all []wide }

func (v *wides) Code(w *Codec) {
	Seq(w, &v.all, 1<<20, 1, func(w *Codec, x *wide) { w.String(&x.text, 8) })
}

func TestUnmarshalWithin(t *testing.T) {
	b := Marshal(&wides{make([]wide, 1000)})
	const size = 16 + 15*8
	if err := UnmarshalWithin(b, new(wides), 1000*size); err != nil {
		t.Error(err)
	}
	if err := UnmarshalWithin(b, new(wides), 1000*size-1); err == nil || !strings.Contains(err.Error(), "1000 items of 136 bytes") {
		t.Error(err)
	}
	b = Marshal(&wides{[]wide{{text: "abc"}, {text: "d"}}})
	if err := UnmarshalWithin(b, new(wides), 2*size+4); err != nil {
		t.Error(err)
	}
	if err := UnmarshalWithin(b, new(wides), 2*size+3); err == nil {
		t.Error("a string took what was not left")
	}
	if err := UnmarshalWithin([]byte{0}, new(wides), 0); err != nil {
		t.Error(err)
	}
}
