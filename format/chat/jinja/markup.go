package jinja

import (
	"errors"
	"strings"
)

// markup is text that filter safe has marked as HTML. It is text in all ways but one: what is added
// to it is escaped. Chats have no HTML, and templates mark text all the same.
type markup string

// plain returns text without its mark.
func plain(v Value) Value {
	if m, ok := v.(markup); ok {
		return string(m)
	}
	return v
}

// remarked marks what a text that was marked has become.
func remarked(v Value) Value {
	switch v := v.(type) {
	case string:
		return markup(v)
	case *List:
		out := &List{make([]Value, len(v.Items))}
		for i, x := range v.Items {
			out.Items[i] = remarked(x)
		}
		return out
	}
	return v
}

var (
	keepMark  = set("trim upper lower capitalize title string center indent reverse")
	escapeArg = set("replace join format ljust rjust center partition rpartition")
)

var errMarkup = errors.New("text that filter safe has marked cannot be used so: mark it later")

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

// escaped returns a text in which HTML's signs are escaped, unless it is marked.
func (r *run) escaped(v Value) (string, error) {
	if m, ok := v.(markup); ok {
		return string(m), nil
	}
	s, err := texts([]Value{v})
	if err != nil {
		return "", err
	}
	return escapes.Replace(s[0]), r.make(5 * len(s[0]))
}

// operateMarkup is operate, where one of both is marked.
func (r *run) operateMarkup(op string, x, y Value) (Value, error) {
	if op != "+" {
		return nil, errMarkup
	}
	a, err := r.escaped(x)
	if err != nil {
		return nil, err
	}
	b, err := r.escaped(y)
	if err != nil {
		return nil, err
	}
	return markup(a + b), r.make(len(a) + len(b))
}

// markupMethod is method, of marked text.
func markupMethod(m markup, id string) (Value, bool, error) {
	v, ok, err := method(string(m), id)
	f, isFunction := v.(*function)
	if !ok || err != nil || !isFunction {
		return v, ok, err
	}
	return &function{id, func(r *run, a arguments) (Value, error) {
		if escapeArg[id] {
			return nil, errMarkup
		}
		v, err := f.call(r, a)
		return remarked(v), err
	}}, true, nil
}
