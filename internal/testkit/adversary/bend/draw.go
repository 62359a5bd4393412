package bend

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/tally-network/tally/core/canon"
)

// Spot is a place in a message that can be bent, and how.
type Spot struct {
	Path string
	Draw func(r *rand.Rand) string
}

// Spots lists the places of a message, and of values that its byte fields hold.
func Spots(m *dynamicpb.Message, coded map[string]canon.Coded, k *Known) []Spot {
	var out []Spot
	k.spotsOf(m, "", 0, &out)
	for at, v := range coded {
		k.goSpots(reflect.ValueOf(v), at+".", 0, &out)
	}
	return out
}

func (k *Known) spotsOf(m protoreflect.Message, path string, depth int, out *[]Spot) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		here := path + string(fd.Name())
		switch {
		case fd.IsMap():
		case fd.IsList():
			*out = append(*out, Spot{here, drawList})
			l := m.Get(fd).List()
			for j := range min(l.Len(), 4) {
				in := fmt.Sprintf("%s[%d]", here, j)
				if fd.Kind() == protoreflect.MessageKind {
					k.spotsOf(l.Get(j).Message(), in+".", depth+1, out)
				} else {
					*out = append(*out, Spot{in, drawOf(fd.Kind(), k)})
				}
			}
		case fd.Kind() == protoreflect.MessageKind:
			*out = append(*out, Spot{here, oneOf("none", "one")})
			if m.Has(fd) && depth < 6 {
				k.spotsOf(m.Get(fd).Message(), here+".", depth+1, out)
			}
		case fd.Kind() == protoreflect.BoolKind:
			*out = append(*out, Spot{here, oneOf(strconv.FormatBool(!m.Get(fd).Bool()))})
		default:
			*out = append(*out, Spot{here, drawOf(fd.Kind(), k)})
		}
	}
}

func (k *Known) goSpots(x reflect.Value, path string, depth int, out *[]Spot) {
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
			k.goSpots(v, here+".", depth+1, out)
		case reflect.Pointer:
			*out = append(*out, Spot{here, oneOf("none", "one")})
			k.goSpots(v, here+".", depth+1, out)
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Uint8 {
				*out = append(*out, Spot{here, drawBytes})
				continue
			}
			*out = append(*out, Spot{here, drawList})
			for j := range min(v.Len(), 3) {
				k.goSpots(v.Index(j), fmt.Sprintf("%s[%d].", here, j), depth+1, out)
			}
		case reflect.Array:
			*out = append(*out, Spot{here, drawBytes})
		case reflect.Bool:
			*out = append(*out, Spot{here, oneOf(strconv.FormatBool(!v.Bool()))})
		case reflect.String:
			*out = append(*out, Spot{here, drawText(&Known{People: k.People})})
		default:
			*out = append(*out, Spot{here, drawNumber(v.Kind() == reflect.Int || v.Kind() == reflect.Int64, k)})
		}
	}
}

func oneOf(tokens ...string) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return tokens[r.IntN(len(tokens))] }
}

func drawOf(kind protoreflect.Kind, k *Known) func(*rand.Rand) string {
	switch kind {
	case protoreflect.StringKind:
		return drawText(k)
	case protoreflect.BytesKind:
		return drawBytes
	case protoreflect.EnumKind:
		return func(r *rand.Rand) string { return strconv.Itoa(r.IntN(8) - 1) }
	case protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return drawNumber(true, k)
	}
	return drawNumber(false, k)
}

// drawNumber draws from what lies at limits: nothing, one, powers of two and what is
// beside them, the ends of the range, what is beside the number that fits, and beside
// the numbers of the lease.
func drawNumber(signed bool, k *Known) func(*rand.Rand) string {
	numbers := k.Numbers
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

func drawText(k *Known) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		switch r.IntN(6) {
		case 0:
			return "none"
		case 1:
			return "half"
		case 2:
			return "@" + k.People[r.IntN(len(k.People))]
		case 3:
			if len(k.Orders) > 0 {
				return "#" + strconv.Itoa(r.IntN(len(k.Orders)))
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
