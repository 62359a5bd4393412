package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"
)

const (
	// maxDepth bounds how deep values are nested. JSON schemas of tools rarely reach 20.
	maxDepth = 64
	// maxValues bounds how many values there are, each of which may take a hundred bytes of memory.
	maxValues = 1 << 18
	// maxGrow bounds the bytes that are taken for a body because it says that it has them.
	maxGrow = 4 << 20
	// BodyTime is how long a client may take to send a body.
	BodyTime = time.Minute
)

// Read decodes the body of a request into v. Fields that v does not have are ignored.
func Read(w http.ResponseWriter, r *http.Request, v any) error {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(BodyTime)) // a test's writer has no deadlines
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), maxGrow)) + bytes.MinRead)
	_, err := body.ReadFrom(r.Body)
	_ = c.SetReadDeadline(time.Time{})
	text := body.Bytes()
	var size *http.MaxBytesError
	var fault *Fault
	switch {
	case errors.As(err, &size), errors.As(err, &fault):
		return err
	case err != nil:
		return Invalid("", "the body could not be read: %v", err)
	case len(bytes.TrimSpace(text)) == 0:
		return Invalid("", "the body is empty: want a JSON object")
	}
	return Decode("", text, v)
}

// Decode decodes JSON that stands in a field into v. An empty name stands for a whole body.
func Decode(name string, text []byte, v any) error {
	if why := tooMuch(text); why != "" {
		return Invalid(name, "%s %s", subject(name), why)
	}
	err := json.Unmarshal(text, v)
	var (
		kind   *json.UnmarshalTypeError
		syntax *json.SyntaxError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind):
		field := strings.Trim(name+"."+written(reflect.TypeOf(v), kind.Field), ".")
		return &Fault{Status: http.StatusBadRequest, Code: "invalid_type", Param: field, Message: fmt.Sprintf("%s is %s: want %s", subject(field), given(kind.Value), wanted(kind.Type))}
	case errors.As(err, &syntax):
		return &Fault{Status: http.StatusBadRequest, Code: "invalid_json", Param: name, Message: fmt.Sprintf("%s is not JSON: byte %d: %v", subject(name), syntax.Offset, err)}
	}
	return Invalid(name, "%s: %v", subject(name), err)
}

// written is a path of fields as a client writes it: encoding/json also names the structs that are embedded.
func written(t reflect.Type, path string) string {
	var parts []string
	for part := range strings.SplitSeq(path, ".") {
		for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map) {
			t = t.Elem()
		}
		if t == nil || t.Kind() != reflect.Struct {
			parts = append(parts, part)
			continue
		}
		f, ok := t.FieldByName(part)
		if ok && f.Anonymous && f.Tag.Get("json") == "" {
			t = f.Type
			continue
		}
		parts = append(parts, part)
		f, ok = t.FieldByNameFunc(func(name string) bool {
			x, _ := t.FieldByName(name)
			tag, _, _ := strings.Cut(x.Tag.Get("json"), ",")
			return tag == part
		})
		if t = nil; ok {
			t = f.Type
		}
	}
	return strings.Join(parts, ".")
}

func subject(name string) string {
	if name == "" {
		return "the body"
	}
	return name
}

// given names a value as encoding/json does, with an article.
func given(value string) string {
	switch kind, rest, _ := strings.Cut(value, " "); {
	case rest != "":
		return rest
	case kind == "bool":
		return "a boolean"
	case kind == "array", kind == "object":
		return "an " + kind
	}
	return "a " + value
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return "an integer"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Pointer:
		return wanted(t.Elem())
	}
	return "an object"
}

// tooMuch says what a text has too much of, before anything is made of it.
func tooMuch(text []byte) string {
	depth, values, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',':
			values++
		case c == '{', c == '[':
			values++
			depth++
		case c == '}', c == ']':
			depth--
		}
		if depth > maxDepth {
			return fmt.Sprintf("is nested more than %d deep", maxDepth)
		}
		if values > maxValues {
			return fmt.Sprintf("has more than %d values", maxValues)
		}
	}
	return ""
}

// IsNull reports whether a field is absent or null.
func IsNull(text json.RawMessage) bool { return len(text) == 0 || string(text) == "null" }

// Refuse returns a fault for the first field of a struct that asks for something. The fields are of the type
// json.RawMessage. A tag why says why the thing is not done; a tag but has values that ask for nothing, between bars.
func Refuse(fields any) error {
	v := reflect.ValueOf(fields).Elem()
	for i := range v.NumField() {
		tag, text := v.Type().Field(i).Tag, v.Field(i).Interface().(json.RawMessage)
		if IsNull(text) {
			continue
		}
		var short bytes.Buffer
		if err := json.Compact(&short, text); err != nil {
			return err
		}
		neutral := tag.Get("but")
		if neutral == "" || !strings.Contains("|"+neutral+"|", "|"+short.String()+"|") {
			name := tag.Get("json")
			if neutral != "" {
				neutral = ", or set it to " + strings.ReplaceAll(neutral, "|", " or ")
			}
			return Unsupported(name, "%s is not supported: %s; leave it out%s", name, tag.Get("why"), neutral)
		}
	}
	return nil
}

// Texts reads a field that is a string or an array of strings. If it is absent there are none.
func Texts(name string, text json.RawMessage, most int) (all []string, err error) {
	if IsNull(text) {
		return nil, nil
	}
	if text[0] == '"' {
		all = make([]string, 1)
		return all, Decode(name, text, &all[0])
	}
	if text[0] != '[' {
		return nil, Invalid(name, "%s is neither a string nor an array of strings", name)
	}
	if err := Decode(name, text, &all); err != nil {
		return nil, err
	}
	if len(all) > most {
		return nil, Invalid(name, "%s has %d items: want at most %d", name, len(all), most)
	}
	return all, nil
}
