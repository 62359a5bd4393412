package files

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/format/gguf"
	"github.com/tally-network/tally/format/tokenizer"
)

// GGUF returns the metadata by which a GGUF file has tokenizer, template and endings of a folder, whose parts are given.
func (t Texts) GGUF(p *Parts) ([]gguf.Pair, error) {
	g, err := tokenizer.ToGGUF(t[tokenizerName])
	if err != nil {
		return nil, err
	}
	var templates []gguf.Pair
	ends := slices.Clone(p.Ends)
	if p.Template != nil {
		for name, to := range map[string]*int32{"bos_token": &g.BOS, "eos_token": &g.EOS, "unk_token": &g.Unknown, "sep_token": &g.SEP, "cls_token": &g.CLS} { // each its own
			if id, ok := p.Tokenizer.ID(p.Template.Special(name)); ok && *to == tokenizer.None {
				*to = id
			}
		}
		for _, x := range []struct{ key, source string }{{"tokenizer.chat_template", p.Template.Source()}, {"tokenizer.chat_template.tool_use", p.Template.ToolSource()}} {
			if x.source != "" {
				templates = append(templates, gguf.Pair{Key: x.key, Data: gguf.Of(x.source)})
			}
		}
	}
	ends = slices.DeleteFunc(ends, func(id int32) bool { return id == g.EOS })
	for _, to := range []*int32{&g.EOS, &g.EOT, &g.EOM} {
		if *to == tokenizer.None && len(ends) > 0 {
			*to, ends = ends[0], ends[1:]
		}
	}
	if len(ends) > 0 {
		return nil, fmt.Errorf("%d tokens end replies, of which a GGUF file names three", len(p.Ends))
	}
	return append(g.Pairs(), templates...), nil
}
