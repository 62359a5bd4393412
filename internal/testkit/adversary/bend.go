package adversary

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/tally-network/tally/core/canon"
)

// A bend is path=token. A token is
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

// bendProto sets the field of a message at a path.
func bendProto(m protoreflect.Message, path, token string, c *composer) error {
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
			return bendProto(l.Get(index).Message(), rest, token, c)
		}
		v, err := scalar(fd, l.Get(index), token, c)
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
		return bendProto(m.Mutable(fd).Message(), rest, token, c)
	case token == "none":
		m.Clear(fd)
		return nil
	case fd.Kind() == protoreflect.MessageKind && token == "one":
		m.Mutable(fd)
		return nil
	case fd.Kind() == protoreflect.MessageKind:
		return fmt.Errorf("%s is a message", name)
	}
	v, err := scalar(fd, m.Get(fd), token, c)
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
func scalar(fd protoreflect.FieldDescriptor, was protoreflect.Value, token string, c *composer) (protoreflect.Value, error) {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(token == "true"), nil
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text(token, was.String(), c)), nil
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(raw(token, was.Bytes())), nil
	case protoreflect.EnumKind:
		n, err := whole(token, uint64(was.Enum()))
		return number(fd.Kind(), n), err
	case protoreflect.MessageKind, protoreflect.GroupKind, protoreflect.FloatKind, protoreflect.DoubleKind:
		return was, fmt.Errorf("%s is no scalar", fd.Name())
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		n, err := whole(token, was.Uint())
		return number(fd.Kind(), n), err
	}
	n, err := whole(token, uint64(was.Int()))
	return number(fd.Kind(), n), err
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

func text(token, was string, c *composer) string {
	switch {
	case token == "none":
		return ""
	case token == "half":
		return was[:len(was)/2]
	case token == "never":
		return canon.Sum("never").String()
	case strings.HasPrefix(token, "@"):
		return named(token[1:]).String()
	case strings.HasPrefix(token, "#") && c != nil:
		n, err := strconv.Atoi(token[1:])
		if err == nil && n < len(c.orders) {
			return c.orders[n].id.String()
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

// bendGo sets the field of a coded value at a path.
func bendGo(v any, path, token string) error {
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
	return setGo(x, token)
}

func setGo(x reflect.Value, token string) error {
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
		x.SetString(text(token, x.String(), nil))
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

// Writing bends.

// spot is a place in a message that can be bent, and how.
type spot struct {
	path string
	draw func(r *rand.Rand) string
}

// spots lists the places of a composed message.
func (c *composer) spots(m *dynamicpb.Message) []spot {
	var out []spot
	c.spotsOf(m, "", 0, &out)
	for at, v := range c.coded {
		c.goSpots(reflect.ValueOf(v), at+".", 0, &out)
	}
	return out
}

func (c *composer) spotsOf(m protoreflect.Message, path string, depth int, out *[]spot) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		here := path + string(fd.Name())
		switch {
		case fd.IsMap():
		case fd.IsList():
			*out = append(*out, spot{here, drawList})
			l := m.Get(fd).List()
			for j := range min(l.Len(), 4) {
				in := fmt.Sprintf("%s[%d]", here, j)
				if fd.Kind() == protoreflect.MessageKind {
					c.spotsOf(l.Get(j).Message(), in+".", depth+1, out)
				} else {
					*out = append(*out, spot{in, drawOf(fd.Kind(), c)})
				}
			}
		case fd.Kind() == protoreflect.MessageKind:
			*out = append(*out, spot{here, oneOf("none", "one")})
			if m.Has(fd) && depth < 6 {
				c.spotsOf(m.Get(fd).Message(), here+".", depth+1, out)
			}
		case fd.Kind() == protoreflect.BoolKind:
			*out = append(*out, spot{here, oneOf(strconv.FormatBool(!m.Get(fd).Bool()))})
		default:
			*out = append(*out, spot{here, drawOf(fd.Kind(), c)})
		}
	}
}

func (c *composer) goSpots(x reflect.Value, path string, depth int, out *[]spot) {
	for x.Kind() == reflect.Pointer {
		if x.IsNil() {
			return
		}
		x = x.Elem()
	}
	if x.Kind() != reflect.Struct || depth > 6 {
		return
	}
	for i := range x.NumField() {
		f := x.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		here, v := path+f.Name, x.Field(i)
		switch v.Kind() {
		case reflect.Struct:
			c.goSpots(v, here+".", depth+1, out)
		case reflect.Pointer:
			*out = append(*out, spot{here, oneOf("none", "one")})
			c.goSpots(v, here+".", depth+1, out)
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Uint8 {
				*out = append(*out, spot{here, drawBytes})
				continue
			}
			*out = append(*out, spot{here, drawList})
			for j := range min(v.Len(), 3) {
				c.goSpots(v.Index(j), fmt.Sprintf("%s[%d].", here, j), depth+1, out)
			}
		case reflect.Array:
			*out = append(*out, spot{here, drawBytes})
		case reflect.Bool:
			*out = append(*out, spot{here, oneOf(strconv.FormatBool(!v.Bool()))})
		case reflect.String:
			*out = append(*out, spot{here, drawText(nil)})
		default:
			*out = append(*out, spot{here, drawNumber(v.Kind() == reflect.Int || v.Kind() == reflect.Int64, c)})
		}
	}
}

func oneOf(tokens ...string) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return tokens[r.IntN(len(tokens))] }
}

func drawOf(k protoreflect.Kind, c *composer) func(*rand.Rand) string {
	switch k {
	case protoreflect.StringKind:
		return drawText(c)
	case protoreflect.BytesKind:
		return drawBytes
	case protoreflect.EnumKind:
		return func(r *rand.Rand) string { return strconv.Itoa(r.IntN(8) - 1) }
	case protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return drawNumber(true, c)
	}
	return drawNumber(false, c)
}

// numbers are what counts something in the lease: what else is counted may not fit.
func (c *composer) numbers() []int {
	if c.l == nil {
		return nil
	}
	p := &c.l.Order.Problem
	return []int{p.Rounds, p.Shards, p.Steps, p.Interval, p.Segments(), len(c.l.Units), len(c.l.Providers), c.l.Round}
}

// drawNumber draws from what lies at limits: nothing, one, powers of two and what is
// beside them, the ends of the range, what is beside the number that fits, and beside
// the numbers of the lease.
func drawNumber(signed bool, c *composer) func(*rand.Rand) string {
	numbers := c.numbers()
	return func(r *rand.Rand) string {
		if len(numbers) > 0 && r.IntN(8) == 0 {
			return strconv.Itoa(max(0, numbers[r.IntN(len(numbers))]+r.IntN(3)-1))
		}
		power := uint64(1) << r.IntN([]int{14, 64}[r.IntN(2)]) // what can be had comes more often
		switch r.IntN(10) {
		case 0, 1:
			return strconv.Itoa(r.IntN(3))
		case 2:
			return "+" + strconv.Itoa(1+r.IntN(2))
		case 3:
			return "~" + strconv.Itoa(1+r.IntN(2))
		case 4:
			if signed {
				return strconv.FormatInt(-int64(power), 10)
			}
			return strconv.FormatUint(math.MaxUint64-r.Uint64N(2), 10)
		case 5:
			return strconv.FormatUint(power+1, 10)
		case 6:
			return strconv.FormatUint(power-1, 10)
		}
		return strconv.FormatUint(power, 10)
	}
}

func drawText(c *composer) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		switch r.IntN(6) {
		case 0:
			return "none"
		case 1:
			return "half"
		case 2:
			return "@" + everybody[r.IntN(len(everybody))]
		case 3:
			if c != nil && len(c.orders) > 0 {
				return "#" + strconv.Itoa(r.IntN(len(c.orders)))
			}
			return "never"
		case 4:
			return "never"
		}
		return fmt.Sprintf("a*%d", 1<<r.IntN(13)+r.IntN(3)-1)
	}
}

func drawBytes(r *rand.Rand) string {
	switch r.IntN(5) {
	case 0:
		return "none"
	case 1:
		return "half"
	case 2:
		return "+1"
	}
	return fmt.Sprintf("0x%02x*%d", r.IntN(2)*255, 1<<r.IntN(13)+r.IntN(3)-1)
}

func drawList(r *rand.Rand) string {
	switch r.IntN(5) {
	case 0:
		return "none"
	case 1:
		return "half"
	}
	return fmt.Sprintf("%s*%d", []string{"one", "twice"}[r.IntN(2)], max(1, 1<<r.IntN(10)+r.IntN(3)-1))
}
