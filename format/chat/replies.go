package chat

import "errors"

// Reply is a message of the assistant as a template renders it.
type Reply struct {
	Prompt string // what the model reads before it answers
	Whole  string // that, and the reply with what ends it

	Unlearnt bool
}

// assistant is the role of messages that models write.
const assistant = "assistant"

// Replies returns all messages of the assistant in a conversation, each as the model would have read and written it. The
// whole of one begins the prompt of the next where the template shows earlier replies as it shows the last one;
// some leave thoughts out.
func (t *Template) Replies(c *Conversation) (all []Reply, err error) {
	for i := range c.Messages {
		if c.Messages[i].Role != assistant {
			continue
		}
		if i == 0 {
			return nil, errors.New("the conversation begins with a reply: begin it with what was asked, or leave it out")
		}
		part := *c
		part.Messages, part.Generate, part.Continue = c.Messages[:i], true, false
		r := Reply{Unlearnt: c.Messages[i].Unlearnt}
		if r.Prompt, err = t.Render(&part); err != nil {
			return nil, err
		}
		part.Messages, part.Generate = c.Messages[:i+1], false
		if r.Whole, err = t.Render(&part); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}
