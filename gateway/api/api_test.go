package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestDecodeSaysWhatIsWrong(t *testing.T) {
	type inner struct {
		Count *int    `json:"count"`
		Share float64 `json:"share"`
		On    bool    `json:"on"`
	}
	type Embedded struct {
		Bias map[string]float64 `json:"logit_bias"`
		On   *bool              `json:"inner_on"`
	}
	type sampling struct{ Embedded }
	type outer struct {
		sampling
		Name  string         `json:"name"`
		Items []inner        `json:"items"`
		Map   map[string]int `json:"map"`
	}
	for _, x := range []struct{ name, text, param, says string }{
		{"", `{"name":"a","items":[{"count":1,"share":0.5,"on":true}],"unknown":[{}]}`, "", ""},
		{"", `{"name":1}`, "name", "name is a number: want a string"},
		{"", `{"items":{}}`, "items", "items is an object: want an array"},
		{"", `{"items":[{"count":1.5}]}`, "items.count", "items.count is 1.5: want an integer"},
		{"", `{"items":[{"count":true}]}`, "items.count", "items.count is a boolean: want an integer"},
		{"", `{"items":[{"share":"x"}]}`, "items.share", "items.share is a string: want a number"},
		{"", `{"items":[{"on":[]}]}`, "items.on", "items.on is an array: want true or false"},
		{"", `{"map":7}`, "map", "map is a number: want an object"},
		{"", `{"logit_bias":7}`, "logit_bias", "logit_bias is a number: want an object"},
		{"", `{"logit_bias":{"5":"x"}}`, "logit_bias", "logit_bias is a string: want a number"},
		{"", `{"inner_on":7}`, "inner_on", "inner_on is a number: want true or false"},
		{"", `"x"`, "", "the body is a string: want an object"},
		{"part[3]", `{"name":1}`, "part[3].name", "part[3].name is a number"},
		{"part", `7`, "part", "part is a number: want an object"},
		{"", `{"name":"a"} x`, "", "the body is not JSON: byte 14"},
		{"", `{"name":"`, "", "the body is not JSON"},
		{"", strings.Repeat("[", maxDepth+1), "", "nested more than 64 deep"},
		{"", `{"name":"` + strings.Repeat("[", 200) + `\"["}`, "", ""},
		{"", `{"map":{}` + strings.Repeat(",", maxValues+1) + `}`, "", "more than 262144 values"},
	} {
		err := Decode(x.name, []byte(x.text), new(outer))
		var f *Fault
		if x.says == "" {
			if err != nil {
				t.Errorf("%.60s: %v", x.text, err)
			}
			continue
		}
		if !errors.As(err, &f) || f.Status != http.StatusBadRequest || f.Param != x.param || !strings.Contains(f.Message, x.says) {
			t.Errorf("%.60s: %v, want %s: %q", x.text, err, x.param, x.says)
		}
	}
}

func TestRefuse(t *testing.T) {
	type refused struct {
		Audio  json.RawMessage `json:"audio" why:"replies are text"`
		Format json.RawMessage `json:"format" but:"{\"type\":\"text\"}|1" why:"none yet"`
	}
	for _, x := range []struct{ text, says string }{
		{`{}`, ""}, {`{"audio":null}`, ""}, {`{"format": { "type" : "text" }}`, ""}, {`{"format":1}`, ""},
		{`{"audio":false}`, "audio is not supported: replies are text; leave it out"},
		{`{"format":{"type":"json"}}`, `format is not supported: none yet; leave it out, or set it to {"type":"text"} or 1`},
		{`{"format":"text"}`, "format is not supported"},
	} {
		var r refused
		if err := json.Unmarshal([]byte(x.text), &r); err != nil {
			t.Fatal(err)
		}
		if err := Refuse(&r); (err != nil) != (x.says != "") || err != nil && !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, want %q", x.text, err, x.says)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, x := range []struct {
		err    error
		status int
	}{
		{fmt.Errorf("open: %w", Invalid("a", "b")), 400}, {&http.MaxBytesError{Limit: 9}, 413}, {fmt.Errorf("x: %w", context.Canceled), statusGone},
		{context.DeadlineExceeded, 504}, {errors.New("/etc/secret"), 500},
	} {
		if f := FaultOf(x.err); f.Status != x.status || strings.Contains(f.Message, "secret") {
			t.Errorf("%v: %+v, want %d", x.err, f, x.status)
		}
	}
	h := http.Header{}
	(&Fault{Retry: 1200 * time.Millisecond}).Headers(h)
	if h.Get("Retry-After") != "2" {
		t.Errorf("%v", h)
	}
}

func TestTexts(t *testing.T) {
	for _, x := range []struct {
		text string
		n    int
		says string
	}{{``, 0, ""}, {`null`, 0, ""}, {`"a"`, 1, ""}, {`["a","b"]`, 2, ""}, {`["a","b","c"]`, 0, "at most 2"}, {`7`, 0, "neither"}, {`[7]`, 0, "stop is a number"}} {
		all, err := Texts("stop", json.RawMessage(x.text), 2)
		if x.says == "" && (err != nil || len(all) != x.n) || x.says != "" && (err == nil || !strings.Contains(err.Error(), x.says)) {
			t.Errorf("%s: %q %v", x.text, all, err)
		}
	}
}

func TestStreams(t *testing.T) {
	w := httptest.NewRecorder()
	s := Events(w)
	if s.Begun() {
		t.Error("begun before anything was sent")
	}
	for _, err := range []error{s.Send("a", "<x>\n"), s.Send("", 1), s.Done()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, want := w.Body.String(), "event: a\ndata: \"<x>\\n\"\n\ndata: 1\n\ndata: [DONE]\n\n"; got != want || !w.Flushed {
		t.Errorf("%q, want %q", got, want)
	}
	if err := s.Send("", func() {}); err == nil {
		t.Error("a function was sent")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":"\\\""}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var v any
		if why := tooMuch(text); why != "" && json.Valid(text) && len(text) < maxDepth {
			t.Fatal(why)
		}
		_ = Decode("x", text, &v)
		_, _ = Texts("x", json.RawMessage(text), 3)
	})
}
