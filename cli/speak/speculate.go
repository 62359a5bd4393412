package speak

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/replies"
)

// speculating are the flags of speculative decoding, as vLLM and llama.cpp call it.
type speculating struct{ method, draft string }

func (s *speculating) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.method, "speculative", "ngram", "how tokens are drafted that are read together: ngram (from the text itself) or off")
	cmd.Flags().StringVar(&s.draft, "draft-model", "", "smaller model with the same tokens that drafts as well, where the text itself does not")
}

// parse returns what they say, and the path of the draft model; "": none.
func (s *speculating) parse() (x replies.Speculation, path string, err error) {
	switch s.method {
	case "ngram":
		x.Ngram = true
	case "off":
	default:
		return x, "", fmt.Errorf("--speculative %.20q: want ngram or off", s.method)
	}
	if s.draft != "" {
		if path, err = locate(s.draft); err != nil {
			return x, "", fmt.Errorf("--draft-model: %w", err)
		}
	}
	return x, path, nil
}

// open is parse, and opens the draft model; nil: there is none.
func (s *speculating) open() (x replies.Speculation, draft *files.Files, err error) {
	x, path, err := s.parse()
	if err != nil || path == "" {
		return x, nil, err
	}
	if draft, err = files.Open(path); err != nil {
		return x, nil, fmt.Errorf("--draft-model: %w", err)
	}
	x.Model = draft.Weights
	return x, draft, nil
}
