package jsonschema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/internal/testkit/jsonvalid"
	"github.com/tally-network/tally/internal/testkit/memory"
	"github.com/tally-network/tally/model/grammar"
	"github.com/tally-network/tally/model/grammar/jsonschema"
)

var letters = grammar.NewVocabulary(256, func(id int32) []byte { return []byte{byte(id)} })

// written is a random text that an automaton accepts.
func written(t testing.TB, a *grammar.Automaton, r *rand.Rand) string {
	t.Helper()
	x, err := grammar.NewIndex(a, letters)
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	state := 0
	for !x.Final(state) && len(text) < 1<<16 {
		if x.Accepts(state) && r.IntN(4) == 0 {
			break
		}
		var may []byte
		for b, ok := range x.Mask(state) {
			if ok == 1 {
				may = append(may, byte(b))
			}
		}
		b := may[r.IntN(len(may))]
		for _, closing := range []byte(`"]}`) { // so that it ends
			if x.Mask(state)[closing] == 1 && r.IntN(3) == 0 {
				b = closing
			}
		}
		text = append(text, b)
		state, _ = x.Next(state, int32(b))
	}
	if !x.Accepts(state) {
		t.Fatalf("%.300s has no end", text)
	}
	return string(text)
}

func accepts(t *testing.T, schema string, yes, no []string) {
	t.Helper()
	a, err := jsonschema.Compile([]byte(schema))
	if err != nil {
		t.Errorf("%s: %v", schema, err)
		return
	}
	for _, text := range yes {
		if !a.Accepts([]byte(text)) {
			t.Errorf("%s does not accept %s", schema, text)
		}
		if err := jsonvalid.Check(schema, text); err != nil {
			t.Errorf("%s: %s: %v", schema, text, err)
		}
	}
	for _, text := range no {
		if a.Accepts([]byte(text)) {
			t.Errorf("%s accepts %s", schema, text)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 30 {
		text := written(t, a, r)
		if err := jsonvalid.Check(schema, text); err != nil {
			t.Errorf("%s accepts %s: %v", schema, text, err)
		}
	}
}

func TestWhatSchemasAccept(t *testing.T) {
	for schema, of := range map[string][2][]string{
		`true`:               {{`1`, `null`, `{"a": [1,2]}`, `[]`, `"x\n\"é😀"`, `-0.5e+3`}, {``, ` 1`, `1 `, `[ 1]`, `{"a" :1}`, `"\/"`, `"\u00e9"`, `01`, `1.`, `nul`, "\"\xc3\"", "\"\n\""}},
		`{"type":"object"}`:  {{`{}`, `{"a": 1, "b": {"c": [true]}}`, `{"a":{"a":{"a":{"a":{"a":{}}}}}}`}, {`[]`, `{"a":{"a":{"a":{"a":{"a":{"a":{}}}}}}}`}},
		`{"type":"integer"}`: {{`0`, `-7`, `123456789012345`}, {`-0`, `1.0`, `1234567890123456`, `1e3`}},
		`{"type":"integer","minimum":-12,"exclusiveMaximum":305}`:                   {{`-12`, `-9`, `0`, `7`, `99`, `299`, `304`}, {`-13`, `305`, `310`, `1000`, `-20`}},
		`{"type":"integer","minimum":17,"maximum":17}`:                              {{`17`}, {`16`, `18`, `-17`}},
		`{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991}`: {{`0`, `-5`, `999999999999999`}, nil},
		`{"type":"number","exclusiveMinimum":0,"maximum":1}`:                        {{`1`, `0.5`, `0.001`}, {`0`, `0.0`, `1.5`, `-0.5`, `2`}},
		`{"type":"number","minimum":-1,"exclusiveMaximum":2}`:                       {{`-1`, `-0.5`, `0`, `1.999`}, {`-1.5`, `2`, `-2`}},
		`{"type":"string","minLength":2,"maxLength":3}`:                             {{`"ab"`, `"éé"`, `"\n😀x"`}, {`"a"`, `"abcd"`}},
		`{"type":"string","pattern":"^[a-c]+\\d{2}$"}`:                              {{`"a12"`, `"cab99"`}, {`"12"`, `"a1"`, `"a123"`}},
		`{"type":"string","pattern":"b"}`:                                           {{`"b"`, `"abc"`}, {`"a"`, `""`}},
		`{"type":"string","pattern":"^a|c$","maxLength":2}`:                         {{`"a"`, `"ab"`, `"bc"`}, {`"ca"`, `"abc"`}},
		`{"type":"string","pattern":"^\\S\\.\"$"}`:                                  {{`"x.\""`}, {`" .\""`, "\"\u00a0.\\\"\""}},
		`{"type":"string","format":"date-time"}`:                                    {{`"2024-02-28T23:59:59Z"`, `"1999-12-31T00:00:00.5+01:30"`}, {`"2023-02-29T00:00:00Z"`, `"2024-01-01"`}},
		`{"type":"string","format":"uuid"}`:                                         {{`"123e4567-e89b-12d3-a456-426614174000"`}, {`"123"`}},
		`{"enum":["a\"b",1,null,{"x":[1,"y"]}]}`:                                    {{`"a\"b"`, `1`, `null`, `{"x":[1,"y"]}`}, {`"a"`, `2`}},
		`{"type":["string","null"],"enum":["a",1,null]}`:                            {{`"a"`, `null`}, {`1`}},
		`{"const":"only"}`:            {{`"only"`}, {`"on"`}},
		`{"type":["integer","null"]}`: {{`1`, `null`}, {`"1"`}},
		`{"anyOf":[{"type":"string","maxLength":1},{"type":"boolean"}]}`:                                  {{`"a"`, `true`}, {`1`, `"ab"`}},
		`{"allOf":[{"type":"boolean"}]}`:                                                                  {{`true`}, {`1`}},
		`{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3}`:                           {{`[1]`, `[1, 2,3]`}, {`[]`, `[1,2,3,4]`}},
		`{"type":"array","items":{"type":"integer"},"minItems":2}`:                                        {{`[1,2]`, `[1,2,3,4,5]`}, {`[1]`}},
		`{"type":"array","maxItems":0}`:                                                                   {{`[]`}, {`[1]`}},
		`{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false}`:             {{`[]`, `[1]`, `[1,"a"]`}, {`[1,"a",2]`, `["a"]`}},
		`{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"minItems":2,"maxItems":2}`: {{`[1,"a"]`}, {`[1]`, `[]`}},
		`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"boolean"},"c":{"type":"null"}},"required":["b"]}`: {
			{`{"a": 1, "b": true, "c": null}`, `{"b":true}`, `{"a":1,"b":false}`, `{"b":false,"c":null}`}, {`{}`, `{"a":1}`, `{"b":true,"a":1}`, `{"b":true,"d":1}`, `{,"b":true}`, `{"b":true,}`}},
		`{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"string"}}`: {
			{`{}`, `{"a":1}`, `{"a":1,"b":"x"}`, `{"b":"x","ab":"y"}`}, {`{"a":"x"}`, `{"b":1}`, `{"b":"x","a":1}`}},
		`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":true}`: {{`{"a":1}`, `{"a":1,"b":[{}]}`}, {`{}`, `{"b":1}`}},
		`{"type":"object","additionalProperties":{"type":"integer"},"propertyNames":{"type":"string"}}`:        {{`{}`, `{"x":1,"y":2}`}, {`{"x":"y"}`}},
		`{"type":"object","additionalProperties":false}`:                                                       {{`{}`}, {`{"a":1}`}},
		`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},"n":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["v","n"]}}}`: {
			{`{"v":1,"n":null}`, `{"v":1,"n":{"v":2,"n":{"v":3,"n":null}}}`}, {`{"v":1}`}},
		`{"type":"object","properties":{"c":{"type":"array","items":{"$ref":"#"}}},"required":["c"]}`: {{`{"c":[]}`, `{"c":[{"c":[]},{"c":[{"c":[]}]}]}`}, {`{}`}},
		`{"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"discriminator":{"propertyName":"k"},"$defs":{
			"a":{"type":"object","properties":{"k":{"const":"a","type":"string"},"x":{"type":"integer"}},"required":["k","x"]},
			"b":{"type":"object","properties":{"k":{"enum":["b","c"]}},"required":["k"]}}}`: {{`{"k":"a","x":1}`, `{"k":"c"}`}, {`{"k":"a"}`, `{"k":"b","x":1}`}},
		`{"properties":{"a":true}}`: {{`{"a":[1]}`, `{}`}, {`1`}},
		`{"type":"object","properties":{"é\n":{"type":"null"},"f":{"items":{"format":"ipv4","type":"string"}}}}`: {{`{"é\n":null,"f":["127.0.0.1"]}`}, {`{"é":null}`, `{"f":["1.2.3.256"]}`}},
	} {
		accepts(t, schema, of[0], of[1])
	}
}

// What is not supported is refused by its name, where it stands.
func TestKeywordsRefused(t *testing.T) {
	for schema, want := range map[string]struct{ at, keyword, says string }{
		`{"not":{}}`: {"", "not", `"not" is not supported`},
		`{"properties":{"a":{"items":{"if":{}}}}}`:           {"properties.a.items", "if", "not supported"},
		`{"type":"string","contentEncoding":"base64"}`:       {"", "contentEncoding", "not supported"},
		`{"type":"array","uniqueItems":true}`:                {"", "uniqueItems", "not supported"},
		`{"type":"integer","multipleOf":2}`:                  {"", "multipleOf", "not supported"},
		`{"type":"object","patternProperties":{}}`:           {"", "patternProperties", "not supported"},
		`{"oneOf":[{"type":"string"},{"type":"integer"}]}`:   {"", "oneOf", "use anyOf"},
		`{"allOf":[{},{}]}`:                                  {"", "allOf", "join the schemas"},
		`{"anyOf":[]}`:                                       {"", "anyOf", "no array of schemas"},
		`{"anyOf":[{}],"minLength":1}`:                       {"", "minLength", "beside anyOf"},
		`{"enum":["a"],"minLength":1}`:                       {"", "minLength", "beside enum"},
		`{"enum":[]}`:                                        {"", "enum", "no array of values"},
		`{"type":"strin"}`:                                   {"", "type", "no type of JSON"},
		`{"type":[]}`:                                        {"", "type", "neither a string"},
		`{"$ref":"http://x/y"}`:                              {"", "$ref", "want a place in this schema"},
		`{"$ref":"#/$defs/x"}`:                               {"", "$ref", "want a place in this schema"},
		`{"type":"string","format":"regex"}`:                 {"", "format", `"regex" is not supported`},
		`{"type":"string","pattern":"(?=a)"}`:                {"", "pattern", "of groups"},
		`{"type":"string","pattern":"\\p{L}"}`:               {"", "pattern", "of escapes"},
		`{"type":"string","pattern":"a\\b"}`:                 {"", "pattern", "of escapes"},
		`{"type":"string","pattern":"a(^b)"}`:                {"", "pattern", "at its ends alone"},
		`{"type":"string","pattern":"("}`:                    {"", "pattern", "missing closing"},
		`{"type":"string","pattern":"[[:alpha:]]"}`:          {"", "pattern", "with a backslash"},
		`{"type":"string","pattern":1}`:                      {"", "pattern", "not supported"},
		`{"type":"string","minLength":-1}`:                   {"", "minLength", "at least 0"},
		`{"type":"string","maxLength":1.5}`:                  {"", "maxLength", "at least 0"},
		`{"type":"number","minimum":0.5}`:                    {"", "minimum", "where it is an integer"},
		`{"type":"integer","minimum":"1"}`:                   {"", "minimum", "is no number"},
		`{"type":"object","properties":[]}`:                  {"", "properties", "no object of schemas"},
		`{"type":"object","required":["a"]}`:                 {"", "required", `"a", which is no property`},
		`{"type":"object","required":"a"}`:                   {"", "required", "no array"},
		`{"properties":{"a":1}}`:                             {"properties.a", "", "a schema is an object"},
		`{"type":"object","propertyNames":{"maxLength":3}}`:  {"", "propertyNames", "alone"},
		`{"type":"object","properties":{"a":true,"a":true}}`: {"", "", "twice"},
		`{"type":"integer","minimum":5,"maximum":4}`:         {"", "", "nothing has this schema"},
		`false`:        {"", "", "nothing has this schema"},
		`{"$ref":"#"}`: {"", "", "nothing has this schema"},
		`{"properties":{"a":{"$ref":"#"}},"required":["a"]}`: {"", "", "nothing has this schema"},
		`{`:                      {"", "", "no JSON"},
		`{"a":}`:                 {"", "", "no JSON"},
		``:                       {"", "", "no JSON"},
		`{} {}`:                  {"", "", "something follows"},
		`"x"`:                    {"", "", "a schema is an object"},
		strings.Repeat("[", 100): {"", "", "more than 64 deep"},
		`{"enum":[` + strings.Repeat("1,", 1<<16) + `1]}`:              {"", "", "more than"},
		`{"title":"` + strings.Repeat("x", jsonschema.MaxBytes) + `"}`: {"", "", "want at most"},
	} {
		a, err := jsonschema.Compile([]byte(schema))
		var e *jsonschema.Error
		if !errors.As(err, &e) || e.At != want.at || e.Keyword != want.keyword || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%.100s: %v, %v, want %q at %q of %q", schema, a, err, want.says, want.at, want.keyword)
		}
	}
}

// hostile are schemas that would become very large.
func hostile() map[string]string {
	doubling := `{"$ref":"#/$defs/a0","$defs":{`
	for i := range 60 {
		doubling += fmt.Sprintf(`"a%d":{"type":"object","properties":{"x":{"$ref":"#/$defs/a%d"},"y":{"$ref":"#/$defs/a%d"}}},`, i, i+1, i+1)
	}
	doubling += `"a60":{"type":"null"}}}`
	empty := `{"$ref":"#/$defs/a0","$defs":{`
	for i := range 60 {
		empty += fmt.Sprintf(`"a%d":{"anyOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	empty += `"a60":false}}`
	var names, patterns []string
	for i := range 4000 {
		names = append(names, fmt.Sprintf(`"p%d":true`, i))
		patterns = append(patterns, `{"type":"string","pattern":"^(?:a|b)*a(?:a|b){11}$"}`)
	}
	var long []string
	for i := range 8000 {
		long = append(long, fmt.Sprintf(`"%d-%s"`, i*7919, strings.Repeat("x", 20)))
	}
	return map[string]string{
		"a reference doubled":   doubling,
		"nothing, doubled":      empty,
		"many free values":      `{"type":"object","properties":{` + strings.Join(names, ",") + `}}`,
		"many patterns":         `{"anyOf":[` + strings.Join(patterns, ",") + `]}`,
		"a pattern's subsets":   `{"type":"string","pattern":"(?:a|b)*a(?:a|b){30}"}`,
		"a pattern's repeats":   `{"type":"string","pattern":"(?:(?:a{1,30}){1,30}){1,30}"}`,
		"a long string":         `{"type":"string","maxLength":1000000000}`,
		"a long array":          `{"type":"array","items":{"type":"string"},"maxItems":100000000}`,
		"long arrays of arrays": `{"type":"array","minItems":500,"items":{"type":"array","minItems":500,"items":{"type":"array","minItems":500}}}`,
		"expressions":           `{"$ref":"#/$defs/e","$defs":{"e":{"anyOf":[` + strings.Repeat(`{"type":"object","properties":{"l":{"$ref":"#/$defs/e"},"r":{"$ref":"#/$defs/e"}},"required":["l","r"]},`, 10) + `{"type":"null"}]}}}`,
		"a huge enum":           `{"enum":[` + strings.Join(long, ",") + `]}`,
		"deep arrays":           strings.Repeat(`{"type":"array","items":`, 31) + `{}` + strings.Repeat(`}`, 31),
	}
}

// Hostile schemas end soon, within memory, whether they are refused or fit.
func TestHostileSchemas(t *testing.T) {
	for name, schema := range hostile() {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			var a *grammar.Automaton
			var err error
			used := memory.Peak(func() { a, err = jsonschema.Compile([]byte(schema)) }, func(peak int64) bool { return peak < 128<<20 })
			t.Logf("%v, %d MB, %v", time.Since(begun), used>>20, err)
			if used > 256<<20 {
				t.Errorf("it takes %d MB", used>>20)
			}
			var e *jsonschema.Error
			if err != nil && !errors.Is(err, jsonschema.ErrLarge) && !errors.As(err, &e) {
				t.Error(err)
			}
			if err == nil && a.Len() > grammar.MaxStates {
				t.Errorf("%d states", a.Len())
			}
		})
	}
}

// generated is a random schema, deep as said.
func generated(r *rand.Rand, depth int) map[string]any {
	kinds := 6
	if depth > 0 {
		kinds = 11
	}
	switch r.IntN(kinds) {
	case 0:
		s := map[string]any{"type": "string"}
		if r.IntN(2) == 0 {
			s["minLength"] = r.IntN(3)
		}
		if r.IntN(2) == 0 {
			s["maxLength"] = 2 + r.IntN(4)
		}
		return s
	case 1:
		return map[string]any{"type": "string", "pattern": []string{"^a+$", "[0-9]{2}", "^(?:x|yz)*$", "é|\\n"}[r.IntN(4)]}
	case 2:
		low := r.IntN(400) - 200
		return map[string]any{"type": []string{"integer", "number"}[r.IntN(2)], []string{"minimum", "exclusiveMinimum"}[r.IntN(2)]: low, []string{"maximum", "exclusiveMaximum"}[r.IntN(2)]: low + 2 + r.IntN(300)}
	case 3:
		return map[string]any{"type": []string{"null", "boolean"}}
	case 4:
		return map[string]any{"enum": []any{"a", 1, "b\"c", nil, []any{1}}[r.IntN(5):]}
	case 5:
		return map[string]any{"type": []string{"number", "integer", "string"}[r.IntN(3)], "title": "T", "description": "d"}
	case 6, 7:
		properties, required := map[string]any{}, []string{}
		for i := range r.IntN(4) {
			name := fmt.Sprintf("p%d", i)
			properties[name] = generated(r, depth-1)
			if r.IntN(2) == 0 {
				required = append(required, name)
			}
		}
		s := map[string]any{"type": "object", "properties": properties, "required": required}
		switch r.IntN(3) {
		case 0:
			s["additionalProperties"] = false
		case 1:
			s["additionalProperties"] = generated(r, depth-1)
		}
		return s
	case 8:
		s := map[string]any{"type": "array", "items": generated(r, depth-1), "minItems": r.IntN(3)}
		if r.IntN(2) == 0 {
			s["maxItems"] = 2 + r.IntN(3)
		}
		return s
	case 9:
		return map[string]any{"anyOf": []any{generated(r, depth-1), generated(r, depth-1)}}
	}
	return map[string]any{"type": "object", "properties": map[string]any{"next": map[string]any{"anyOf": []any{map[string]any{"$ref": "#"}, map[string]any{"type": "null"}}}}}
}

// Whatever a random schema accepts is JSON, and valid.
func TestRandomSchemas(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	fit := 0
	for range 150 {
		text, err := json.Marshal(generated(r, 3))
		if err != nil {
			t.Fatal(err)
		}
		a, err := jsonschema.Compile(text)
		if errors.Is(err, jsonschema.ErrLarge) || err != nil && strings.Contains(err.Error(), "nothing has") {
			continue
		} else if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		fit++
		for range 10 {
			got := written(t, a, r)
			if err := jsonvalid.Check(string(text), got); err != nil {
				t.Fatalf("%s accepts %s: %v", text, got, err)
			}
		}
	}
	if fit < 100 {
		t.Errorf("%d of 150 fit", fit)
	}
}

// Any text is a schema that accepts JSON, or is refused.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{`{}`, `{"type":"object","properties":{"a":{"type":"string","pattern":"^a$"}},"required":["a"]}`, `{"$ref":"#"}`, `{"enum":[1,"a"]}`, `{"type":"array","prefixItems":[true],"items":false}`, `{"type":"number","minimum":-3,"exclusiveMaximum":1e2}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, schema string) {
		a, err := jsonschema.Compile([]byte(schema))
		if err != nil {
			return
		}
		if text := written(t, a, rand.New(rand.NewPCG(1, 2))); !json.Valid([]byte(text)) {
			t.Errorf("%s accepts %s", schema, text)
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	for name, schema := range map[string]string{
		"object": `{"type":"object"}`,
		"person": `{"type":"object","properties":{"name":{"type":"string","maxLength":40},"age":{"type":"integer","minimum":0,"maximum":150},"tags":{"type":"array","items":{"type":"string"}}},"required":["name","age","tags"],"additionalProperties":false}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a, err := jsonschema.Compile([]byte(schema))
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(a.Len()), "states")
			}
		})
	}
}
