package jinja

import (
	"github.com/tally-network/tally/format/chat/jinja/syntax"

	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Whatever a template asks for, rendering it ends soon, with little memory.
func TestBounds(t *testing.T) {
	for _, x := range []struct{ source, why string }{
		{"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "MiB of values"},
		{"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "in each other"},
		{"{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{% for i in range(9) %}{{ m() }}{% endfor %}", "in each other"},
		{"{{ 'x' * 1000000000 }}", "MiB of values"},
		{"{{ 'x' * 9223372036854775807 }}", "MiB of values"},
		{"{{ [1] * 100000000 }}", "MiB of values"},
		{"{{ 'xx'.replace('x', 'y' * 60000000)|length }}", "MiB of values"},
		{"{{ ('a' * 3000000).split('a')|length }}", "MiB of values"},
		{"{{ ('a ' * 3000000).split()|length }}", "MiB of values"},
		{"{{ ('\\n' * 3000000).splitlines()|length }}", "MiB of values"},
		{"{{ 'x'.center(2000000000) }}", "MiB of values"},
		{"{{ 'x'|indent(2000000000) }}", "MiB of values"},
		{"{{ [1]|tojson(indent=2000000000) }}", "MiB of values"},
		{"{{ range(100)|batch(2000000000, 'x')|list }}", "MiB of values"},
		{"{{ '%2000s' % 'x' }}", "is over 1000"},
		{"{{ range(100001) }}", "more than 100000 items"},
		{"{% for i in range(100) %}{{ 'x' * 1000000 }}{% endfor %}", "writes more than 16 MiB"},
		{"{% set ns = namespace(x='x') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}", "MiB of values"},
		{"{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}", "MiB of values"},
		{"{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x == ns.x[0] }}{{ ns.x|tojson }}", "MiB of values"},
		{"{% set ns = namespace(x=[], y=[]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}", "steps"},
		{"{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}", "in each other"},
		{"{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}", "in each other"},
		{"{% for x in [[]] recursive %}{{ loop([[]]) }}{% endfor %}", "in each other"},
		{"{% set ns = namespace(g=range(3)) %}{% for i in range(5000) %}{% set ns.g = ns.g|map('abs') %}{% endfor %}{{ ns.g|list }}", "in each other"},
		{"{{ 2 ** 64 }}", "64 bits"}, {"{{ 9223372036854775807 + 1 }}", "64 bits"}, {"{{ -9223372036854775807 - 2 }}", "64 bits"},
		{strings.Repeat("(", 1000), "in each other"}, {"{{ " + strings.Repeat("(", 1000), "in each other"}, {"{{ " + strings.Repeat("not ", 1000) + "x }}", "in each other"},
		{"{{ x" + strings.Repeat("|trim", 1000) + " }}", "in a row"}, {"{{ x" + strings.Repeat(".a", 1000) + " }}", "in a row"},
		{strings.Repeat("{% if x %}", 1000), "in each other"}, {strings.Repeat("{{ 1 }}", 70000), "more than 131072"},
		{manyNames(), "too many names"},
		{strings.Repeat("x", syntax.MaxSource+1), "of at most"},
	} {
		if strings.HasPrefix(x.source, "((") {
			continue // text
		}
		begin := time.Now()
		_, err := render(x.source, &Dict{})
		if err == nil || !strings.Contains(err.Error(), x.why) {
			t.Errorf("%.100q: error %v, want %q", x.source, err, x.why)
		}
		if d := time.Since(begin); d > time.Minute {
			t.Errorf("%.100q takes %v", x.source, d)
		}
	}
}

// manyNames is a template of many names, and then as many branches.
func manyNames() string {
	var b strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&b, "{%% set x%d = 1 %%}", i)
	}
	return b.String() + strings.Repeat("{% if x %}{% endif %}", 9000)
}

func TestRefuses(t *testing.T) {
	for _, x := range []struct{ source, why string }{
		{"{% include 'x' %}", "templates cannot read files"}, {"{% import 'x' as y %}", "templates cannot read files"}, {"{% from 'x' import y %}", "templates cannot read files"},
		{"{% extends 'x' %}", "templates cannot read files"}, {"{% block a %}{% endblock %}", "put its body in its place"}, {"{% autoescape true %}{% endautoescape %}", "a chat is no HTML"},
		{"{% do x %}", `no tag is called "do"`}, {"a\n{% endif %}", `line 2: the tag "endif" closes nothing`}, {"{% if x %}", "the template ends where endif is wanted"},
		{"{{ [1, 2]|random }}", "this filter is not supported"}, {"{{ lipsum() }}", "random"}, {"{{ range }}", "cannot be printed"}, {"{{ [1]|map('abs') }}", "cannot be printed"},
		{"{{ 'a'|x }}", `no filter is called "x"`}, {"{{ 'a' is x }}", `no test is called "x"`}, {"{{ 'a'.encode() }}", "the method encode of a text is not supported"},
		{"{{ a.b.c }}", `"a" is undefined`}, {"{{ '%c' % 1 }}", "is not supported"}, {"{{ '{:>9}'.format(1) }}", "more than is supported"}, {"{{ strftime_now('%Q') }}", "is not supported"},
		{"{{ 'a' is sameas 'a' }}", "compare them by =="}, {"{{ ('a'|safe) * 2 }}", "mark it later"}, {`{{ '\N{DASH}' }}`, "write the character itself"}, {"{{ 99999999999999999999 }}", "more than 64 bits"},
		{"\xff", "no UTF-8"}, {"{{ 'a", "a string has no end"}, {"{{ ) }}", ") closes nothing"}, {"{{ ! }}", "begins nothing"}, {"{# x", "add #}"}, {"{% raw %}x", "endraw"}, {"{% break %}", "break outside a loop"},
	} {
		if _, err := render(x.source, &Dict{}); err == nil || !strings.Contains(err.Error(), x.why) {
			t.Errorf("%q: error %v, want %q", x.source, err, x.why)
		}
	}
}

func TestRefusal(t *testing.T) {
	_, err := render("{{ raise_exception('no ' ~ 1) }}", &Dict{})
	if r := (*Refusal)(nil); !errors.As(err, &r) || r.Reason != "no 1" {
		t.Error(err)
	}
}

func TestFromJSONRefuses(t *testing.T) {
	for _, s := range []string{"", "{", "[1,]", "1 2", `{"a":1}}`, "\"\xff\"", strings.Repeat("[", 200), strings.Repeat("9", 5000), "nul", `{1:2}`} {
		if v, err := FromJSON([]byte(s)); err == nil {
			t.Errorf("%.40q gives %v", s, v)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{
		"{% for m in x %}{{ m|tojson(indent=2) }}{% endfor %}", "{% macro m(a, b=1) %}{{ a[b:] }}{% endmacro %}{{ m(x) }}", "{%- set ns = namespace(a=1) -%}{{ ns.a ** 3 }}", "{{ x|map(attribute='a.0')|select('odd')|list }}",
		"{{ '%5.1f|%s' % (1, x) }}{{ '{}'.format(x) }}", "{{ x.a.b.split('.', 1)[-1]|indent|title }}", "{% raw %}{{{% endraw %}{# c -#} {%+ if x %}{% endif %}", "{{ ('a'|safe) + '<' }}{{ x[::-1] }}{{ strftime_now('%-d%j%U') }}",
	} {
		f.Add(s, `{"a": [1, "é", null, 2.5], "b": "x.y"}`)
	}
	f.Fuzz(func(t *testing.T, source, value string) {
		v, err := FromJSON([]byte(value))
		if err != nil {
			return
		}
		names := &Dict{}
		names.Set("x", v)
		a, err := render(source, names)
		if b, again := render(source, names); err == nil && (again != nil || a != b) {
			t.Errorf("%q gives %q, and then %q, %v", source, a, b, again)
		}
	})
}
