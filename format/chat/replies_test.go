package chat

import (
	"os"
	"reflect"
	"testing"
)

func TestReplies(t *testing.T) {
	source, err := os.ReadFile("testdata/templates/chatml.jinja")
	if err != nil {
		t.Fatal(err)
	}
	template, err := Parse(string(source), Tokens{"bos_token": "<s>", "eos_token": "</s>"})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := ReadMessages([]byte(`[{"from": "human", "value": "a"}, {"role": "assistant", "content": "b", "weight": 0}, {"role": "user", "content": "c"}, {"from": "gpt", "value": "d"}]`))
	if err != nil {
		t.Fatal(err)
	}
	replies, err := template.Replies(&Conversation{Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range replies {
		t.Logf("%d %q %q", i, r.Prompt, r.Whole)
	}
	if len(replies) != 2 || !replies[0].Unlearnt || replies[1].Unlearnt || replies[1].Prompt[:len(replies[0].Whole)] != replies[0].Whole {
		t.Errorf("replies %+v", replies)
	}
	if _, err := template.Replies(&Conversation{Messages: messages[1:]}); err == nil {
		t.Error("a conversation that begins with a reply has prompts")
	}
}

func TestMessagesAreRead(t *testing.T) {
	got, err := ReadMessages([]byte(`[{"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}], "reasoning_content": "hm"}]`))
	want := []Message{{Role: "assistant", ToolCalls: []ToolCall{{ID: "1", Name: "f", Arguments: []byte(`{"a":1}`)}}, Reasoning: "hm"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v, want %+v", got, err, want)
	}
	for _, bad := range []string{`[]`, `{}`, `[1]`, `[{"content": "a"}]`, `[{"role": "user", "content": 1}]`, `[{"role": 3}]`, `[{"role": "user", "weight": 0.5}]`, `[{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[]"}}]}]`, ``} {
		if got, err := ReadMessages([]byte(bad)); err == nil {
			t.Errorf("%s is read as %+v", bad, got)
		}
	}
}
