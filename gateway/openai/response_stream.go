package openai

import (
	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

// responseBuilder makes a response of the events of a reply, and sends each step if somebody streams it.
type responseBuilder struct {
	object responseObject
	stream *api.Stream // or nil
	count  int         // events so far
	text   []byte      // of the message that is open
	open   bool
}

// responseEvent is a step of a response.
type responseEvent struct {
	Type      string          `json:"type"`
	Sequence  int             `json:"sequence_number"`
	Response  *responseObject `json:"response,omitempty"`
	Output    *int            `json:"output_index,omitempty"`
	Content   *int            `json:"content_index,omitempty"`
	ItemID    string          `json:"item_id,omitempty"`
	Item      *outputItem     `json:"item,omitempty"`
	Part      *outputText     `json:"part,omitempty"`
	Delta     *string         `json:"delta,omitempty"`
	Text      *string         `json:"text,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments *string         `json:"arguments,omitempty"`
	Logprobs  []struct{}      `json:"logprobs,omitzero"`
}

func (b *responseBuilder) send(e responseEvent) error {
	if b.stream == nil {
		return nil
	}
	e.Sequence = b.count
	b.count++
	return b.stream.Send(e.Type, &e)
}

func (b *responseBuilder) all(events ...responseEvent) error {
	for _, e := range events {
		if err := b.send(e); err != nil {
			return err
		}
	}
	return nil
}

// build goes through a reply to its end.
func (b *responseBuilder) build(run *reply.Run) error {
	first := true
	for e, err := range run.Events() {
		if err != nil {
			return err
		}
		if first {
			first = false
			if err := b.all(responseEvent{Type: "response.created", Response: &b.object}, responseEvent{Type: "response.in_progress", Response: &b.object}); err != nil {
				return err
			}
		}
		if err := b.take(run, e); err != nil {
			return err
		}
	}
	return b.send(responseEvent{Type: "response." + b.object.Status, Response: &b.object})
}

func (b *responseBuilder) take(run *reply.Run, e reply.Event) error {
	if e.Text != "" {
		if err := b.write(e.Text); err != nil {
			return err
		}
	}
	if b.open && (len(e.Calls) > 0 || e.End != nil) {
		if err := b.shut(e.End); err != nil {
			return err
		}
	}
	for _, c := range e.Calls {
		if err := b.call(c); err != nil {
			return err
		}
	}
	if e.End != nil {
		b.object.end(run, e.End)
	}
	return nil
}

// write appends to the message that is open, or opens one.
func (b *responseBuilder) write(text string) error {
	if !b.open {
		b.open = true
		item := outputItem{ID: "msg_" + reply.NewID(24), Type: "message", Status: "in_progress", Role: "assistant", Content: []outputText{}}
		b.object.Output = append(b.object.Output, item)
		at, zero, part := len(b.object.Output)-1, 0, newOutputText("")
		err := b.all(
			responseEvent{Type: "response.output_item.added", Output: &at, Item: &item},
			responseEvent{Type: "response.content_part.added", Output: &at, Content: &zero, ItemID: item.ID, Part: &part},
		)
		if err != nil {
			return err
		}
	}
	b.text = append(b.text, text...)
	at, zero := len(b.object.Output)-1, 0
	return b.send(responseEvent{Type: "response.output_text.delta", Output: &at, Content: &zero, ItemID: b.object.Output[at].ID, Delta: &text, Logprobs: []struct{}{}})
}

// shut ends the message that is open.
func (b *responseBuilder) shut(end *reply.End) error {
	at, zero := len(b.object.Output)-1, 0
	item, text := &b.object.Output[at], string(b.text)
	part := newOutputText(text)
	item.Content, item.Status = []outputText{part}, "completed"
	if end != nil && end.Reason == reply.Length {
		item.Status = "incomplete"
	}
	b.open, b.text = false, nil
	return b.all(
		responseEvent{Type: "response.output_text.done", Output: &at, Content: &zero, ItemID: item.ID, Text: &text, Logprobs: []struct{}{}},
		responseEvent{Type: "response.content_part.done", Output: &at, Content: &zero, ItemID: item.ID, Part: &part},
		responseEvent{Type: "response.output_item.done", Output: &at, Item: item},
	)
}

func (b *responseBuilder) call(c reply.Call) error {
	args, none := string(c.Arguments), ""
	item := outputItem{ID: "fc_" + reply.NewID(24), Type: "function_call", Status: "completed", CallID: c.ID, Name: c.Name, Arguments: &args}
	begun := item
	begun.Status, begun.Arguments = "in_progress", &none
	b.object.Output = append(b.object.Output, item)
	at := len(b.object.Output) - 1
	return b.all(
		responseEvent{Type: "response.output_item.added", Output: &at, Item: &begun},
		responseEvent{Type: "response.function_call_arguments.delta", Output: &at, ItemID: item.ID, Delta: &args},
		responseEvent{Type: "response.function_call_arguments.done", Output: &at, ItemID: item.ID, Name: c.Name, Arguments: &args},
		responseEvent{Type: "response.output_item.done", Output: &at, Item: &item},
	)
}

// fail says that the reply broke off.
func (b *responseBuilder) fail(f *api.Fault) {
	b.object.Status = "failed"
	b.object.Error = map[string]string{"code": "server_error", "message": f.Message}
	_ = b.send(responseEvent{Type: "response.failed", Response: &b.object}) // who has left needs no error
}
