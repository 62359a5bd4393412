package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// asked is a conversation as testdata has it.
type asked struct {
	Messages           []Message
	Tools, Documents   []json.RawMessage
	Generate, Continue bool
	Extra              map[string]json.RawMessage
	Tokens             Tokens
}

func (a *asked) conversation() *Conversation {
	return &Conversation{
		Messages: a.Messages, Tools: a.Tools, Documents: a.Documents, Generate: a.Generate, Continue: a.Continue, Extra: a.Extra,
		Date: time.Date(2025, 3, 9, 8, 7, 6, 0, time.UTC),
	}
}

// answers are prompts that transformers makes; null is an error.
type answers struct {
	Tokens        Tokens
	Conversations []asked
	Answers       map[string][]*string
}

func readAnswers(t testing.TB, file string) (a answers) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// Prompts are those of transformers, and conversations that it refuses are refused. CHAT_TEMPLATES
// names a folder of other templates, and CHAT_ANSWERS the file of what make.py says of them.
func TestPrompts(t *testing.T) {
	folder, file := "testdata/templates", "testdata/answers.json"
	if more := os.Getenv("CHAT_TEMPLATES"); more != "" {
		folder, file = more, os.Getenv("CHAT_ANSWERS")
	}
	all := readAnswers(t, file)
	for name, prompts := range all.Answers {
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			shown := 0
			for i, want := range prompts {
				if want != nil {
					shown++
				}
				tokens := all.Tokens
				if own := all.Conversations[i].Tokens; own != nil {
					tokens = own
				}
				tmpl, err := Parse(string(source), tokens)
				if err != nil {
					t.Fatal(err)
				}
				got, err := tmpl.Render(all.Conversations[i].conversation())
				switch {
				case want == nil && err == nil:
					t.Errorf("conversation %d gives %q, and is an error in Python", i, got)
				case want != nil && err != nil:
					t.Errorf("conversation %d: %v\n want %q", i, err, *want)
				case want != nil && got != *want:
					t.Errorf("conversation %d gives\n %q, want\n %q", i, got, *want)
				}
			}
			if shown == 0 {
				t.Error("no conversation gives a prompt")
			}
		})
	}
}
