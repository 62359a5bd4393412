"""Asks transformers what templates give, and writes answers.json.

    python make.py          renders the templates below and 1,500 drawn ones
    python make.py draw N   writes answers for N others, drawn anew, to standard output

An answer is [template, text], or [template, null] where Python raises an error.
"""

import copy
import json
import os
import random
import sys
from datetime import datetime as real

from transformers.utils import chat_template_utils as utils

HERE = os.path.dirname(os.path.abspath(__file__))

NAMES = {
    "s": "Hello, <World> & 'all'\n  of you ", "empty": "", "u": "Straße ΟΔΟΣ İx ǆ é \u00a0\u3000", "quote": "it's \"so\"", "odd": "\x00\x1f\x7f\u200b\ue000😀\u2028\x85",
    "n": 7, "zero": 0, "neg": -3, "f": 2.5, "big": 12345678901234567890123, "huge": 1e300, "tiny": 1e-7, "t": True, "no": False, "none_": None,
    "list": [3, 1, 2], "words": ["b", "A", "c", "a", "B"], "nested": [[1, 2], [3, [4, None]], []], "mixed": [1, "1", 1.0, None, True, [], {}],
    "d": {"b": 1, "a": [1, {"x": "y"}], "items": "own", "é": "ü", "n": None, "f": 1e16}, "people": [
        {"name": "Ann", "age": 30, "tags": ["x", "y"], "home": {"city": "Oslo"}}, {"name": "bob", "age": 25, "tags": [], "home": {"city": "Rome"}},
        {"name": "Cid", "age": 30, "tags": ["z"], "home": {"city": "oslo"}}, {"name": "dee", "home": {}}],
    "schema": {"type": "object", "properties": {"q": {"type": "string", "description": "what's \"q\"?"}, "n": {"type": ["integer", "null"], "default": 1.50, "maximum": 18446744073709551615}}, "required": ["q"]},
    "lines": "a\n\n  b\r\nc\x0bd\u2028e\n", "think": "<think>\nwhy\n</think>\n\nbecause", "path": "a.b.c..d",
}

DATE = real(2024, 7, 26, 9, 5, 3, 42)


class Fixed(real):
    @classmethod
    def now(cls, tz=None):
        return DATE


utils.datetime = Fixed

WRITTEN = r"""
{{ s }}|{{ s|trim }}|{{ s.strip() }}|{{ s|upper }}|{{ s|length }}
{{ u|upper }}|{{ u|lower }}|{{ u.title() }}|{{ u|title }}|{{ u|capitalize }}|{{ u.swapcase() }}|{{ u.capitalize() }}
{{ d }}|{{ nested }}|{{ mixed }}|{{ people }}|{{ schema }}
{{ d|tojson }}|{{ nested|tojson }}|{{ mixed|tojson }}|{{ people|tojson }}|{{ schema|tojson }}
{{ d|tojson(indent=2) }}|{{ nested|tojson(indent=4) }}|{{ [] |tojson(indent=1) }}|{{ {}|tojson(indent=1) }}|{{ schema|tojson(indent='\t') }}
{{ d|tojson(ensure_ascii=true) }}|{{ odd|tojson }}|{{ odd|tojson(ensure_ascii=true) }}|{{ d|tojson(separators=(',', ':')) }}|{{ d|tojson(sort_keys=true) }}
{{ [odd] }}|{{ [quote, "it's", '"', '\\'] }}|{{ [u] }}
{{ quote|tojson }}|{{ "\u00e9\n\t\x41\101\q\"" }}|{{ ['\é'] }}
{{ 1e16 }} {{ 1e15 }} {{ 1.0 }} {{ 123456789.125 }} {{ 0.0001 }} {{ 0.00001 }} {{ huge }} {{ tiny }} {{ 1e22 }} {{ -0.0 }} {{ 5e-324 }} {{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }}
{{ big }} {{ [big] }} {{ big|tojson }} {{ big == big }} {{ big > n }} {{ big is integer }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 7 / 2 }} {{ 6 / 3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 0.5 }} {{ -2 ** 2 }} {{ true + 1 }}
{{ 1 / 0 }}
{{ 9223372036854775807 }} {{ -9223372036854775807 }}
{{ 'ab' * 3 }}{{ 2 * [1, 2] }}{{ 'x' * -1 }}{{ (1, 2) + (3,) }}{{ [1] + [2] }}{{ (1,) }}{{ () }}
{{ 'a' + 1 }}
{{ 'a' ~ 1 ~ none ~ true ~ 1.5 ~ [1] }}
{{ missing }}|{{ missing is defined }}|{{ d.zzz is defined }}|{{ d['zzz'] }}|{{ missing|default('x') }}|{{ empty|default('x') }}|{{ empty|default('x', true) }}|{{ none_|d('x', boolean=true) }}
{{ missing.x }}
{{ missing['x'] }}
{{ missing + 1 }}
{{ missing() }}
{{ missing == other }} {{ missing == none }} {{ missing in [1] }} {{ 1 in missing }} {{ not missing }} {{ missing|length }} {{ missing|list }} {{ [missing] }}
{{ missing < 1 }}
{{ missing|tojson }}
{{ d.items }}
{{ d['items'] }} {{ d.items is callable }} {{ d.items()|list }} {{ d.keys()|list }} {{ d.values()|list }} {{ d.get('b') }} {{ d.get('q') }} {{ d.get('q', 5) }} {{ d.n }} {{ 'b' in d }} {{ 'q' not in d }}
{{ d.items() }} {{ d.keys() }} {{ d.values() }}
{{ d.pop }}|{{ list.append }}|{{ d.update is defined }}
{{ list.append(4) }}
{{ d.pop('b') }}
{{ s[0] }}{{ s[-1] }}{{ s[1:4] }}{{ s[::-1] }}{{ s[-5:-1] }}{{ s[::3] }}{{ s[100] }}{{ s[3:1] }}|{{ u[3:6] }}{{ u[-2] }}
{{ list[0] }}{{ list[-1] }}{{ list[1:] }}{{ list[:-1] }}{{ list[::-1] }}{{ list[5] }}{{ list['x'] }}{{ list.0 }}{{ list[::2] }}{{ list[5:1:-2] }}{{ list[-1:-9:-1] }}
{{ list[::0] }}
{{ list[:missing] }}
{{ d[:1] }}
{{ (1,2,3)[1:] }}{{ range(5)[2] }}{{ range(5)[1:3]|list }}{{ range(5) }}{{ range(1, 9, 2) }}{{ range(3)|list }}{{ range(5, 0, -2)|list }}{{ range(0) }}
{{ range(100001) }}
{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ '1' == 1 }} {{ [1] == [1.0] }} {{ (1,) == [1] }} {{ {'a': 1} == {'a': true} }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 'é' > 'z' }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ 1 in [1.0] }} {{ 'el' in s }} {{ 'b' in ['a', 'b'] }} {{ 2 in range(3) }} {{ '' in s }}
{{ 1 in 'a' }}
{{ 1 in 1 }}
{{ [] in d }}
{{ 1 and 0 or 'x' }}{{ not 1 }}{{ none or [] }}{{ '' and 1 }}{{ not (1 and 2) }}{{ not 0 == 1 }}
{{ 'a' if n else 'b' }}{{ 'a' if zero }}{{ 'a' if zero else 'b' if n else 'c' }}|{{ ('x' if zero) is defined }}
{{ list|sort }}{{ words|sort }}{{ words|sort(case_sensitive=true) }}{{ words|sort(reverse=true) }}{{ people[:3]|sort(attribute='age,name')|map(attribute='name')|join(',') }}{{ people[:3]|sort(attribute='name', reverse=true)|map(attribute='name')|list }}
{{ mixed|sort }}
{{ words|unique|list }}{{ words|unique(true)|list }}{{ list|min }}{{ list|max }}{{ words|min }}{{ words|max(case_sensitive=true) }}{{ []|min }}{{ list|sum }}{{ people[:3]|sum(attribute='age') }}{{ list|sum(start=10) }}{{ [1.5, 2]|sum }}
{{ people|map(attribute='home.city')|list }}{{ people|map(attribute='age', default=0)|list }}{{ people|map(attribute='tags.0', default='-')|join }}{{ words|map('upper')|join('-') }}{{ words|map('replace', 'a', 'z')|list }}
{{ people|selectattr('age')|map(attribute='name')|list }}{{ people|selectattr('age', 'equalto', 30)|list|length }}{{ people|rejectattr('age', 'defined')|map(attribute='name')|first }}{{ list|select('odd')|list }}{{ list|reject('gt', 1)|list }}{{ mixed|select|list }}{{ mixed|select('string')|list }}
{{ people|selectattr('age')|length }}
{{ people|selectattr('age')|first|tojson }}{{ people|selectattr('age', '>', 100)|first }}|{{ list|first }}{{ list|last }}{{ ''|first }}{{ s|last }}{{ d|first }}{{ d|list }}{{ d|last }}{{ d|length }}
{{ list|map('abs')|last }}
{{ list|reverse|list }}{{ s|reverse }}{{ list|map('abs')|reverse }}{{ d|reverse|list }}
{{ d|items|list }}{{ missing|items|list }}
{{ d|items|length }}
{{ list|items }}
{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }},{% endfor %}{% for k, v in d.items() %}{{ loop.index }}{{ k }}{% endfor %}
{{ {'b': 2, 'A': 1, 'c': 0}|dictsort }}{{ {'b': 2, 'A': 1}|dictsort(true) }}{{ {'b': 2, 'A': 1}|dictsort(by='value') }}{{ {'b': 2, 'A': 1}|dictsort(reverse=true) }}
{% for g in people[:3]|groupby('age') %}{{ g.grouper }}:{{ g.list|map(attribute='name')|join(',') }};{{ g[0] }}{% endfor %}{% for k, v in people|groupby('home.city', default='?') %}{{ k }}{{ v|length }};{% endfor %}
{% for row in range(7)|batch(3, 'x') %}{{ row }}{% endfor %}{% for row in range(7)|slice(3) %}{{ row }}{% endfor %}{% for row in range(7)|slice(3, '-') %}{{ row }}{% endfor %}
{{ s|replace('l', 'L') }}{{ s|replace('l', 'L', 1) }}{{ s.replace('o', '0') }}{{ s.replace('o', '0', 1) }}{{ 'ab'.replace('', '-') }}{{ 5|replace(5, 6) }}
{{ path.split('.') }}{{ path.split('.', 1) }}{{ path.rsplit('.', 1) }}{{ s.split() }}{{ s.split(none, 1) }}{{ s.rsplit(none, 2) }}{{ ''.split() }}{{ ''.split(',') }}{{ path.split('.')[-1] }}{{ lines.splitlines() }}{{ lines.splitlines(true) }}{{ path.split(sep='b') }}{{ path.split('.', maxsplit=2) }}
{{ path.split('') }}
{{ think.split('</think>')[-1].lstrip('\n') }}|{{ think.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') }}|{{ 'xxaxx'.strip('x') }}{{ 'abcba'.lstrip('ab') }}{{ 'abcba'.rstrip('ab') }}{{ '  a '|trim }}|{{ 'xax'|trim('x') }}
{{ s.startswith('Hel') }}{{ s.startswith(('x', 'H')) }}{{ s.endswith(' ') }}{{ s.startswith('l', 2) }}{{ s.endswith('l', 0, 4) }}{{ s.find('l') }}{{ s.find('zz') }}{{ s.rfind('l') }}{{ s.index('W') }}{{ s.count('l') }}{{ s.count('') }}{{ s.find('l', 4) }}{{ u.find('é') }}
{{ s.index('zz') }}
{{ s.startswith(1) }}
{{ '-'.join(words) }}{{ ','.join(['1']) }}{{ path.partition('.') }}{{ path.rpartition('.') }}{{ path.partition('z') }}{{ path.rpartition('z') }}{{ 'abc'.removeprefix('a') }}{{ 'abc'.removesuffix('bc') }}{{ '7'.zfill(3) }}{{ '-7'.zfill(4) }}{{ 'ab'.center(7, '*') }}{{ 'ab'.ljust(4) }}|{{ 'ab'.rjust(4, '.') }}{{ 'abc'|center(8) }}|
{{ ','.join([1]) }}
{{ list|join(', ') }}{{ people[:3]|join(',', attribute='name') }}{{ 'abc'|join('-') }}{{ [1, none, 'x']|join('|') }}
{{ '12'.isdigit() }}{{ '²'.isdigit() }}{{ 'a1'.isalnum() }}{{ 'ab'.isalpha() }}{{ ''.isalpha() }}{{ 'AB'.isupper() }}{{ 'Ab c'.istitle() }}{{ ' \t'.isspace() }}{{ 'ab'.islower() }}{{ '1²'.isdecimal() }}{{ 'é'.isascii() }}
{{ '42'|int }}{{ '42.9'|int }}{{ 'x'|int }}{{ 'x'|int(-1) }}{{ '0x1F'|int(base=16) }}{{ ' 7 '|int }}{{ 3.99|int }}{{ -3.99|int }}{{ none|int }}{{ true|int }}{{ '1_000'|int }}{{ '1e3'|int }}{{ ''|int(5) }}{{ '+5'|int }}
{{ '1.5'|float }}{{ 'x'|float }}{{ 3|float }}{{ none|float(1.0) }}{{ ' 1e3 '|float }}{{ 'inf'|float }}{{ 'nan'|float }}
{{ 2.5|round }}{{ 3.5|round }}{{ 42.55|round(1) }}{{ 42.55|round(1, 'floor') }}{{ 42.55|round(1, 'ceil') }}{{ 5|round }}{{ 2.675|round(2) }}{{ -5|abs }}{{ -2.5|abs }}
{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb\n\nc'|indent(2, true) }}|{{ 'a\nb\n\nc'|indent(width='> ', blank=true) }}|{{ ''|indent }}|{{ 'a\n'|indent }}|{{ 'a\n'|indent(2, false, true) }}
{{ 'hello wide world'|wordcount }}{{ 5|string + '6' }}{{ none|string }}{{ [1]|string|length }}
{{ '%s and %d, %5.2f|%-5s|%05d|%x|%%' % ('a', 3, 2.5, 'l', 42, 255) }}{{ '%s' % 'x' }}{{ '%r' % ('x',) }}{{ '%s-%s'|format('a', 1) }}{{ '%(a)s'|format(a=1) }}{{ '%s' % none }}
{{ '%d' % 'x' }}
{{ '%s %s' % 'x' }}
{{ '%s' % ('a', 'b') }}
{{ '{} {}'.format('a', 1) }}{{ '{1}{0}'.format('a', 'b') }}{{ '{x}{{}}'.format(x=[1]) }}{{ '{!r}'.format('q') }}
{{ n is number }}{{ f is float }}{{ t is boolean }}{{ t is integer }}{{ n is integer }}{{ s is string }}{{ d is mapping }}{{ list is iterable }}{{ n is iterable }}{{ s is sequence }}{{ d is sequence }}{{ none_ is none }}{{ t is true }}{{ 1 is true }}{{ no is false }}{{ n is odd }}{{ n is even }}{{ 9 is divisibleby 3 }}{{ 9 is divisibleby(2) }}
{{ 'a' is in 'abc' }}{{ 'a' is eq 'a' }}{{ 1 is ne 2 }}{{ 1 is lt 2 }}{{ 'AB' is upper }}{{ 'ab' is lower }}{{ n is not none }}{{ n is not defined }}{{ no is sameas false }}{{ zero is sameas false }}{{ 'upper' is filter }}{{ 'nope' is filter }}{{ 'odd' is test }}{{ raise_exception is callable }}{{ missing is undefined }}{{ none is undefined }}{{ true is number }}{{ f is sequence }}
{{ n is nope }}
{{ n|nope }}
{% if false %}{{ n|nope }}{% endif %}ok
{% set x = 1 %}{% for i in list %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}
{% set ns = namespace(x=1) %}{% for i in list %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y is defined }}{{ ns['x'] }}{{ ns }}
{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{% set ns.c = 3 %}{{ ns.c }}{{ dict(a=1, b=[2]) }}{{ dict([('x', 1)], y=2) }}{{ dict({'q': 1}) }}
{% set n.x = 1 %}
{% set ns = namespace() %}{% set ns._x = 1 %}
{% if n > 5 %}{% set y = 'in' %}{% endif %}{{ y }}{% if false %}{% set z = 1 %}{% endif %}{{ z is defined }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d2) = [3, 4] %}{{ c }}{{ d2 }}{% set x = 1, %}{{ x }}
{% set a, b = 1, 2, 3 %}
{% set block %}  x{{ n }}  {% endset %}[{{ block }}]{% set b2 | upper | trim %} y {% endset %}[{{ b2 }}]
{% for i in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }}{{ loop.changed(i) }}{{ loop.depth }};{% endfor %}
{% for i in list if i > 1 %}{{ i }}{{ loop.index }}{{ loop.last }}{{ loop.length }}{% else %}none{% endfor %}|{% for i in [] %}x{% else %}none{% endfor %}|{% for i in list if i > 9 %}x{% else %}none{% endfor %}
{% for i in list %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% if loop.index == 2 %}{% break %}{% endif %}{% else %}never{% endfor %}
{% for i in range(10) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{{ loop.last }}{% endfor %}{% for c in 'aé😀' %}{{ c }},{% endfor %}{% for x in missing %}x{% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for i in 5 %}{% endfor %}
{% for i in none %}{% endfor %}
{% for a, b in [1] %}{% endfor %}
{% for x in nested recursive %}{% if x is iterable %}[{{ loop(x) }}]{% else %}{{ x }}{{ loop.depth }}{% endif %}{% endfor %}
{% set ns = namespace(found=false) %}{% for i in list if not ns.found %}{{ i }}{% set ns.found = true %}{% endfor %}|{% for i in list if not ns.found %}x{% endfor %}
{% set ns = namespace(k=0) %}{% for i in list if ns.k < 2 %}{{ i }}{{ loop.last }}{% set ns.k = ns.k + 1 %}{% endfor %}
{% set g = list|map('abs') %}{{ g|list }}{{ g|list }}{% if g %}truthy{% endif %}
{% macro m(a, b=2, c='x') %}({{ a }}{{ b }}{{ c }}){% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c='y') }}{{ m() }}{{ m(b=5, a=4) }}{{ m.name }}{{ m.arguments }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}
{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}
{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}
{% macro fact(n) %}{% if n < 2 %}1{% else %}{{ n * fact(n - 1)|int }}{% endif %}{% endmacro %}{{ fact(10) }}
{% macro outer(x) %}<{{ caller(x) }}>{% endmacro %}{% call(y) outer(5) %}{{ y }}!{% endcall %}{% macro plain() %}[{{ caller() }}]{% endmacro %}{% call plain() %}in{{ n }}{% endcall %}
{% macro plain() %}{{ caller is defined }}{% endmacro %}{{ plain() }}
{% macro m() %}{{ later }}{% endmacro %}{% set later = 'now' %}{{ m() }}
{% macro m(x) %}{% set y = x %}{{ y }}{% endmacro %}{{ m(1) }}{{ y is defined }}
{% for i in list %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}
{% macro m(a, *b) %}{% endmacro %}
{% macro m(*a) %}{% endmacro %}
{% macro t(x) %}{% if x is mapping %}{% for k, v in x|items %}{{ k }}:{{ t(v) }},{% endfor %}{% elif x is string %}"{{ x }}"{% elif x is iterable %}[{% for v in x %}{{ t(v) }}{% if not loop.last %};{% endif %}{% endfor %}]{% else %}{{ x }}{% endif %}{% endmacro %}{{ t(d) }}{{ t(schema) }}
{% with a=1, b=n %}{{ a }}{{ b }}{% set n = 9 %}{{ n }}{% endwith %}{{ n }}{{ a is defined }}
{% filter upper %}abc{{ n }}{% endfilter %}{% filter replace('a', 'b')|upper %}aaa{% endfilter %}
{% generation %}gen{{ n }}{% set q = 1 %}{% endgeneration %}{{ q is defined }}
{% print n, s %}{% print 'x' %}
{% raw %}{{ n }}{% if %}{# x #}{% endraw %}{%- raw -%}  a  {%- endraw -%}  b
a {# comment #} b {#- c -#} d{# {{ n }} {% if %} #}
{% include 'x' %}
{% import 'x' as y %}
{% extends 'x' %}
{% do 1 %}
{% if %}{% endif %}
{% if n %}
{% endif %}
{% for %}{% endfor %}
{% break %}
{{ n
{{ }}
{{ 'a }}
{# x
{{ (1, 2 }}
{{ 1 2 }}
{{ n is odd is even }}
{{ a.b.c }}
{{ [1, 2,] }}{{ {'a': 1,} }}{{ {} }}{{ [] }}{{ {1: 'a', 1.0: 'b', true: 'c'} }}{{ {(1, 'x'): 2} }}{{ {none: 1} }}
{{ {[]: 1} }}
{{ {none: 1, true: 2, 1.5: 3}|tojson }}
{{ {(1,): 1}|tojson }}
{{ (1, 2)|tojson }}{{ range(3)|tojson }}
{{ d.items()|tojson }}
{{ strftime_now('%d %b %Y') }}|{{ strftime_now('%Y-%m-%d %H:%M:%S %A %B %j %p %I %y %a %e %-d %-m %U %W %V %u %w %f %%') }}|{{ strftime_now is defined }}
{{ raise_exception('no') }}
{% if false %}{{ raise_exception('no') }}{% endif %}ok
{{ cycler('a', 'b') is defined }}{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set j = joiner('; ') %}{{ j() }}a{{ j() }}b{{ j() }}
{{ 5.__class__ }}
{{ s.__class__ }}{{ d.__class__ is defined }}{{ ''['__class__'] }}
{{ s|attr('upper') is callable }}{{ d|attr('b') }}{{ d|attr('items') is callable }}
{{ -n }}{{ +n }}{{ -f }}{{ --n }}{{ -n|abs }}{{ -t }}
{{ -s }}
{{ n.x }}{{ none.x }}{{ none['x'] }}{{ n[0] }}
{{ 'a' 'b' "c" }}
{{ s | safe }}{{ d | tojson | safe }}
{% set m = '<a>'|safe %}{{ m + '<b>&"\'' }}{{ '<b>' + m }}{{ m ~ '<b>' }}{{ m + m }}{{ [m] }}{{ [m]|tojson }}{{ m|upper + '<' }}{{ m.upper() + '<' }}{{ m[1:] + '<' }}{{ m[0] + '<' }}{{ m|trim + '<' }}{{ m|length }}{{ m == '<a>' }}{{ m is string }}{{ m is escaped }}{{ 'a' is escaped }}
{% set m = 'a,<b>'|safe %}{{ m.split(',') }}{{ m|list }}{{ m|replace('a', '<') }}{{ m|string + '<' }}{{ m|default('x') + '<' }}{{ missing|default(m) + '<' }}{{ {m: 1}['a,<b>'] }}{{ 'a' in m }}{{ m in ['a,<b>'] }}{{ m|join }}{{ m|first + '<' }}{{ m|reverse + '<' }}{{ [m, m]|join + '<' }}{% for c in m %}{{ c + '<' }}{% endfor %}{{ m < 'b' }}{{ m if m else 'no' }}{{ m.startswith('a') }}{{ m|indent + '<' }}{{ m.find('<') }}{{ 'x'.join([m]) + '<' }}{{ m|tojson + '<' }}
{% set m %}<a>{% endset %}{{ m + '<' }}{% macro f() %}<a>{% endmacro %}{{ f() + '<' }}{{ ('<'|safe)|int }}{{ 5|safe + '<' }}{{ none|safe + '<' }}
{{ not n is none }}{{ n is not none and s is string }}{{ n if n is defined and n is not none else 'x' }}
{{ list is defined and list|length > 2 }}{{ (list|length) - 1 }}{{ list|length - 1 }}{{ list | length == 3 }}
{{ [1, 2, 3][n - 5] }}{{ {'a': {'b': [10, 20]}}.a.b[1] }}{{ people[0].home.city[0] }}{{ people[-1]['name'] }}{{ people[0]['tags'][1] }}
{{ loop is defined }}{{ varargs is defined }}
{%if n%}x{%endif%}{%-if n-%} y {%-endif-%} z
{{n}}{{-n}}{{ -n -}}  {{- n }}
{% if n -%}   a   {%- endif %}  b  {%- if n %}  c{% endif %}
{{ "}}" }}{{ "%}" }}{{ {'a': {'b': 1}}['a'] }}
{{ 'x' if d.b is defined and d.b else 'y' }}{{ d.a[1].x }}{{ d.é }}
{% set x = {'a': 1} %}{% set x = dict(x, b=2) %}{{ x }}{% set x = dict(x, **{'c': 3}) %}{{ x }}
{% set l = [] %}{% for i in list %}{% set l = l + [i] %}{% endfor %}{{ l }}{% set ns = namespace(l=[]) %}{% for i in list %}{% set ns.l = ns.l + [i * 2] %}{% endfor %}{{ ns.l }}
{% macro a(x) %}{{ b(x) }}{% endmacro %}{% macro b(x) %}<{{ x }}>{% endmacro %}{{ a(1) }}
{% for p in people %}{{ p.name }}{% for t in p.tags %}{{ loop.index }}{{ t }}{% endfor %}{{ loop.index }}{% if not loop.last %}, {% endif %}{% endfor %}
{{ mixed.count(1) }}{{ list.index(2) }}{{ mixed.index('1') }}{{ (1, 2, 1).count(1) }}{{ list.copy() }}{{ d.copy() == d }}
{{ [1, 2] is sequence }}{{ list|map('string')|join }}{{ words|map('length')|sum }}{{ words|map(attribute=0)|list }}
{{ people|map(attribute='name')|map('lower')|select('in', ['ann', 'dee'])|join('+') }}{{ people|selectattr('home.city', 'defined')|list|length }}{{ people|selectattr('name', 'in', ['Ann'])|list|length }}
{{ ['a', 'b']|map('upper')|join(', ') ~ '!' }}{{ (n > 5)|string|lower }}{{ true|tojson }}{{ none|tojson }}{{ 1.0|tojson }}{{ 1e100|tojson }}{{ s|tojson }}
{{ u.lower() }}{{ 'ΑΣ'|lower }}{{ 'ΑΣ.'|lower }}{{ 'Σ'|lower }}{{ 'ŉ'|upper }}{{ 'ﬁ'|title }}{{ 'ﬁ'.title() }}{{ 'ǆ'|capitalize }}{{ 'ΑΣ ΑΣ'.title() }}{{ 'aΣ'|capitalize }}
{{ lines|trim|replace('\n', '\\n') }}{{ lines|length }}
{{ (s|length, n)|max }}{{ (1, 2) < (1, 3) }}{{ [none, 1]|sort }}
{{ n == 7 and s or 'no' }}{{ n in (7, 8) }}{{ n not in (7, 8) }}{{ not n in (7,) }}
{%- for m in people -%}{%- if loop.first and m.name == 'Ann' -%}A{%- elif m.age is defined -%}{{ m.age }}{%- else -%}?{%- endif -%}{%- endfor -%}
{{ 1.5|int + 1 }}{{ 3 * 1.5 }}{{ 1 - 1.0 }}{{ 10 // 3.0 }}{{ 0.1 + 0.2 }}{{ 1e308 * 10 }}{{ 3 % 1.5 }}{{ 2.0 ** 3 }}
"""


def environment(source):
    return utils._compile_jinja_template(source)


def answer(source):
    try:
        text = environment(source).render(**copy.deepcopy(NAMES))
        text.encode()
    except Exception:
        return [source, None]
    if " at 0x" in text or "<built-in" in text:  # an address
        return [source, None]
    return [source, text]


# Templates whose white space matters.
SPACED = [
    "  {% if n %}\n  a\n  {% endif %}\n  b\n", "a\n{% if n %}\nb\n{% endif %}\n\nc\n\n", "  {%+ if n %}\nx{% endif +%}\ny", "{% if n %}\n\n\nx\n{%- endif -%}\n\n  z", "{{ n }}\n{{ n }}\n", "  {{ n }}  \n",
    "a\r\nb\rc\n{% if n %}\r\nd{% endif %}\r\n", "x {% set y = 1 %} z", "x\n   {# c #}\n  y", "x\n   {#- c -#}\n  y", "x {# c +#}\n y", "\t{% for i in list %}\n\t{{ i }}\n\t{% endfor %}\n", "{% raw %}\n  x\n  {% endraw %}\ny",
    "{% for i in list %}{{ i }}\n{% endfor %}", "{% for i in list -%}\n {{ i }}\n{%- endfor %}\n", "a{%- if n %}\n b{% endif -%}\n c", "{{- n -}}\n\n{{- n }}", "\n\n{% if n %}x{% endif %}\n", "   {% macro m() %}\n  x\n  {% endmacro %}\n[{{ m() }}]",
    "{% if n %}  \nx{% endif %}", "a \u00a0{%- if n %}x{% endif %}", "a\n\u00a0\u3000{% if n %}x{% endif %}", "{% set x %}\n a\n{% endset %}\n[{{ x }}]", "{%- set x = 1 -%}\n\n{{ x }}\n\n", "{% generation %}\nx\n{% endgeneration %}\ny",
    "{{ '\n' }}{{ 'a\r\nb'|tojson }}", "a{{ n }}{# x #}b{% if n %}c{% endif %}\n\n", "line {{ n }}\n    {% if n %} x {% endif %} y", "", "\n", "{", "{%", "}}", "%}", "{ {", "a{%-", "#}", "{{", "{#", "{{ n }", "{% if n }x{% endif %}",
]

ATOMS = ["n", "s", "u", "f", "t", "none_", "list", "words", "d", "people", "missing", "'x'", "''", "0", "-1", "2", "1.5", "true", "none", "[]", "{}", "[1, 'a', none]", "d.a", "people[0]", "nested", "mixed", "path", "lines", "range(4)", "zero", "schema", "(1, 'b')", "empty", "quote"]
FILTERS = ["upper", "lower", "trim", "length", "list", "first", "last", "join(',')", "join", "sort", "unique|list", "reverse|list", "tojson", "tojson(indent=2)", "string", "int", "float", "abs", "default('D')", "default('D', true)", "replace('a', 'b')", "map('string')|list", "map('upper')|list",
           "map(attribute='name')|list", "select|list", "reject('none')|list", "selectattr('age')|list", "sum", "min", "max", "items|list", "dictsort", "title", "capitalize", "indent", "round", "batch(2)|list", "wordcount", "center(9)", "select('string')|list", "string|length", "count", "d"]
TESTS = ["defined", "none", "string", "mapping", "iterable", "sequence", "number", "odd", "true", "false", "boolean", "integer", "float", "in list", "eq 2", "divisibleby 2", "lower", "undefined", "not string", "not none"]
OPS = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
METHODS = [".upper()", ".strip()", ".split()", ".split('.')", "[0]", "[-1]", "[1:]", "[:-1]", "[::-1]", ".name", "['name']", ".items()|list", ".get('b')", ".startswith('a')", ".x", "['a']", ".a", ".keys()|list", ".title()", ".count('a')", "[n]", ".rstrip('x ')", "[1:3]", ".splitlines()", ".find('o')", ".values()|list"]

PLAIN = [m for m in METHODS if ":" not in m]


def expression(draw, depth):
    if depth == 0 or draw.random() < 0.15:
        return draw.choice(ATOMS)
    one = lambda: expression(draw, depth - 1)
    kind = draw.randrange(9)
    if kind <= 1:
        return f"{one()}|{draw.choice(FILTERS)}"
    if kind == 2:
        return f"({one()}){draw.choice(PLAIN)}"  # slices of what is constant are no errors in Jinja
    if kind == 3:
        return draw.choice([a for a in ATOMS if a[0].isalpha() and a not in ("true", "none")]) + draw.choice(METHODS)
    if kind <= 5:
        return f"({one()} {draw.choice(OPS)} {one()})"
    if kind == 6:
        return f"{one()} is {draw.choice(TESTS)}"
    if kind == 7:
        return f"({one()} if {one()} else {one()})"
    return draw.choice([f"[{one()}, {one()}]", f"{{'k': {one()}}}", f"not {one()}", f"-({one()})"])


def template(draw, depth=2):
    out = []
    for _ in range(draw.randint(1, 3)):
        space = lambda: draw.choice(["", "", " ", "\n", "\n  ", "  \n"])
        minus = lambda: draw.choice(["", "", "-"])
        tag = lambda s: space() + "{%" + minus() + " " + s + " " + minus() + "%}" + space()
        x = lambda: expression(draw, draw.randint(0, 2))
        kind = draw.randrange(7) if depth else 0
        body = lambda: template(draw, depth - 1)
        if kind <= 2:
            out.append(space() + "{{" + minus() + " " + x() + " " + minus() + "}}" + space())
        elif kind == 3:
            out.append(tag("if " + x()) + body() + draw.choice(["", tag("else") + body(), tag("elif " + x()) + body()]) + tag("endif"))
        elif kind == 4:
            out.append(tag(f"for v in {x()}" + draw.choice(["", "", f" if v is {draw.choice(TESTS)}"])) + draw.choice(["{{ v }}", "{{ loop.index }}{{ loop.last }}", "{{ v.name }}{{ loop.length }}"]) + body() + tag("endfor"))
        elif kind == 5:
            name = draw.choice(["n", "s", "list", "y"])
            out.append(tag(f"set {name} = {x()}"))
        else:
            out.append(tag("macro m(a, b=1)") + "{{ a }}{{ b }}" + body() + tag("endmacro") + "{{ m(" + x() + ") }}")
    return "".join(out)


def drawn(draw, n):
    """Most answers that are errors are left out: they say little."""
    out = []
    while len(out) < n:
        a = answer(template(draw))
        if a[1] is not None and len(a[1]) < 4000 or draw.random() < 0.1 and len(a[0]) < 2000:
            if a not in out:
                out.append(a)
    return out


if __name__ == "__main__":
    if sys.argv[1:2] == ["draw"]:
        json.dump({"names": NAMES, "answers": drawn(random.Random(), int(sys.argv[2]))}, sys.stdout, ensure_ascii=False)
        sys.exit()
    answers = [answer(line) for line in WRITTEN.strip("\n").split("\n") + SPACED] + drawn(random.Random(1), 1500)
    with open(os.path.join(HERE, "answers.json"), "w", encoding="utf-8") as f:
        f.write('{"names": ' + json.dumps(NAMES) + ',\n"answers": [\n' + ",\n".join(json.dumps(a) for a in answers) + "\n]}\n")
