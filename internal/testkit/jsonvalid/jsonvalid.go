// Package jsonvalid says whether a text is JSON of a schema, as JSON Schema 2020-12 defines it. Call [Check].
//
// Invariants: it shares nothing with what compiles schemas, so that one tests the other. A keyword that it does not know is an error.
package jsonvalid

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/mail"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Check returns an error unless a text is JSON that a schema accepts.
func Check(schema, text string) error {
	var s, v any
	if err := json.Unmarshal([]byte(schema), &s); err != nil {
		return fmt.Errorf("the schema: %w", err)
	}
	if !utf8.ValidString(text) {
		return errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows")
	}
	return (&validator{root: s}).check(s, v)
}

type validator struct{ root any }

func (x *validator) check(schema, v any) error {
	if is, ok := schema.(bool); ok {
		if !is {
			return errors.New("nothing is valid")
		}
		return nil
	}
	s, ok := schema.(map[string]any)
	if !ok {
		return errors.New("a schema is no object")
	}
	for keyword, arg := range s {
		if err := x.keyword(s, keyword, arg, v); err != nil {
			return fmt.Errorf("%s: %w", keyword, err)
		}
	}
	return nil
}

func (x *validator) keyword(s map[string]any, keyword string, arg, v any) error {
	switch keyword {
	case "title", "description", "default", "$defs", "definitions", "$schema", "discriminator":
		return nil
	case "type", "enum", "const":
		return plain(keyword, arg, v)
	case "$ref", "anyOf", "oneOf", "allOf":
		return x.joined(keyword, arg, v)
	}
	switch v := v.(type) {
	case string:
		return text(keyword, arg, v)
	case float64:
		return number(keyword, arg, v)
	case []any:
		return x.array(s, keyword, arg, v)
	case map[string]any:
		return x.object(s, keyword, arg, v)
	}
	return nil
}

func plain(keyword string, arg, v any) error {
	list, many := arg.([]any)
	if !many || keyword == "const" {
		list = []any{arg}
	}
	for _, one := range list {
		if keyword == "type" && isOf(v, one) || keyword != "type" && reflect.DeepEqual(one, v) {
			return nil
		}
	}
	return fmt.Errorf("%v is none of %v", v, list)
}

func isOf(v, of any) bool {
	switch v := v.(type) {
	case nil:
		return of == "null"
	case bool:
		return of == "boolean"
	case float64:
		return of == "number" || of == "integer" && v == math.Trunc(v)
	case string:
		return of == "string"
	case []any:
		return of == "array"
	}
	return of == "object"
}

func (x *validator) joined(keyword string, arg, v any) error {
	if keyword == "$ref" {
		at := x.root
		for _, part := range strings.Split(strings.TrimPrefix(arg.(string), "#"), "/")[1:] {
			at = at.(map[string]any)[part]
		}
		return x.check(at, v)
	}
	fits, list := 0, arg.([]any)
	for _, s := range list {
		if x.check(s, v) == nil {
			fits++
		}
	}
	if keyword == "anyOf" && fits > 0 || keyword == "oneOf" && fits == 1 || keyword == "allOf" && fits == len(list) {
		return nil
	}
	return fmt.Errorf("%v is of %d of %d", v, fits, len(list))
}

func text(keyword string, arg any, v string) error {
	ok := true
	switch keyword {
	case "minLength":
		ok = utf8.RuneCountInString(v) >= int(arg.(float64))
	case "maxLength":
		ok = utf8.RuneCountInString(v) <= int(arg.(float64))
	case "pattern":
		ok = regexp.MustCompile(arg.(string)).MatchString(v)
	case "format":
		return format(arg.(string), v)
	default:
		return known(keyword)
	}
	if !ok {
		return fmt.Errorf("%q, and it should be %v", v, arg)
	}
	return nil
}

func format(of, v string) (err error) {
	switch of {
	case "date-time":
		_, err = time.Parse(time.RFC3339Nano, v)
	case "date":
		_, err = time.Parse(time.DateOnly, v)
	case "time":
		_, err = time.Parse("15:04:05.999999Z07:00", v)
	case "email":
		_, err = mail.ParseAddress(v)
	case "ipv4":
		_, err = netip.ParseAddr(v)
	case "uri":
		_, err = url.ParseRequestURI(v)
	case "uuid":
		if !regexp.MustCompile("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$").MatchString(v) {
			err = fmt.Errorf("%q is no UUID", v)
		}
	case "duration":
		if !regexp.MustCompile(`^P(\d+D)?(T(\d+H)?(\d+M)?(\d+S)?)?$`).MatchString(v) || strings.HasSuffix(v, "T") || v == "P" {
			err = fmt.Errorf("%q is no duration", v)
		}
	default:
		err = fmt.Errorf("the format %s is not known", of)
	}
	return err
}

func number(keyword string, arg any, v float64) error {
	by, _ := arg.(float64)
	ok := true
	switch keyword {
	case "minimum":
		ok = v >= by
	case "maximum":
		ok = v <= by
	case "exclusiveMinimum":
		ok = v > by
	case "exclusiveMaximum":
		ok = v < by
	default:
		return known(keyword)
	}
	if !ok {
		return fmt.Errorf("%v, and it should be %v", v, by)
	}
	return nil
}

func (x *validator) array(s map[string]any, keyword string, arg any, v []any) error {
	prefix, _ := s["prefixItems"].([]any)
	switch keyword {
	case "minItems":
		if len(v) < int(arg.(float64)) {
			return fmt.Errorf("there are %d", len(v))
		}
		return nil
	case "maxItems":
		if len(v) > int(arg.(float64)) {
			return fmt.Errorf("there are %d", len(v))
		}
		return nil
	case "prefixItems":
		for i := range min(len(v), len(prefix)) {
			if err := x.check(prefix[i], v[i]); err != nil {
				return err
			}
		}
		return nil
	case "items":
		for i := len(prefix); i < len(v); i++ {
			if err := x.check(arg, v[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return known(keyword)
}

func (x *validator) object(s map[string]any, keyword string, arg any, v map[string]any) error {
	properties, _ := s["properties"].(map[string]any)
	switch keyword {
	case "required":
		for _, name := range arg.([]any) {
			if _, ok := v[name.(string)]; !ok {
				return fmt.Errorf("%s is missing", name)
			}
		}
		return nil
	case "properties":
		for name, of := range properties {
			if one, ok := v[name]; ok {
				if err := x.check(of, one); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
		return nil
	case "additionalProperties", "propertyNames":
		for name, one := range v {
			_, named := properties[name]
			switch {
			case keyword == "propertyNames":
				one = name
			case named:
				continue
			}
			if err := x.check(arg, one); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	}
	return known(keyword)
}

// keywords are those of other types of values than the one that is looked at.
var keywords = []string{
	"minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
	"items", "prefixItems", "minItems", "maxItems", "properties", "required", "additionalProperties", "propertyNames",
}

func known(keyword string) error {
	if !slices.Contains(keywords, keyword) {
		return errors.New("it is not known")
	}
	return nil
}
