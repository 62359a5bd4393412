package quantized

import (
	"encoding/binary"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/engine/cpu/asm"
)

// format is how blocks of a type lie in a panel. A block of a panel holds one block of each column. What it has for each, it has for
// all 16 side by side:
//
//	scale      float16, then perhaps a minimum, float16
//	parts      of some terms each, one after another; parts of 32 or 16 terms have
//	  scale    a byte, then perhaps a minimum, if the block has several parts
//	  high     a word of bits above the fourth, term by term from the lowest
//	  words    of four bits of eight terms, from the lowest
//	  bytes    one for each term: of all columns for one term, then the next; or float16, or bfloat16
type format struct {
	of             quant.Type
	elements, size int // of a block of one column; size in bytes
	panelSize      int // bytes of a block of a panel
	move           func(v view)
}

// view is one column of a block of a panel, and the same as a block of its own. Moves go from one to the other, which is zero before.
type view struct {
	panel   []byte
	column  int
	block   []byte
	restore bool // from panel to block
}

const columns = asm.PanelColumns

// formatOf returns the format of a type; nil if there is none.
func formatOf(of quant.Type) *format {
	elements, size := of.Block()
	f := &format{of: of, elements: elements, size: size, panelSize: columns * size}
	switch of {
	case quant.Q4_0, quant.IQ4_NL:
		f.move = func(v view) { v.moveFours(1, false) }
	case quant.Q4_1:
		f.move = func(v view) { v.moveFours(2, false) }
	case quant.Q5_0:
		f.move = func(v view) { v.moveFours(1, true) }
	case quant.Q5_1:
		f.move = func(v view) { v.moveFours(2, true) }
	case quant.Q8_0:
		f.move = func(v view) {
			v.half(0, 0)
			for t := range 32 {
				v.byte(32+columns*t, 2+t)
			}
		}
	case quant.F16, quant.BF16:
		f.elements, f.size, f.panelSize = asm.HalvesBlock, asm.HalvesBlock*size, asm.HalvesBlock*size*columns
		f.move = func(v view) {
			for t := range asm.HalvesBlock {
				v.half(2*columns*t, 2*t)
			}
		}
	case quant.Q4_K:
		f.panelSize = columns * 148
		f.move = func(v view) { v.moveParts(false) }
	case quant.Q5_K:
		f.panelSize = columns * 180
		f.move = func(v view) { v.moveParts(true) }
	case quant.Q6_K:
		f.move = view.moveSixes
	default:
		return nil
	}
	return f
}

// half moves the two bytes of a column at a place of the panel, from a place of the block.
func (v view) half(at, from int) {
	p, b := v.panel[at+2*v.column:][:2], v.block[from:][:2]
	if v.restore {
		p, b = b, p
	}
	copy(p, b)
}

func (v view) byte(at, from int) {
	if p, b := &v.panel[at+v.column], &v.block[from]; v.restore {
		*b = *p
	} else {
		*p = *b
	}
}

// bits moves some bits of each of eight bytes of the block, from a shift on, to a word of the panel, from a bit on.
func (v view) bits(at, bit, from, shift, width int) {
	w, b := v.panel[at+4*v.column:][:4], v.block[from:][:8]
	word, x := binary.LittleEndian.Uint32(w), binary.LittleEndian.Uint64(b)
	if v.restore {
		binary.LittleEndian.PutUint64(b, x|spread(uint64(word)>>bit, width)<<shift)
	} else {
		binary.LittleEndian.PutUint32(w, word|uint32(gather(x>>shift, width)<<bit))
	}
}

// masks are the lowest bits of each 8, 16 and 32 bits, as many for each byte.
func masks(width int) (m8, m16, m32 uint64) {
	return (1<<width - 1) * 0x0101010101010101, (1<<(2*width) - 1) * 0x0001000100010001, (1<<(4*width) - 1) * 0x0000000100000001
}

// gather puts the lowest bits of eight bytes together; spread does the opposite.
func gather(x uint64, width int) uint64 {
	m8, m16, m32 := masks(width)
	x &= m8
	x = (x | x>>(8-width)) & m16
	x = (x | x>>(2*(8-width))) & m32
	return (x | x>>(4*(8-width))) & (1<<(8*width) - 1)
}

func spread(x uint64, width int) uint64 {
	m8, m16, m32 := masks(width)
	x &= 1<<(8*width) - 1
	x = (x | x<<(4*(8-width))) & m32
	x = (x | x<<(2*(8-width))) & m16
	return (x | x<<(8-width)) & m8
}

// moveFours moves a block of 32 elements: one or two float16, perhaps a word of higher bits, and halves of sixteen bytes, first
// the lower ones.
func (v view) moveFours(scales int, high bool) {
	at, from := 0, 0
	for range scales {
		v.half(at, from)
		at, from = at+2*columns, from+2
	}
	if high {
		v.fourBytes(at, from)
		at, from = at+4*columns, from+4
	}
	for i := range 4 {
		v.bits(at+4*columns*i, 0, from+8*(i%2), i/2*4, 4)
	}
}

// fourBytes moves a word of a column.
func (v view) fourBytes(at, from int) {
	p, b := v.panel[at+4*v.column:][:4], v.block[from:][:4]
	if v.restore {
		p, b = b, p
	}
	copy(p, b)
}

// moveParts moves a block of Q4_K, or of Q5_K, which has higher bits: those of part p are bit p of 32 bytes. Two parts share
// bytes.
func (v view) moveParts(high bool) {
	const head = 4 * columns
	v.half(0, 0)
	v.half(2*columns, 2)
	from, size := 16, (2+16)*columns
	if high {
		from, size = 48, size+4*columns
	}
	v.moveScales(head, size)
	for p := range 8 {
		at := head + p*size + 2*columns
		if high {
			for i := range 4 {
				v.bits(at, 8*i, 16+8*i, p, 1)
			}
			at += 4 * columns
		}
		for i := range 4 {
			v.bits(at+4*columns*i, 0, from+p/2*32+8*i, p%2*4, 4)
		}
	}
}

// moveScales moves the scales and minima of eight parts, six bits each, of which those of the last four share bytes with others.
func (v view) moveScales(at, size int) {
	s := v.block[4:][:12]
	scale := func(part int) *byte { return &v.panel[at+part*size+v.column] }
	least := func(part int) *byte { return &v.panel[at+part*size+columns+v.column] }
	for i := range 4 {
		if v.restore {
			s[i] = *scale(i) | *scale(i + 4)>>4<<6
			s[i+4] = *least(i) | *least(i + 4)>>4<<6
			s[i+8] = *scale(i + 4)&15 | *least(i + 4)<<4
			continue
		}
		*scale(i), *least(i) = s[i]&63, s[i+4]&63
		*scale(i + 4), *least(i + 4) = s[i+8]&15|s[i]>>6<<4, s[i+8]>>4|s[i+4]>>6<<4
	}
}

// moveSixes moves a block of Q6_K: two halves of four times 32 elements, sixteen of which have one scale. Package quant says where
// their bits are.
func (v view) moveSixes() {
	const head, size = 2 * columns, (1 + 4 + 8) * columns
	v.half(0, 208)
	for part := range 16 {
		half, quarter, run := part/8, part/2%4, part%2
		at := head + part*size
		v.byte(at, 192+part)
		for i := range 2 {
			v.bits(at+columns, 16*i, 128+32*half+16*run+8*i, 2*quarter, 2)
			v.bits(at+5*columns+4*columns*i, 0, 64*half+quarter%2*32+16*run+8*i, quarter/2*4, 4)
		}
	}
}
