package ollama

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

type generateRequest struct {
	Model     string          `json:"model"`
	Prompt    string          `json:"prompt"`
	System    string          `json:"system"`
	Raw       bool            `json:"raw"`
	Options   options         `json:"options"`
	Stream    *bool           `json:"stream"`
	KeepAlive json.RawMessage `json:"keep_alive"`
	Format    json.RawMessage `json:"format"`
	refused
	generateRefused
}

type generateRefused struct {
	Suffix   json.RawMessage `json:"suffix" but:"\"\"" why:"text is not filled in"`
	Template json.RawMessage `json:"template" but:"\"\"" why:"a model has its own; send raw: true to write the prompt yourself"`
	Images   json.RawMessage `json:"images" but:"[]" why:"models here read text"`
	Context  json.RawMessage `json:"context" but:"[]" why:"it is deprecated; send messages to /api/chat"`
}

func (v *server) generate(w http.ResponseWriter, r *http.Request) error {
	var q generateRequest
	if err := api.Read(w, r, &q); err != nil {
		return err
	}
	for _, fields := range []any{&q.refused, &q.generateRefused} {
		if err := api.Refuse(fields); err != nil {
			return err
		}
	}
	a := &reply.Ask{Field: "prompt"}
	if q.Raw {
		a.Prompts = []reply.Prompt{{Text: q.Prompt}}
	} else {
		a.Chat = &reply.Conversation{Messages: []reply.Message{{Role: "user", Text: q.Prompt}}}
		if q.System != "" {
			a.Chat.Messages = append([]reply.Message{{Role: "system", Text: q.System}}, a.Chat.Messages...)
		}
	}
	s := asked{ask: a, options: &q.Options, keep: q.KeepAlive, stream: isStream(q.Stream), idle: q.Prompt == ""}
	var err error
	if a.Format, err = readFormat(q.Format); err != nil {
		return err
	}
	if a.Model, err = v.named(r.Context(), q.Model, ""); err != nil {
		return err
	}
	return v.answer(w, r, s)
}

// asked is a request to generate or chat, once it is read.
type asked struct {
	ask     *reply.Ask
	options *options
	keep    json.RawMessage
	stream  bool
	chat    bool
	idle    bool // there is nothing to reply to: the model is only made ready, or let go
}

// object is a reply, or a piece of one.
type object struct {
	Model    string        `json:"model"`
	Created  string        `json:"created_at"`
	Response *string       `json:"response,omitempty"` // of generate
	Message  *message      `json:"message,omitempty"`  // of chat
	Done     bool          `json:"done"`
	Reason   string        `json:"done_reason,omitempty"`
	Tally    *reply.Report `json:"tally,omitempty"`
	durations
}

// durations are in nanoseconds.
type durations struct {
	Total    time.Duration `json:"total_duration,omitempty"`
	Load     time.Duration `json:"load_duration,omitempty"`
	Read     int           `json:"prompt_eval_count,omitempty"`
	ReadTime time.Duration `json:"prompt_eval_duration,omitempty"`
	Written  int           `json:"eval_count,omitempty"`
	Writing  time.Duration `json:"eval_duration,omitempty"`
}

func now() string { return time.Now().UTC().Format(time.RFC3339Nano) }

func (s *asked) object(model string) object { return object{Model: model, Created: now()} }

// say puts text and calls where the call has them.
func (s *asked) say(o *object, text string, calls []reply.Call) {
	if !s.chat {
		o.Response = &text
		return
	}
	o.Message = &message{Role: "assistant", Content: text}
	for _, c := range calls {
		t := toolCall{ID: c.ID}
		t.Function.Index, t.Function.Name, t.Function.Arguments = len(o.Message.ToolCalls), c.Name, c.Arguments
		o.Message.ToolCalls = append(o.Message.ToolCalls, t)
	}
}

func (v *server) answer(w http.ResponseWriter, r *http.Request, s asked) (err error) {
	if s.ask.Keep, err = keepAlive(s.keep); err != nil {
		return err
	}
	if s.idle {
		return v.ready(w, r, s)
	}
	if err := s.ask.ReadHeaders(r.Header); err != nil {
		return err
	}
	if err := s.options.ask(s.ask); err != nil {
		return err
	}
	run, err := v.replies.Begin(r.Context(), s.ask)
	if err != nil {
		return err
	}
	defer run.Close()
	if s.stream {
		lines := api.Lines(w)
		return finish(lines, s.tell(lines, run))
	}
	all, err := run.Collect()
	if err != nil {
		return err
	}
	o := s.object(run.Model.Name)
	s.say(&o, all[0].Text, all[0].Calls)
	o.end(run, &all[0].End)
	return api.Write(w, http.StatusOK, &o)
}

// tell sends a reply as it comes.
func (s *asked) tell(lines *api.Stream, run *reply.Run) error {
	for e, err := range run.Events() {
		if err != nil {
			return err
		}
		if e.End == nil || e.Text != "" || len(e.Calls) > 0 {
			o := s.object(run.Model.Name)
			s.say(&o, e.Text, e.Calls)
			if err := lines.Send("", &o); err != nil {
				return err
			}
		}
		if e.End != nil {
			o := s.object(run.Model.Name)
			s.say(&o, "", nil)
			o.end(run, e.End)
			return lines.Send("", &o)
		}
	}
	return nil
}

// end completes the last piece of a reply.
func (o *object) end(run *reply.Run, e *reply.End) {
	o.Done, o.Reason = true, "stop"
	if e.Reason == reply.Length {
		o.Reason = "length"
	}
	report, t := run.Report(), run.Times
	o.Tally = &report
	o.durations = durations{time.Since(t.Begun), t.Load, run.Read, t.Read, run.Written(), t.Write}
}

// ready makes a model ready, or lets it go.
func (v *server) ready(w http.ResponseWriter, r *http.Request, s asked) error {
	unload := s.ask.Keep != nil && *s.ask.Keep == 0
	if unload && !reply.IsOwner(r.Context()) {
		return &api.Fault{Status: http.StatusForbidden, Code: "not_owner", Param: "keep_alive", Message: "only an owner's key may unload a model, which others use as well"}
	}
	m, err := v.replies.Open(r.Context(), s.ask)
	if err != nil {
		return err
	}
	o := s.object(m.Name)
	s.say(&o, "", nil)
	o.Done, o.Reason = true, "load"
	if unload {
		o.Reason = "unload"
	}
	return api.Write(w, http.StatusOK, &o)
}
