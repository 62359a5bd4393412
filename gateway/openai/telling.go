package openai

import (
	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

// telling makes a response of the events of a reply, and tells each step if somebody streams it.
type telling struct {
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

func (t *telling) send(e responseEvent) error {
	if t.stream == nil {
		return nil
	}
	e.Sequence = t.count
	t.count++
	return t.stream.Send(e.Type, &e)
}

func (t *telling) all(events ...responseEvent) error {
	for _, e := range events {
		if err := t.send(e); err != nil {
			return err
		}
	}
	return nil
}

// tell goes through a reply to its end.
func (t *telling) tell(run *reply.Run) error {
	first := true
	for e, err := range run.Events() {
		if err != nil {
			return err
		}
		if first {
			first = false
			if err := t.all(responseEvent{Type: "response.created", Response: &t.object}, responseEvent{Type: "response.in_progress", Response: &t.object}); err != nil {
				return err
			}
		}
		if err := t.take(run, e); err != nil {
			return err
		}
	}
	return t.send(responseEvent{Type: "response." + t.object.Status, Response: &t.object})
}

func (t *telling) take(run *reply.Run, e reply.Event) error {
	if e.Text != "" {
		if err := t.write(e.Text); err != nil {
			return err
		}
	}
	if t.open && (len(e.Calls) > 0 || e.End != nil) {
		if err := t.shut(e.End); err != nil {
			return err
		}
	}
	for _, c := range e.Calls {
		if err := t.call(c); err != nil {
			return err
		}
	}
	if e.End != nil {
		t.object.end(run, e.End)
	}
	return nil
}

// write appends to the message that is open, or opens one.
func (t *telling) write(text string) error {
	if !t.open {
		t.open = true
		item := outputItem{ID: "msg_" + reply.NewID(24), Type: "message", Status: "in_progress", Role: "assistant", Content: []outputText{}}
		t.object.Output = append(t.object.Output, item)
		at, zero, part := len(t.object.Output)-1, 0, newOutputText("")
		err := t.all(
			responseEvent{Type: "response.output_item.added", Output: &at, Item: &item},
			responseEvent{Type: "response.content_part.added", Output: &at, Content: &zero, ItemID: item.ID, Part: &part},
		)
		if err != nil {
			return err
		}
	}
	t.text = append(t.text, text...)
	at, zero := len(t.object.Output)-1, 0
	return t.send(responseEvent{Type: "response.output_text.delta", Output: &at, Content: &zero, ItemID: t.object.Output[at].ID, Delta: &text, Logprobs: []struct{}{}})
}

// shut ends the message that is open.
func (t *telling) shut(end *reply.End) error {
	at, zero := len(t.object.Output)-1, 0
	item, text := &t.object.Output[at], string(t.text)
	part := newOutputText(text)
	item.Content, item.Status = []outputText{part}, "completed"
	if end != nil && end.Reason == reply.Length {
		item.Status = "incomplete"
	}
	t.open, t.text = false, nil
	return t.all(
		responseEvent{Type: "response.output_text.done", Output: &at, Content: &zero, ItemID: item.ID, Text: &text, Logprobs: []struct{}{}},
		responseEvent{Type: "response.content_part.done", Output: &at, Content: &zero, ItemID: item.ID, Part: &part},
		responseEvent{Type: "response.output_item.done", Output: &at, Item: item},
	)
}

func (t *telling) call(c reply.Call) error {
	args, none := string(c.Arguments), ""
	item := outputItem{ID: "fc_" + reply.NewID(24), Type: "function_call", Status: "completed", CallID: c.ID, Name: c.Name, Arguments: &args}
	begun := item
	begun.Status, begun.Arguments = "in_progress", &none
	t.object.Output = append(t.object.Output, item)
	at := len(t.object.Output) - 1
	return t.all(
		responseEvent{Type: "response.output_item.added", Output: &at, Item: &begun},
		responseEvent{Type: "response.function_call_arguments.delta", Output: &at, ItemID: item.ID, Delta: &args},
		responseEvent{Type: "response.function_call_arguments.done", Output: &at, ItemID: item.ID, Name: c.Name, Arguments: &args},
		responseEvent{Type: "response.output_item.done", Output: &at, Item: &item},
	)
}

// fail tells that the reply broke off.
func (t *telling) fail(f *api.Fault) {
	t.object.Status = "failed"
	t.object.Error = map[string]string{"code": "server_error", "message": f.Message}
	_ = t.send(responseEvent{Type: "response.failed", Response: &t.object}) // who has left needs no error
}
