#!/usr/bin/env python3
"""Records what jinja2 makes of small templates, for test/Unit/Text/chat_template_test.cc.

Jinja is set up as transformers' apply_chat_template does. Each output is a text, or null where jinja2 raises an error.
Needs jinja2 (recorded with 3.1.6).

  scripts/record-chat-templates.py [--output test/Unit/Text/reference/chat-templates.json]
"""

import argparse
import json
import pathlib

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

# One output each.
SNIPPETS = r"""
{{ 1 }} {{ -1 }} {{ +1 }} {{ 1.0 }} {{ 1.5e3 }} {{ 1e16 }} {{ 1e-5 }} {{ 0.1 + 0.2 }} {{ 1_000 }} {{ 1e100 }}
{{ true }} {{ True }} {{ false }} {{ none }} {{ None }} {{ missing }}|
{{ 'a' 'b' }} {{ "it's" }} {{ 'q"' }} {{ '\x41\u00e9\t|' }} {{ ['\n', "it's", 'q"', 'b"\'', '\\', '\x01', 'é'] }}
{{ [1, 2.5, 'x', none, true, [], {}, (), (1,), (1, 2)] }} {{ {'a': 1, 'b': [2], 3: none} }} {{ 1, 2 }}
{{ 7 + 2 }} {{ 7 - 2 }} {{ 7 * 2 }} {{ 7 / 2 }} {{ 7 // 2 }} {{ 7 % 2 }} {{ 7 ** 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }}
{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ true + true }} {{ 4 / 2 }} {{ 1 + 2 * 3 - 4 }}
{{ 1 / 0 }}
{{ 1 % 0 }}
{{ 'a' + 'b' }} {{ 'ab' * 3 }} {{ 3 * 'ab' }} {{ 'ab' * -1 }}| {{ [1] + [2] }} {{ (1,) + (2,) }} {{ 'a' ~ 1 ~ none ~ [1] ~ missing }}
{{ 'a' + 1 }}
{{ [1] + (2,) }}
{{ missing + 'a' }}
{{ 'a' ~ 1 + 2 }} {{ 1 ~ 2 * 3 }} {{ 1 + 2 ~ 3 }}
{{ 1 == 1.0 }} {{ 1 == true }} {{ '1' == 1 }} {{ [1, 2] == [1.0, 2] }} {{ (1,) == [1] }} {{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }} {{ none == false }}
{{ 1 != 2 }} {{ 'a' < 'b' }} {{ 'é' > 'z' }} {{ [1, 2] < [1, 3] }} {{ [1] < [1, 0] }} {{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 1 <= 1.0 }} {{ 2 >= 3 }}
{{ [{}, 1] < [{}, 2] }} {{ (1, 'a') >= (1, 'b') }} {{ missing == other }} {{ missing == none }}
{{ 1 < 'a' }}
{{ {} < {} }}
{{ 'b' in 'abc' }} {{ 'x' not in 'abc' }} {{ 1 in [1, 2] }} {{ 3 not in (1, 2) }} {{ 'a' in {'a': 1} }} {{ 1 in {'a': 1} }} {{ '' in '' }} {{ 'a' in missing }}
{{ 1 in 'abc' }}
{{ 1 in 2 }}
{{ 0 or 'a' }} {{ '' or [] }} {{ 1 and 2 }} {{ none and 1 }} {{ not '' }} {{ not 'a' }} {{ not 1 == 2 }} {{ missing or 'x' }} {{ 1 or missing.x }}
{{ 'y' if 1 else 'n' }} {{ 'y' if 0 else 'n' }} {{ 'y' if 0 }}| {{ 'a' if 0 else 'b' if 0 else 'c' }}
{% if '' %}1{% elif 0.0 %}2{% elif {} %}3{% elif () %}4{% elif none %}5{% elif missing %}6{% elif ' ' %}7{% else %}8{% endif %}
{% if [0] and {'a': 0} and (0,) and 0.1 and '0' %}yes{% endif %}{% if not [] %}no{% endif %}
{{ missing.x }}
{{ missing['x'] }}
{{ {'a': {'b': [10, 20]}}.a.b[1] }} {{ {'a': 1}['a'] }} {{ {'a': 1}.z }}| {{ {'a': 1}['z'] }}| {{ [1][5] }}| {{ [1, 2][-1] }} {{ 'héy'[1] }} {{ 'abc'[-1] }} {{ 'a'[3] }}| {{ [1]['x'] }}|
{{ {1: 'i', true: 'b', 'k': 'n'} }} {{ {1: 'i'}[1.0] }} {{ {'get': 1}.get('get') }} {{ {'items': 1}['items'] }}
{{ [1, 2, 3, 4][1:] }} {{ [1, 2, 3, 4][:-1] }} {{ [1, 2, 3, 4][::2] }} {{ [1, 2, 3, 4][::-1] }} {{ 'héyho'[1:3] }} {{ 'abc'[::-1] }} {{ (1, 2, 3)[1:] }} {{ 'abc'[5:] }}| {{ 'abc'[-9:2] }} {{ [1, 2, 3][3:0:-2] }} {{ [1, 2][none:1] }}
{{ 'abc'[::0] }}
{{ 'abc'['x':] }}
{{ {'a': 1}[:1] }}
{{ 3[1:] }}
{% set x = 1 %}{{ x }}{% set a, b = [2, 3] %}{{ a }}{{ b }}{% set (c, d), e = [[4, 5], 6] %}{{ c }}{{ d }}{{ e }}{% set t = 1, 2 %}{{ t }}
{% set a, b = [1] %}
{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}
{% set ns = namespace(x=0) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}|{% set ns.y = 'new' %}{{ ns.y }}
{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns['a'] if false }}
{% set x = {} %}{% set x.a = 1 %}
{% set x %}a{{ 1 }}{% endset %}{{ x }}{{ x is string }}
{% set x %}{% set y = 1 %}{% endset %}{{ y is defined }}
{% for i in [] %}a{% else %}b{% endfor %}{% for i in [1] %}a{% else %}b{% endfor %}{% for i in missing %}a{% else %}b{% endfor %}
{% for i in 5 %}{% endfor %}
{% for c in 'héy' %}{{ c }},{% endfor %}{% for k in {'a': 1, 'b': 2} %}{{ k }}{% endfor %}{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% endfor %}{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for i in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }} {% endfor %}
{% for i in [1, 2, 3, 4] if i % 2 == 0 %}{{ i }}{{ loop.index }}{{ loop.length }} {% else %}none{% endfor %}{% for i in [1] if i > 1 %}{{ i }}{% else %}none{% endfor %}
{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% for i in [1, 2] %}{% for j in [1, 2, 3] %}{% if j == 2 %}{% break %}{% endif %}{{ i }}{{ j }}{{ loop.index }} {% endfor %}{{ loop.index }}{% endfor %}
{% for i in [1, 2] %}{% endfor %}{{ i is defined }}{{ loop is defined }}
{{ range(3) | list }} {{ range(1, 4) | list }} {{ range(4, 1, -2) | list }} {{ range(0) | list }}
{{ range(1, 2, 0) }}
{% macro f(a, b=2, c='z') %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(1, c=4) }}{{ f() }}{{ f(b=5, a=6) }}{{ f(1) + 'x' }}{{ f(1) | upper }}
{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{% endmacro %}{{ f(z=1) }}
{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}
{% set g = 1 %}{% macro f() %}{{ g }}{% set g = 2 %}{{ g }}{% endmacro %}{{ f() }}{{ g }}
{{ raise_exception('no') }}
{{ strftime_now('%Y') }}
{{ dict(a=1, b=2) }} {{ dict({'a': 1}, a=3) }}
{{ missing() }}
{{ 'a'() }}
{{ '  a b '.strip() }}| {{ '  a '.lstrip() }}| {{ ' a  '.rstrip() }}| {{ 'xxaxx'.strip('x') }} {{ 'xyaxy'.lstrip('yx') }} {{ 'xyaxy'.rstrip('y') }} {{ ' é '.strip() }}|
{{ 'aBc'.upper() }} {{ 'aBc'.lower() }} {{ 'aBc d'.capitalize() }} {{ 'abc'.startswith('ab') }} {{ 'abc'.endswith('bc') }} {{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.endswith('') }}
{{ 'abc'.startswith(1) }}
{{ 'a,b,,c'.split(',') }} {{ ' a  b\n'.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'aXXb'.split('XX')[-1] }} {{ ''.split(',') }} {{ ''.split() }} {{ 'abc'.split('z') }}
{{ 'a'.split('') }}
{{ 'banana'.replace('an', '<>') }} {{ 'aaa'.replace('aa', 'b') }} {{ 'abc'.replace('z', 'y') }} {{ 'abc'.replace('b', '') }}
{{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 2) }} {{ {'a': 1, 'b': 2}.keys() | list }} {{ {'a': 1, 'b': 2}.values() | list }} {{ {'a': 1}.items() | list }}
{{ missing | default('x') }} {{ '' | default('x') }}| {{ '' | default('x', true) }} {{ none | d('x') }} {{ none | d('x', boolean=true) }} {{ missing | default }}| {{ 0 | default(1) }}
{{ {'a': [1, 2.5, 'é"\n', none, true], 'b': {}} | tojson }} {{ [] | tojson }} {{ 'x' | tojson }} {{ (1, 2) | tojson }} {{ '<&>\u2028' | tojson }} {{ {1: 2, none: 3, true: 4} | tojson }}
{{ {'a': [1, {'b': 2}], 'c': [], 'd': {}} | tojson(indent=2) }}
{{ [1, [2]] | tojson(indent=0) }}
{{ missing | tojson }}
{{ ' a ' | trim }}| {{ 'xax' | trim('x') }} {{ 1 | trim }} {{ 'aB' | upper }} {{ 'aB' | lower }} {{ 'aB c' | capitalize }} {{ 1 | string + '2' }} {{ [1] | string }} {{ '<b>' | safe }}
{{ 'héy' | length }} {{ [1, 2] | length }} {{ {'a': 1} | count }} {{ missing | length }} {{ () | length }}
{{ 1 | length }}
{{ 'aXbX' | replace('X', 'yy') }} {{ 112 | replace('1', 'x') }}
{{ {'a': 1} | items | list }} {{ missing | items | list }} {{ [1] | items | list if false }}
{{ [1, 'a', none] | join }} {{ [1, 2] | join(', ') }} {{ 'abc' | join('-') }} {{ [] | join(',') }}| {{ [1, 2] | join(0) }}
{{ 'ab' | list }} {{ {'a': 1} | list }} {{ (1, 2) | list }} {{ [1, 2] | first }} {{ [1, 2] | last }} {{ 'ab' | first }} {{ [] | first }}|
{{ [{'a': 1}, {'a': 0}, {}] | selectattr('a') | list }} {{ [{'a': 1}, {'a': 2}] | selectattr('a', 'equalto', 2) | list }} {{ [{'a': 1}, {}] | rejectattr('a', 'defined') | list }} {{ [{'a': 1}, {'a': 5}] | selectattr('a', '>', 2) | list if false }}
{{ [0, 1, 2, ''] | select | list }} {{ [0, 1, 2] | reject | list }} {{ [1, 2, 3] | select('odd') | list }} {{ [1, 2, 3] | reject('in', [2]) | list }}
{{ [{'a': 1}, {'b': 2}] | map(attribute='a', default='z') | list }} {{ ['a', 'b'] | map('upper') | join }} {{ [' a '] | map('trim') | list }} {{ [[1, 2], [3]] | map('join', '+') | list }}
{{ 1 | unknown_filter }}
{{ 1 is unknown_test }}
{{ missing is defined }} {{ 1 is defined }} {{ missing is undefined }} {{ none is none }} {{ missing is none }} {{ 'a' is string }} {{ 1 is string }} {{ {} is mapping }} {{ [] is mapping }}
{{ 1 is number }} {{ 1.5 is number }} {{ true is number }} {{ 1 is integer }} {{ true is integer }} {{ 1.0 is integer }} {{ 1.0 is float }} {{ true is boolean }} {{ 1 is boolean }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ 0 is false }}
{{ [] is sequence }} {{ 'a' is sequence }} {{ {} is sequence }} {{ 1 is sequence }} {{ [] is iterable }} {{ 'a' is iterable }} {{ 1 is iterable }} {{ range is callable }} {{ 1 is callable }}
{{ 3 is odd }} {{ 4 is even }} {{ 4 is odd }} {{ 1 is eq 1 }} {{ 1 is equalto(2) }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 1 is lessthan 1 }} {{ 1 is le 1 }} {{ 1 is gt 0 }} {{ 1 is greaterthan 2 }} {{ 1 is ge 1 }} {{ 1 is in [1] }}
{{ 1 is not defined }} {{ missing is not defined }} {{ not missing is defined }} {{ 1 is not string and true }} {{ missing is defined and missing.x }} {{ [1] is string or 'z' }}
a {# comment #} b{#- c -#} d {%- if 1 %} e {%- endif %} f {{- ' g ' -}} h
{% raw %}{{ x }}{% if %}{# #}{% endraw %}|{%- raw -%}  a  {%- endraw -%} b
{{ 1
{% if 1 %}
{% endif %}
{% for %}{% endfor %}
{{ }}
{{ 1 + }}
{{ (1 }}
{{ 'a }}
{% unknown %}
{% break %}
{{ [1, 2,] }} {{ {'a': 1,} }} {{ (1, 2,) }} {{ ((1)) }} {{ 'a'.upper().lower() }} {{ ('a' ~ 'b').upper() }} {{ ['a'][0].upper() }} {{ 'a b'.split()[0] }}
{{ 'a' | upper ~ 'b' | upper }} {{ -1 | string }} {{ 2 * 3 | string }} {{ 'x' if 'a' in 'abc' and not 1 > 2 else 'y' }} {{ 1 if 2 is odd else 3 }}
""".strip("\n").split("\n")

# Line feeds matter here.
BLOCKS = [
    "a\n  {% if true %}\nb\n  {% endif %}\nc\n",
    "a\n  {%- if true -%}\n  b  \n  {%- endif -%}\n\n c\n",
    "a\n  {%+ if true %}\nb\n  {%+ endif +%}\nc",
    "  {{ 1 }}\n  {{- 2 }}\n  {{ 3 -}}  \n  x\n",
    "{# one #}\n  {# two #}\n\n{#- three -#}\n x",
    "x {% if true %} y {% endif %} z\n\n",
    "\n\n{% set a = 1 %}\n\n{{ a }}\n",
    "\t{% if true %}\r\nb\r{% endif %}\r\n",
    "{% for i in [1, 2] %}\n  {{ i }}\n{% endfor %}\nend",
    "{% for i in [1, 2] -%}\n  {{ i }}\n{%- endfor %}\nend",
    "{% raw %}\n a {% b %}\n  {% endraw %}\nc",
    "{% macro f(a) -%}\n  <{{ a }}>\n{%- endmacro %}\n{{ f(1) }}\n{{ f(2) }}",
    "{% set x %}\n  a\n{% endset %}\n[{{ x }}]",
    "{{\n1\n+\n2\n}}{%\nif\n1\n%}a{%\nendif\n%}",
    "a{{ '\n' }}b\n{{ 'c\\\nd' }}",
    "line {\n{ not a tag } % }\n",
]

SMOLLM2 = (
    r"{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system"
    r"\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
    r"{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    r"{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")

# An output for each conversation.
CHATS = [
    SMOLLM2,
    # Roles that alternate, an optional system message, end tokens.
    "{{ bos_token }}{% if messages and messages[0].role == 'system' %}{% set system = messages[0].content | trim %}"
    "{% set rest = messages[1:] %}{% else %}{% set system = '' %}{% set rest = messages %}{% endif %}\n"
    "{% for m in rest %}\n  {%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}\n"
    "    {{- raise_exception('roles must alternate') }}\n  {%- endif %}\n"
    "  {%- if m.role == 'user' %}{{ '[INST] ' ~ (system ~ '\\n\\n' if loop.first and system else '') ~ m.content ~"
    " ' [/INST]' }}{% else %}{{ m['content'] + eos_token }}{% endif %}\n{% endfor %}",
    # Tools, and calls of them.
    "{%- if tools %}\n{{- 'Tools:\\n' }}\n{%- for tool in tools %}\n{{- tool | tojson(indent=4) ~ '\\n' }}\n{%- endfor %}"
    "\n{%- endif %}\n{%- for m in messages %}\n{{- '<' + m.role + '>' }}\n{%- if m.content is string %}"
    "{{ m.content }}{% elif m.content is not none and m.content is defined %}"
    "{% for part in m.content if part.type == 'text' %}{{ part.text }}{% endfor %}{% endif %}\n"
    "{%- for call in m.tool_calls or [] %}\n{%- if call.function is defined %}{% set call = call.function %}{% endif %}\n"
    "{{- '{\"name\": \"' ~ call.name ~ '\", \"arguments\": ' ~ (call.arguments | tojson) ~ '}' }}\n{%- endfor %}\n"
    "{{- '</' + m.role + '>\\n' }}\n{%- endfor %}",
    # The place of the last user message, and thoughts that go.
    "{%- set ns = namespace(last=-1) %}{%- for m in messages[::-1] %}{%- set i = messages | length - 1 - loop.index0 %}"
    "{%- if ns.last < 0 and m.role == 'user' %}{%- set ns.last = i %}{%- endif %}{%- endfor %}"
    "{%- for m in messages %}{%- set text = m.content if m.content is string else '' %}"
    "{%- if '</think>' in text and loop.index0 <= ns.last + 1 %}"
    "{%- set text = text.split('</think>')[-1].lstrip('\\n') %}{%- endif %}"
    "{{- loop.index0 ~ (' last' if loop.index0 == ns.last else '') ~ ': ' ~ text ~ '\\n' }}"
    "{%- if loop.previtem and loop.previtem.role == m.role %}{{ '(again)' }}{% endif %}{%- endfor %}{{ ns.last }}",
    # Filters over messages.
    "{{ messages | map(attribute='role') | join(',') }};{{ messages | selectattr('role', 'equalto', 'user') | list | length }};"
    "{{ (messages | rejectattr('role', 'in', ['user', 'assistant']) | list)[0].content | default('none') }};"
    "{% for k, v in (messages | first | default({})).items() %}{{ k }}={{ v }},{% endfor %}{{ messages | tojson }}",
    # Macros.
    "{% macro show(m, open='<', close='>') %}{{ open ~ m.role | upper ~ close }}{% if m.content %}{{ m.content | trim }}"
    "{% endif %}{% endmacro %}{% for m in messages %}{{ show(m) if loop.first else show(m, close=']') }}\n{% endfor %}"
    "{{ strftime_now('%d') if add_generation_prompt }}{{ enable_thinking is defined and enable_thinking is false }}",
    "{{ messages }}{{ tools }}",
]


def conversations():
    system = {"role": "system", "content": " Be good.\n"}
    user = {"role": "user", "content": "  H\u00e9 \u4f60\u597d \U0001f600 \"q\" 'x' \\\n"}
    answer = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes </think> 1"}
    parts = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "see"}]}
    call = {"name": "f", "arguments": {"x": 1, "y": [1.5, None, True], "z": "\u00e9\"<"}}
    calls = {"role": "assistant", "content": None, "tool_calls": [{"id": "a1", "type": "function", "function": call}]}
    result = {"role": "tool", "content": "{\"r\": 1}", "tool_call_id": "a1"}
    tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
    chats = [[], [user], [system, user], [user, answer, user], [system, user, answer, user, answer], [user, user],
             [answer, user], [system], [system, user, calls, result, answer], [parts], [user, {"role": "assistant"}]]
    for chat in chats:
        for prompt in (True, False):
            variables = {"messages": chat, "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": prompt}
            if not prompt:
                variables["tools"] = [tool]
                variables["enable_thinking"] = len(chat) % 2 == 0
            yield variables


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])

    def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env.filters["tojson"] = to_json
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: f"now({form})"
    return env


def render(source, variables):
    try:
        return environment().from_string(source).render(**variables)
    except Exception:  # whatever jinja2 or Python raises
        return None


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default=root / "test/Unit/Text/reference/chat-templates.json")
    chats = list(conversations())
    record = {
        "jinja2": jinja2.__version__,
        "snippets": [{"source": s, "output": render(s, {})} for s in SNIPPETS + BLOCKS],
        "conversations": chats,
        "chats": [{"source": s, "outputs": [render(s, c) for c in chats]} for s in CHATS],
    }
    text = json.dumps(record, ensure_ascii=False, indent=0) + "\n"
    pathlib.Path(parser.parse_args().output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
