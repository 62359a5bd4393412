package anthropic

import (
	"encoding/json"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

// message is a whole reply.
type message struct {
	ID      string        `json:"id"`
	Type    string        `json:"type"`
	Role    string        `json:"role"`
	Model   string        `json:"model"`
	Content []content     `json:"content"`
	Reason  *string       `json:"stop_reason"`
	Stop    *string       `json:"stop_sequence"`
	Usage   usage         `json:"usage"`
	Tally   *reply.Report `json:"tally,omitempty"`
}

type usage struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
	Made   int `json:"cache_creation_input_tokens"`
	Cached int `json:"cache_read_input_tokens"`
}

// content is a block of a reply.
type content struct {
	Type  string          `json:"type"`
	Text  *string         `json:"text,omitempty"`
	ID    string          `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
}

var reasons = map[reply.Reason]string{reply.Stop: "end_turn", reply.Length: "max_tokens", reply.Calls: "tool_use"}

func newMessage(r *reply.Run) message {
	return message{ID: "msg_" + reply.NewID(24), Type: "message", Role: "assistant", Model: r.Model.Name, Content: []content{}, Usage: usage{Input: r.Read}}
}

// messageBuilder makes a message of the events of a reply, and sends each step if somebody streams it.
type messageBuilder struct {
	message message
	stream  *api.Stream // or nil
	text    []byte      // of the block that is open
	open    bool
}

// event is a step of a stream.
type event struct {
	Type    string        `json:"type"`
	Message *message      `json:"message,omitempty"`
	Index   *int          `json:"index,omitempty"`
	Block   *content      `json:"content_block,omitempty"`
	Delta   any           `json:"delta,omitempty"`
	Usage   *usage        `json:"usage,omitempty"`
	Tally   *reply.Report `json:"tally,omitempty"`
}

type delta struct {
	Type string  `json:"type"`
	Text *string `json:"text,omitempty"`
	JSON *string `json:"partial_json,omitempty"`
}

type ending struct {
	Reason *string `json:"stop_reason"`
	Stop   *string `json:"stop_sequence"`
}

func (b *messageBuilder) send(events ...event) error {
	if b.stream == nil {
		return nil
	}
	for i := range events {
		if err := b.stream.Send(events[i].Type, &events[i]); err != nil {
			return err
		}
	}
	return nil
}

// build goes through a reply to its end.
func (b *messageBuilder) build(run *reply.Run) error {
	first := true
	for e, err := range run.Events() {
		if err != nil {
			return err
		}
		if first {
			first = false
			if err := b.send(event{Type: "message_start", Message: &b.message}, event{Type: "ping"}); err != nil {
				return err
			}
		}
		if err := b.take(e); err != nil {
			return err
		}
		if e.End != nil {
			b.end(run, e.End)
		}
	}
	m := &b.message
	return b.send(event{Type: "message_delta", Delta: &ending{m.Reason, m.Stop}, Usage: &m.Usage, Tally: m.Tally}, event{Type: "message_stop"})
}

func (b *messageBuilder) take(e reply.Event) error {
	if e.Text != "" {
		if err := b.write(e.Text); err != nil {
			return err
		}
	}
	if b.open && (len(e.Calls) > 0 || e.End != nil) {
		if err := b.shut(); err != nil {
			return err
		}
	}
	for _, c := range e.Calls {
		if err := b.call(c); err != nil {
			return err
		}
	}
	return nil
}

// write appends to the block that is open, or opens one.
func (b *messageBuilder) write(text string) error {
	if !b.open {
		b.open = true
		empty := ""
		b.message.Content = append(b.message.Content, content{Type: "text", Text: &empty})
		at := len(b.message.Content) - 1
		if err := b.send(event{Type: "content_block_start", Index: &at, Block: &b.message.Content[at]}); err != nil {
			return err
		}
	}
	b.text = append(b.text, text...)
	at := len(b.message.Content) - 1
	return b.send(event{Type: "content_block_delta", Index: &at, Delta: &delta{Type: "text_delta", Text: &text}})
}

// shut ends the block that is open.
func (b *messageBuilder) shut() error {
	at, text := len(b.message.Content)-1, string(b.text)
	b.message.Content[at].Text = &text
	b.open, b.text = false, nil
	return b.send(event{Type: "content_block_stop", Index: &at})
}

func (b *messageBuilder) call(c reply.Call) error {
	at, args := len(b.message.Content), string(c.Arguments)
	block := content{Type: "tool_use", ID: c.ID, Name: c.Name, Input: c.Arguments}
	begun := block
	begun.Input = json.RawMessage("{}")
	b.message.Content = append(b.message.Content, block)
	return b.send(
		event{Type: "content_block_start", Index: &at, Block: &begun},
		event{Type: "content_block_delta", Index: &at, Delta: &delta{Type: "input_json_delta", JSON: &args}},
		event{Type: "content_block_stop", Index: &at},
	)
}

// end says why the reply is over.
func (b *messageBuilder) end(run *reply.Run, e *reply.End) {
	m, reason := &b.message, reasons[e.Reason]
	if e.Stop != "" {
		m.Stop = &e.Stop
		if e.Reason == reply.Stop {
			reason = "stop_sequence"
		}
	}
	report := run.Report()
	m.Reason, m.Usage.Output, m.Tally = &reason, run.Written(), &report
}
