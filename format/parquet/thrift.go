package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Types of thrift's compact protocol.
const (
	thriftTrue = iota + 1
	thriftFalse
	thriftByte
	thriftI16
	thriftI32
	thriftI64
	thriftDouble
	thriftBinary
	thriftList
	thriftSet
	thriftMap
	thriftStruct
)

// maxDepth bounds how deep metadata and schemas are nested.
const maxDepth = 32

var errShort = errors.New("metadata ends too early")

// thrift reads the compact protocol. After an error it reads zeros.
type thrift struct {
	b     []byte
	at    int
	depth int
	err   error
}

func (t *thrift) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

func (t *thrift) byte() byte {
	if t.err != nil || t.at >= len(t.b) {
		t.fail(errShort)
		return 0
	}
	t.at++
	return t.b[t.at-1]
}

func (t *thrift) uvarint() uint64 {
	if t.err != nil {
		return 0
	}
	v, n := binary.Uvarint(t.b[t.at:])
	if n <= 0 {
		t.fail(errShort)
		return 0
	}
	t.at += n
	return v
}

// integer reads an integer of 16, 32 or 64 bits.
func (t *thrift) integer() int64 {
	v := t.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// size reads a length in bytes or items, of which each has a byte at least.
func (t *thrift) size() int {
	n := t.uvarint()
	if n > uint64(len(t.b)-t.at) {
		t.fail(errShort)
		return 0
	}
	return int(n)
}

func (t *thrift) binary() []byte {
	n := t.size()
	t.at += n
	return t.b[t.at-n : t.at]
}

// fields reads a struct. Field returns false for what it does not read.
func (t *thrift) fields(field func(id int, typ byte) bool) {
	if t.depth++; t.depth > maxDepth {
		t.fail(fmt.Errorf("metadata is nested more than %d deep", maxDepth))
	}
	for id := 0; t.err == nil; {
		head := t.byte()
		typ := head & 15
		if head == 0 {
			break
		}
		if head>>4 == 0 {
			id = int(t.integer())
		} else {
			id += int(head >> 4)
		}
		if t.err == nil && !field(id, typ) {
			t.skip(typ)
		}
	}
	t.depth--
}

// list reads the items of a list.
func (t *thrift) list(item func(typ byte)) {
	head := t.byte()
	n := int(head >> 4)
	if n == 15 {
		n = t.size()
	}
	for i := 0; i < n && t.err == nil; i++ {
		item(head & 15)
	}
}

// skip passes a value.
func (t *thrift) skip(typ byte) {
	if t.depth++; t.depth > maxDepth {
		t.fail(fmt.Errorf("metadata is nested more than %d deep", maxDepth))
	}
	switch typ {
	case thriftTrue, thriftFalse:
	case thriftByte:
		t.byte()
	case thriftI16, thriftI32, thriftI64:
		t.uvarint()
	case thriftDouble:
		if t.at += 8; t.at > len(t.b) {
			t.at = len(t.b)
			t.fail(errShort)
		}
	case thriftBinary:
		t.binary()
	case thriftList, thriftSet:
		t.list(t.skipItem)
	case thriftMap:
		if n := t.size(); n > 0 {
			kinds := t.byte()
			for i := 0; i < n && t.err == nil; i++ {
				t.skipItem(kinds >> 4)
				t.skipItem(kinds & 15)
			}
		}
	case thriftStruct:
		t.fields(func(int, byte) bool { return false })
	default:
		t.fail(fmt.Errorf("metadata has a value of unknown type %d", typ))
	}
	t.depth--
}

// skipItem passes an item of a list or map, where a truth value has a byte of its own.
func (t *thrift) skipItem(typ byte) {
	if typ == thriftTrue || typ == thriftFalse {
		typ = thriftByte
	}
	t.skip(typ)
}
