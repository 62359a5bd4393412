// Package bend puts what lies at limits, is absent or is something else's into a message: it draws
// where and how, and does it. A bend is path=token. A token is
//
//	123, -1      a number, cut to the field's size; +1 and ~1 add to it and take away
//	"text"       a string; text*n repeats it
//	0xhex        bytes; 00*n repeats a byte
//	@name        the address of an account
//	#n           the id of the order posted as number n
//	true, false  a boolean
//	none         the field is absent
//	one          the field, or one more element, is present and empty
//	twice, half  a list's last element again; a list or bytes cut to half
//
// Proto and Go bend; Spots lists what can be bent.
package bend

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tally-network/tally/core/canon"
)

// Known is what a message is about: tokens and draws name it.
type Known struct {
	People  []string                 // that draws name
	Orders  []string                 // ids of those that were posted
	Numbers []int                    // what counts something: what else is counted may not fit
	Address func(name string) string // of an account
}

// Proto sets the field of a message at a path.
func Proto(m protoreflect.Message, path, token string, k *Known) error {
	head, rest, nested := strings.Cut(path, ".")
	name, index := at(head)
	fd := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	if fd == nil {
		return fmt.Errorf("%s has no field %q", m.Descriptor().Name(), name)
	}
	switch {
	case fd.IsMap():
		return fmt.Errorf("%s is a map", name)
	case fd.IsList() && index >= 0:
		l := m.Mutable(fd).List()
		if index >= l.Len() {
			return fmt.Errorf("%s has %d elements", name, l.Len())
		}
		if nested {
			return Proto(l.Get(index).Message(), rest, token, k)
		}
		v, err := scalar(fd, l.Get(index), token, k)
		if err == nil {
			l.Set(index, v)
		}
		return err
	case fd.IsList():
		return bendList(m, fd, token)
	case nested:
		if fd.Kind() != protoreflect.MessageKind {
			return fmt.Errorf("%s has no fields", name)
		}
		return Proto(m.Mutable(fd).Message(), rest, token, k)
	case token == "none":
		m.Clear(fd)
		return nil
	case fd.Kind() == protoreflect.MessageKind && token == "one":
		m.Mutable(fd)
		return nil
	case fd.Kind() == protoreflect.MessageKind:
		return fmt.Errorf("%s is a message", name)
	}
	v, err := scalar(fd, m.Get(fd), token, k)
	if err == nil {
		m.Set(fd, v)
	}
	return err
}

// at splits name[3] into name and 3; the index is −1 if there is none.
func at(s string) (string, int) {
	name, rest, ok := strings.Cut(s, "[")
	if !ok {
		return s, -1
	}
	i, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
	if err != nil {
		return name, -1
	}
	return name, i
}

func bendList(m protoreflect.Message, fd protoreflect.FieldDescriptor, token string) error {
	l := m.Mutable(fd).List()
	word, times, _ := strings.Cut(token, "*")
	n, err := strconv.Atoi(times)
	if err != nil {
		n = 1
	}
	switch word {
	case "none":
		m.Clear(fd)
	case "half":
		l.Truncate(l.Len() / 2)
	case "one":
		for range min(n, maxRepeat) {
			l.Append(l.NewElement())
		}
	case "twice":
		if l.Len() == 0 {
			return fmt.Errorf("%s is empty", fd.Name())
		}
		for range min(n, maxRepeat) {
			l.Append(l.Get(l.Len() - 1))
		}
	default:
		return fmt.Errorf("a list cannot be %q", token)
	}
	return nil
}

// maxRepeat bounds what a bend repeats, so that a message stays one that a block
// could hold.
const maxRepeat = 1 << 13

// scalar returns what a token stands for in a field.
func scalar(fd protoreflect.FieldDescriptor, was protoreflect.Value, token string, k *Known) (protoreflect.Value, error) {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(token == "true"), nil
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text(token, was.String(), k)), nil
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(raw(token, was.Bytes())), nil
	case protoreflect.EnumKind:
		n, err := whole(token, uint64(was.Enum()))
		return Number(fd.Kind(), n), err
	case protoreflect.MessageKind, protoreflect.GroupKind, protoreflect.FloatKind, protoreflect.DoubleKind:
		return was, fmt.Errorf("%s is no scalar", fd.Name())
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		n, err := whole(token, was.Uint())
		return Number(fd.Kind(), n), err
	}
	n, err := whole(token, uint64(was.Int()))
	return Number(fd.Kind(), n), err
}

// Number returns an integer as fields of a kind hold it, cut to its size.
func Number(k protoreflect.Kind, v uint64) protoreflect.Value {
	switch k {
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(v))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(v))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(v))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(int32(v)))
	}
	return protoreflect.ValueOfUint64(v)
}

// whole reads a number, or one to be added to what was.
func whole(token string, was uint64) (uint64, error) {
	switch {
	case strings.HasPrefix(token, "+"):
		n, err := strconv.ParseUint(token[1:], 10, 64)
		return was + n, err
	case strings.HasPrefix(token, "~"):
		n, err := strconv.ParseUint(token[1:], 10, 64)
		return was - n, err
	case strings.HasPrefix(token, "-"):
		n, err := strconv.ParseInt(token, 10, 64)
		return uint64(n), err
	}
	return strconv.ParseUint(token, 10, 64)
}

func text(token, was string, k *Known) string {
	switch {
	case token == "none":
		return ""
	case token == "half":
		return was[:len(was)/2]
	case token == "never":
		return canon.Sum("never").String()
	case strings.HasPrefix(token, "@"):
		return k.Address(token[1:])
	case strings.HasPrefix(token, "#"):
		n, err := strconv.Atoi(token[1:])
		if err == nil && n < len(k.Orders) {
			return k.Orders[n]
		}
		return ""
	}
	word, times, repeated := strings.Cut(strings.Trim(token, `"`), "*")
	n, err := strconv.Atoi(times)
	if err != nil {
		n = 1
	}
	if word == "" && repeated {
		word = was
	}
	return strings.Repeat(word, min(n, 8*maxRepeat/max(len(word), 1)))
}

func raw(token string, was []byte) []byte {
	switch token {
	case "none":
		return nil
	case "half":
		return was[:len(was)/2]
	case "+1":
		out := append([]byte{}, was...)
		if len(out) > 0 {
			out[len(out)-1]++
		}
		return out
	}
	word, times, _ := strings.Cut(strings.TrimPrefix(token, "0x"), "*")
	b, err := hex.DecodeString(word)
	if err != nil {
		return []byte(token)
	}
	n, err := strconv.Atoi(times)
	if err != nil {
		n = 1
	}
	return []byte(strings.Repeat(string(b), min(n, 8*maxRepeat)))
}

// Go sets the field of a coded value at a path.
func Go(v any, path, token string, k *Known) error {
	x := reflect.ValueOf(v)
	for _, head := range strings.Split(path, ".") {
		for x.Kind() == reflect.Pointer {
			if x.IsNil() {
				return fmt.Errorf("%s is absent", path)
			}
			x = x.Elem()
		}
		name, index := at(head)
		if x.Kind() != reflect.Struct {
			return fmt.Errorf("%s leads nowhere", path)
		}
		if x = x.FieldByName(name); !x.IsValid() {
			return fmt.Errorf("there is no %s", path)
		}
		if index >= 0 {
			if x.Kind() != reflect.Slice || index >= x.Len() {
				return fmt.Errorf("%s leads nowhere", path)
			}
			x = x.Index(index)
		}
	}
	if !x.CanSet() {
		return fmt.Errorf("%s cannot be set", path)
	}
	return setGo(x, token, k)
}

func setGo(x reflect.Value, token string, k *Known) error {
	switch x.Kind() {
	case reflect.Bool:
		x.SetBool(token == "true")
	case reflect.Int, reflect.Int64, reflect.Int32:
		n, err := whole(token, uint64(x.Int()))
		if err != nil {
			return err
		}
		x.SetInt(int64(n))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		n, err := whole(token, x.Uint())
		if err != nil {
			return err
		}
		x.SetUint(n)
	case reflect.String:
		x.SetString(text(token, x.String(), k))
	case reflect.Array:
		b := raw(token, x.Bytes())
		x.SetZero()
		reflect.Copy(x, reflect.ValueOf(b))
	case reflect.Slice:
		return setSlice(x, token)
	case reflect.Pointer:
		x.SetZero()
		if token == "one" {
			x.Set(reflect.New(x.Type().Elem()))
		}
	default:
		return fmt.Errorf("%v cannot be bent", x.Type())
	}
	return nil
}

func setSlice(x reflect.Value, token string) error {
	if x.Type().Elem().Kind() == reflect.Uint8 {
		x.SetBytes(raw(token, x.Bytes()))
		return nil
	}
	word, times, _ := strings.Cut(token, "*")
	n, err := strconv.Atoi(times)
	if err != nil {
		n = 1
	}
	switch word {
	case "none":
		x.SetZero()
	case "half":
		x.SetLen(x.Len() / 2)
	case "one", "twice":
		e := reflect.Zero(x.Type().Elem())
		if word == "twice" && x.Len() > 0 {
			e = x.Index(x.Len() - 1)
		}
		for range min(n, maxRepeat) {
			x.Set(reflect.Append(x, e))
		}
	default:
		return fmt.Errorf("a list cannot be %q", token)
	}
	return nil
}
