// Templates that would take much time or memory, or break the interpreter.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/text/chat_template.h"

namespace bowline {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

std::string Repeat(absl::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) absl::StrAppend(&out, text);
  return out;
}

absl::StatusOr<std::string> Render(absl::string_view source, const Json& variables = Json::object(),
                                   const ChatTemplateLimits& limits = {}) {
  absl::StatusOr<ChatTemplate> parsed = ChatTemplate::Parse(source, "t", limits);
  if (!parsed.ok()) return parsed.status();
  return parsed->Render(variables);
}

void ExpectRefused(absl::string_view source, absl::string_view message, const Json& variables = Json::object(),
                   const ChatTemplateLimits& limits = {}) {
  absl::StatusOr<std::string> rendered = Render(source, variables, limits);
  ASSERT_FALSE(rendered.ok()) << source.substr(0, 300);
  EXPECT_THAT(std::string(rendered.status().message()), HasSubstr(std::string(message))) << source.substr(0, 300);
  EXPECT_THAT(std::string(rendered.status().message()), HasSubstr("template t")) << source.substr(0, 300);
}

void ExpectText(absl::string_view source, absl::string_view text, const Json& variables = Json::object(),
                const ChatTemplateLimits& limits = {}) {
  absl::StatusOr<std::string> rendered = Render(source, variables, limits);
  ASSERT_TRUE(rendered.ok()) << source.substr(0, 300) << ": " << rendered.status();
  EXPECT_EQ(*rendered, text);
}

TEST(ChatTemplateLimits, Source) {
  ExpectText("abcd", "abcd", Json::object(), {.source_bytes = 4});
  ExpectRefused("abcde", "has 5 bytes, more than the 4 that a template may have", Json::object(), {.source_bytes = 4});
}

TEST(ChatTemplateLimits, NestingOfTheSource) {
  ExpectText(absl::StrCat(Repeat("{% if 1 %}", 20), "x", Repeat("{% endif %}", 20)), "x");
  const absl::string_view kDeeper = "line 1: blocks and expressions are nested deeper than 64";
  ExpectRefused(absl::StrCat(Repeat("{% if 1 %}", 1000), Repeat("{% endif %}", 1000)), kDeeper);
  for (absl::string_view open : {"(", "[", "{1:", "-", "not ", "f(", "a[", "1 if 1 else ", "1|f(", "1 is f("})
    ExpectRefused(absl::StrCat("{{ ", Repeat(open, 20000), " }}"), "line 1: ");
  ExpectRefused(absl::StrCat("{% for ", Repeat("(", 100000), " }}"), "line 1: ");
  ExpectRefused(absl::StrCat("{% set ", Repeat("(", 100), "a", Repeat(")", 100), " = 1 %}"), kDeeper);
}

TEST(ChatTemplateLimits, ChainsOfOperators) {
  ExpectText(absl::StrCat("{{ 0", Repeat("+1", 500), " }}"), "500");
  ExpectRefused(absl::StrCat("{{ 0", Repeat("+1", 2000), " }}"), "line 1: the evaluation has too many levels");
  ExpectRefused(absl::StrCat("{{ 0", Repeat("+1", 5000), " }}"), "more than 4096 operators, filters and calls");
}

TEST(ChatTemplateLimits, NestingOfMacros) {
  const std::string macro = "{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{{ n }}{% endmacro %}";
  ExpectText(macro + "{{ f(9) }}", "0123456789");
  ExpectRefused(macro + "{{ f(1000) }}", "line 1: calls of macros are nested deeper than 64");
  const std::string wide = absl::StrCat("{% macro f() %}", Repeat("{% if 1 %}", 20), "{{ f() }}",
                                        Repeat("{% endif %}", 20), "{% endmacro %}{{ f() }}");
  ExpectRefused(wide, "line 1: the evaluation has too many levels");
}

TEST(ChatTemplateLimits, Steps) {
  ExpectText("{% for i in range(10) %}{% endfor %}", "", Json::object(), {.steps = 100});
  ExpectRefused("\n{% for i in range(1000) %}{% endfor %}", "line 2: evaluation takes more than 100 steps",
                Json::object(), {.steps = 100});
  ExpectRefused(
      "{% for i in range(1000) %}{% for i in range(1000) %}{% for i in range(1000) %}{% endfor %}{% endfor %}"
      "{% endfor %}",
      "evaluation takes more than 1000000 steps");
  ExpectRefused("{% set s = 'a' * 4000000 %}{% for i in range(1000) %}{% set x = s ~ '' %}{% endfor %}",
                "evaluation takes more than 1000000 steps");
  ExpectRefused("{% set n = namespace(x=[1]) %}{% for i in range(64) %}{% set n.x = n.x + n.x %}{% endfor %}",
                "evaluation takes more than 1000000 steps");
  ExpectRefused("{% for c in 'a' * 4000000 %}{% endfor %}", "evaluation takes more than 1000000 steps");
  ExpectRefused("{{ ('a' * 4000000).split('a') | length }}", "evaluation takes more than 1000000 steps");
  ExpectRefused("{% for i in range(100000) %}{% macro f() %}{% endmacro %}{% endfor %}",
                "evaluation takes more than 1000000 steps");
}

TEST(ChatTemplateLimits, StepsOfComparisons) {
  // Lists of lists that share their elements: 2 ** 40 pairs.
  const std::string shared =
      "{% set a = namespace(x=[1]) %}{% set b = namespace(x=[1]) %}{% for i in range(40) %}"
      "{% set a.x = [a.x, a.x] %}{% set b.x = [b.x, b.x] %}{% endfor %}";
  for (absl::string_view compare : {"a.x == b.x", "a.x != b.x", "a.x < b.x", "a.x in [b.x]", "{a.x: 1}[b.x]",
                                    "{'k': a.x} == {'k': b.x}", "a.x is eq b.x"})
    ExpectRefused(absl::StrCat(shared, "{{ ", compare, " }}"), "line 1: evaluation takes more than 1000000 steps");
  Json large = Json::object();
  for (int i = 0; i < 5000; ++i) large[absl::StrCat("k", i)] = i;
  ExpectRefused("{{ a == b }}", "evaluation takes more than 1000000 steps", {{"a", large}, {"b", large}});
  ExpectRefused(
      "{% set s = 'a' * 1000000 %}{% set t = s ~ '' %}{% for i in range(100) %}{% set x = s == t %}"
      "{% set y = s <= t %}{% endfor %}",
      "evaluation takes more than 1000000 steps");
}

TEST(ChatTemplateLimits, SearchesTakeLinearTime) {
  ExpectText("{% set a = 'a' * 2000000 %}{{ (a ~ 'b') in a }}", "False");
  ExpectText("{% set a = 'a' * 1000000 %}{% set b = a ~ 'b' %}{{ (a ~ a).split(b) | length }}", "1");
  ExpectText("{% set a = 'a' * 1000000 %}{{ (a ~ a) | replace(a ~ 'b', '') | length }}", "2000000");
}

TEST(ChatTemplateLimits, Texts) {
  const ChatTemplateLimits limits = {.text_bytes = 100};
  ExpectText("{{ 'a' * 100 }}", std::string(100, 'a'), Json::object(), limits);
  for (absl::string_view source :
       {"{{ 'a' * 101 }}", "{{ 101 * 'a' }}", "{{ 'a' * 60 + 'a' * 60 }}", "{{ 'a' * 60 ~ 'a' * 60 }}",
        "{{ ('a' * 60) | replace('a', 'bb') }}", "{{ ('a' * 60).replace('a', 'bb') }}", "{{ range(200) | join(',') }}",
        "{{ range(200) | list | tojson }}", "{{ range(200) | list | string }}"})
    ExpectRefused(source, "line 1: a text has more than 100 bytes", Json::object(), limits);
  for (absl::string_view source :
       {"{{ 'a' * 60 }}{{ 'a' * 60 }}", "{% for i in range(200) %}a{% endfor %}",
        "{% set x %}{% for i in range(200) %}a{% endfor %}{% endset %}", "{{ range(200) | list }}"})
    ExpectRefused(source, "line 1: the output has more than 100 bytes", Json::object(), limits);
}

TEST(ChatTemplateLimits, Range) {
  ExpectText("{{ range(5) | length }}", "5", Json::object(), {.range = 5});
  ExpectRefused("{{ range(6) }}", "line 1: range has more than 5 elements", Json::object(), {.range = 5});
  ExpectRefused("{{ range(-9223372036854775807, 9223372036854775807) }}", "range has more than 100000 elements");
  ExpectText("{{ range(9223372036854775800, 9223372036854775807, 5) | list }}",
             "[9223372036854775800, 9223372036854775805]");
}

TEST(ChatTemplateLimits, NestingOfValues) {
  const std::string nested =
      "{% set n = namespace(x=[]) %}{% for i in range(COUNT) %}{% set n.x = [n.x] %}{% endfor %}";
  auto times = [&](int count) { return std::string(nested).replace(nested.find("COUNT"), 5, absl::StrCat(count)); };
  ExpectText(times(99) + "{{ n.x }}", std::string(100, '[') + std::string(100, ']'));
  ExpectText(times(99) + "{{ n.x | tojson }}", std::string(100, '[') + std::string(100, ']'));
  ExpectText(times(99) + "{{ n.x == n.x }}{{ n.x < n.x }}", "TrueFalse");
  ExpectRefused(times(100), "line 1: a value has more than 100 levels of lists and dicts in each other");
  for (absl::string_view more : {"[n.x]", "(n.x,)", "{'a': n.x}", "{n.x: 1}", "{'a': n.x}.get", "[n.x] | list",
                                 "dict(a=n.x)", "{'a': 1, 'a': n.x}", "[{'a': n.x}] | map(attribute='a') | list"})
    ExpectRefused(absl::StrCat(times(99), "{{ ", more, " is defined }}"), "line 1: a value has more than 100 levels");
  ExpectRefused("{% set n = namespace(x={}) %}{% for i in range(100000) %}{% set n.x = {'a': n.x.get} %}{% endfor %}",
                "line 1: a value has more than 100 levels");
  ExpectRefused(absl::StrCat("{{ 'a' | map(", Repeat("'map',", 20000), "'upper') }}"),
                "line 1: filters of map are nested deeper than 8 here");
}

TEST(ChatTemplateLimits, NestingOfVariables) {
  Json deep = Json::array();
  for (int i = 0; i < 99; ++i) deep = Json::array({std::move(deep)});
  ExpectText("{{ v | length }}", "1", {{"v", deep}});
  ExpectRefused("{{ v }}", "line 1: the variable 'v' holds too many levels of lists and dicts in each other",
                {{"v", Json::array({deep})}});
  for (int i = 0; i < 100000; ++i) deep = Json::array({std::move(deep)});
  ExpectRefused("{{ v }}", "the variable 'v' holds too many levels", {{"v", std::move(deep)}});
}

TEST(ChatTemplateLimits, NamespacesHoldNoNamespaces) {
  const absl::string_view kMessage =
      "line 1: a namespace, or a value that holds one, cannot be put into a namespace here";
  for (absl::string_view value : {"n", "[n]", "{'a': n}", "(1, [n])", "{'a': n}.get", "namespace()", "[[m]][0]"})
    ExpectRefused(absl::StrCat("{% set n = namespace() %}{% set m = namespace() %}{% set n.x = ", value, " %}"),
                  kMessage);
  ExpectRefused("{% set n = namespace() %}{% set m = namespace(x=n) %}", kMessage);
  ExpectRefused("{% set n = namespace() %}{% set m = namespace({'x': [n]}) %}", kMessage);
  ExpectText("{% set n = namespace(x=1) %}{% set l = [n] %}{% set n.x = 2 %}{{ l[0].x }}{{ n == n }}{{ [n] == l }}",
             "2TrueTrue");
}

TEST(ChatTemplateLimits, TextsAreUtf8) {
  for (absl::string_view bad :
       {"\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x28\xa1", "\x80"}) {
    const std::string text(bad);
    ExpectRefused("{{ v }}", "line 1: the variable 'v' holds a text that is not UTF-8", {{"v", text}});
    ExpectRefused("{{ v }}", "the variable 'v' holds a text that is not UTF-8", {{"v", {{{"k", {text}}}}}});
    ExpectRefused("{{ v }}", "the variable 'v' holds a text that is not UTF-8", {{"v", {{text, 1}}}});
    ExpectRefused(text, "template t is not UTF-8");
  }
  ExpectText("{{ v }}é", "\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffffé",
             {{"v", "\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"}});
  ExpectRefused("{{ v }}", "the variable 'v' holds a value that JSON does not have", {{"v", Json::binary({1, 2})}});
}

// The first error is reported, whatever the template does with its result.
TEST(ChatTemplateLimits, ErrorsEndTheEvaluation) {
  ExpectRefused("{{ [1 / 0, missing.x][0].y | join(1) }}", "line 1: division by zero");
  ExpectRefused("{% for a, b in [1, 2] %}{{ a.x.y }}{% endfor %}", "line 1: int has no elements");
  ExpectRefused("{% for i in [1] if missing.x %}{% else %}{{ 1 / 0 }}{% endfor %}", "line 1: 'missing' is undefined");
  ExpectRefused("{% set x = missing.a.b %}{{ 1 / 0 }}", "line 1: 'missing' is undefined");
  ExpectRefused("{{ missing(1 / 0)(1) }}", "line 1: division by zero");
  ExpectText("{% if {}[:1] or 1[:1] or namespace()[:1] %}a{% else %}b{% endif %}", "b");
}

}  // namespace
}  // namespace bowline
