package ollama

import (
	"cmp"
	"net/http"
	"time"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

// listed is a model in a list.
type listed struct {
	Name     string     `json:"name"`
	Model    string     `json:"model"`
	Modified *time.Time `json:"modified_at,omitempty"` // of those that can be asked
	Size     int64      `json:"size"`
	Digest   string     `json:"digest"`
	Details  details    `json:"details"`
	Expires  *time.Time `json:"expires_at,omitempty"` // of those that are ready
	Memory   *int64     `json:"size_vram,omitempty"`  // of an accelerator, of which none is used
}

type details struct {
	Parent       string   `json:"parent_model"`
	Format       string   `json:"format"`
	Family       string   `json:"family"`
	Families     []string `json:"families"`
	Parameters   string   `json:"parameter_size"`
	Quantization string   `json:"quantization_level"`
}

func detailsOf(d reply.Details) details {
	return details{"", d.Format, d.Family, []string{d.Family}, d.Parameters, d.Quantization}
}

func describe(l reply.Listing) listed {
	return listed{Name: l.Name, Model: l.Name, Size: l.Size, Digest: l.Digest, Details: detailsOf(l.Details)}
}

func (v *server) tags(w http.ResponseWriter, r *http.Request) error {
	all, err := v.replies.Models.List(r.Context())
	if err != nil {
		return err
	}
	out := []listed{}
	for _, l := range all {
		d := describe(l)
		d.Modified = &l.Modified
		out = append(out, d)
	}
	return api.Write(w, http.StatusOK, map[string][]listed{"models": out})
}

// forEver is far enough away for clients that know no other way to say it.
const forEver = 100 * 365 * 24 * time.Hour

func (v *server) ps(w http.ResponseWriter, r *http.Request) error {
	all, err := v.replies.Models.Loaded(r.Context())
	if err != nil {
		return err
	}
	out := []listed{}
	for _, l := range all {
		d, none := describe(l.Listing), int64(0)
		d.Size, d.Memory, d.Expires = l.Memory, &none, &l.Until
		if l.Until.IsZero() {
			until := time.Now().Add(forEver)
			d.Expires = &until
		}
		out = append(out, d)
	}
	return api.Write(w, http.StatusOK, map[string][]listed{"models": out})
}

type showRequest struct {
	Model string `json:"model"`
	Name  string `json:"name"` // as it was called
}

type showReply struct {
	License      string         `json:"license,omitempty"`
	Modelfile    string         `json:"modelfile"`
	Parameters   string         `json:"parameters"`
	Template     string         `json:"template"`
	Details      details        `json:"details"`
	Info         map[string]any `json:"model_info"`
	Capabilities []string       `json:"capabilities"`
	Modified     time.Time      `json:"modified_at"`
}

func (v *server) show(w http.ResponseWriter, r *http.Request) error {
	var q showRequest
	if err := api.Read(w, r, &q); err != nil {
		return err
	}
	name, err := v.named(r.Context(), q.Model, q.Name)
	if err != nil {
		return err
	}
	if name == "" {
		return api.Invalid("model", "model is missing: name one of those that are listed")
	}
	l, err := v.replies.Find(r.Context(), name)
	if err != nil {
		return err
	}
	d, family := l.Details, cmp.Or(l.Details.Family, "model")
	out := showReply{License: d.License, Modelfile: "FROM " + l.Name + "\n", Template: d.Template, Details: detailsOf(d), Modified: l.Modified, Capabilities: []string{}}
	out.Info = map[string]any{"general.architecture": family}
	if l.Context > 0 {
		out.Info[family+".context_length"] = l.Context
	}
	if l.Replies {
		out.Capabilities = append(out.Capabilities, "completion")
	}
	if l.Tools {
		out.Capabilities = append(out.Capabilities, "tools")
	}
	if l.Embeds {
		out.Capabilities = append(out.Capabilities, "embedding")
	}
	return api.Write(w, http.StatusOK, &out)
}

type pullRequest struct {
	Model  string `json:"model"`
	Name   string `json:"name"` // as it was called
	Stream *bool  `json:"stream"`
}

type progress struct {
	Status string `json:"status"`
	Digest string `json:"digest,omitempty"`
	Total  int64  `json:"total,omitempty"`
	Ready  int64  `json:"completed,omitempty"`
}

func (v *server) pull(w http.ResponseWriter, r *http.Request) error {
	var q pullRequest
	if err := api.Read(w, r, &q); err != nil {
		return err
	}
	name := cmp.Or(q.Model, q.Name)
	if name == "" {
		return api.Invalid("model", "model is missing: name the one to fetch")
	}
	done := progress{Status: "success"}
	if !isStream(q.Stream) {
		if err := v.replies.Models.Pull(r.Context(), name, func(reply.Progress) {}); err != nil {
			return err
		}
		return api.Write(w, http.StatusOK, done)
	}
	lines := api.Lines(w)
	err := v.replies.Models.Pull(r.Context(), name, func(p reply.Progress) {
		_ = lines.Send("", progress{p.Status, p.Digest, p.Total, p.Ready}) // who has left cancels the request
	})
	if err == nil {
		err = lines.Send("", done)
	}
	return finish(lines, err)
}
