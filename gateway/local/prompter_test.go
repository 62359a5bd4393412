package local

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/format/chat"
	"github.com/tally-network/tally/gateway/reply"
)

func TestTemplated(t *testing.T) {
	template, err := chat.Parse(`{% for t in tools or [] %}{{ t.function.name }}({{ t.function.parameters | tojson }})
{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content or '' }}{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor %}{% if m.role == 'tool' %} of {{ m.name }} {{ m.tool_call_id }}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}{% if messages[0].role == 'pope' %}{{ raise_exception('no popes') }}{% endif %}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := prompter{template}
	c := &reply.Conversation{
		Date:  time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
		Tools: []reply.Tool{{Name: "weather", Description: "of a city", Parameters: json.RawMessage(`{"type":"object"}`)}},
		Messages: []reply.Message{
			{Role: "user", Text: "Rain?"}, {Role: "assistant", Calls: []reply.Call{{ID: "abcdefghi", Name: "weather", Arguments: json.RawMessage(`{"city":"Zürich"}`)}}},
			{Role: "tool", Text: "yes", CallID: "abcdefghi", Name: "weather"},
		},
	}
	got, err := p.Prompt(c)
	want := "weather({\"type\": \"object\"})\n<|im_start|>user\nRain?<|im_end|>\n<|im_start|>assistant\n[weather {\"city\": \"Zürich\"}]<|im_end|>\n<|im_start|>tool\nyes of weather abcdefghi<|im_end|>\n<|im_start|>assistant\n"
	if err != nil || got != want {
		t.Errorf("%q %v, want %q", got, err, want)
	}
	c.Tools, c.Messages, c.Continue = nil, []reply.Message{{Role: "user", Text: "Rain?"}, {Role: "assistant", Text: "It"}}, true
	if got, err := p.Prompt(c); err != nil || got != "<|im_start|>user\nRain?<|im_end|>\n<|im_start|>assistant\nIt" {
		t.Errorf("%q %v", got, err)
	}
	c.Messages, c.Continue = []reply.Message{{Role: "pope"}}, false
	if _, err := p.Prompt(c); err == nil || !strings.Contains(err.Error(), "no popes") {
		t.Errorf("%v", err)
	}
}
