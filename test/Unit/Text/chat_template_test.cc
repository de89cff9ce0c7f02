#include "runtime/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/status/status.h"

namespace bowline {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

std::string Clock(const std::string& format) { return "now(" + format + ")"; }

absl::StatusOr<std::string> Render(absl::string_view source, const Json& variables = Json::object()) {
  absl::StatusOr<ChatTemplate> parsed = ChatTemplate::Parse(source, "t.jinja");
  if (!parsed.ok()) return parsed.status();
  return parsed->Render(variables, Clock);
}

void ExpectText(absl::string_view source, absl::string_view text, const Json& variables = Json::object()) {
  absl::StatusOr<std::string> rendered = Render(source, variables);
  ASSERT_TRUE(rendered.ok()) << source << ": " << rendered.status();
  EXPECT_EQ(*rendered, text) << source;
}

void ExpectError(absl::string_view source, absl::string_view message, const Json& variables = Json::object()) {
  absl::StatusOr<std::string> rendered = Render(source, variables);
  ASSERT_FALSE(rendered.ok()) << source << " gives: " << *rendered;
  EXPECT_EQ(std::string(rendered.status().message()), std::string(message)) << source;
}

// An output that scripts/record-chat-templates.py recorded: a text, or null where jinja2 raises an error.
void ExpectAsRecorded(const std::string& source, const Json& variables, const Json& output) {
  absl::StatusOr<std::string> rendered = Render(source, variables);
  if (output.is_null()) {
    EXPECT_FALSE(rendered.ok()) << source << "\nof " << variables << "\ngives: " << *rendered;
  } else {
    ASSERT_TRUE(rendered.ok()) << source << "\nof " << variables << ": " << rendered.status();
    EXPECT_EQ(*rendered, output.get<std::string>()) << source << "\nof " << variables;
  }
}

Json Reference() {
  std::ifstream file(BOWLINE_REFERENCE_FOLDER "/chat-templates.json");
  return Json::parse(file);
}

TEST(ChatTemplateReference, SnippetsRenderAsJinjaDoes) {
  Json reference = Reference();
  ASSERT_GT(reference["snippets"].size(), 100u);
  for (const Json& snippet : reference["snippets"])
    ExpectAsRecorded(snippet["source"], Json::object(), snippet["output"]);
}

TEST(ChatTemplateReference, ConversationsRenderAsJinjaDoes) {
  Json reference = Reference();
  const Json& conversations = reference["conversations"];
  ASSERT_GT(conversations.size(), 20u);
  ASSERT_GT(reference["chats"].size(), 5u);
  for (const Json& chat : reference["chats"]) {
    ASSERT_EQ(chat["outputs"].size(), conversations.size());
    for (size_t i = 0; i < conversations.size(); ++i)
      ExpectAsRecorded(chat["source"], conversations[i], chat["outputs"][i]);
  }
}

constexpr absl::string_view kSmolLm2 =
    R"({% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %})"
    R"({{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }})"
    R"({% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %})"
    R"({% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";

TEST(ChatTemplate, RendersChatMl) {
  Json user = {{"role", "user"}, {"content", "Hi"}}, system = {{"role", "system"}, {"content", "Be good"}};
  ExpectText(kSmolLm2,
             "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
             "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
             {{"messages", {user}}, {"add_generation_prompt", true}});
  ExpectText(kSmolLm2, "<|im_start|>system\nBe good<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n",
             {{"messages", {system, user}}, {"add_generation_prompt", false}});
}

TEST(ChatTemplate, RendersATemplateManyTimes) {
  absl::StatusOr<ChatTemplate> parsed = ChatTemplate::Parse("{% set n = namespace(x=1) %}{{ n.x + y }}", "t");
  ASSERT_TRUE(parsed.ok());
  ChatTemplate copy = *parsed;
  EXPECT_EQ(*parsed->Render({{"y", 1}}), "2");
  EXPECT_EQ(*parsed->Render({{"y", 2}}), "3");
  EXPECT_EQ(*copy.Render({{"y", 3}}), "4");
}

TEST(ChatTemplate, PrintsValuesOfJsonAsPythonDoes) {
  ExpectText("{{ v }}", "[None, True, -1, 2.5, 1e+30, 1.8446744073709552e+19, 'é', {'k': []}]",
             {{"v", {nullptr, true, -1, 2.5, 1e30, UINT64_MAX, "é", {{"k", Json::array()}}}}});
}

TEST(ChatTemplate, GenerationBlocksAreTheirContents) {
  ExpectText("a{% generation %}b{% set x = 1 %}{% endgeneration %}{{ x is defined }}", "abFalse");
}

TEST(ChatTemplate, ClockIsTheCallers) {
  ExpectText("{{ strftime_now('%Y') }}", "now(%Y)");
  absl::StatusOr<ChatTemplate> parsed = ChatTemplate::Parse("{{ strftime_now('%Y') }}", "t");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->Render(Json::object()).status().message(),
            "template t, line 1: strftime_now needs a clock, which the caller has not given");
}

TEST(ChatTemplateErrors, NameTheTemplateAndTheLine) {
  ExpectError("a\n{{ x.y }}", "template t.jinja, line 2: 'x' is undefined");
  ExpectError("\n\n{{ raise_exception('no ' ~ 1) }}", "template t.jinja, line 3: the template says: no 1");
  ExpectError("{# \n #}\n{% foo %}",
              "template t.jinja, line 3: the tag 'foo' is not known; known: if, for, set, macro, generation, break, "
              "continue, raw");
  ExpectError("\n{{ 1 + 'a' }}", "template t.jinja, line 2: '+' has no meaning for int and str");
  ExpectError("\n{{ 'a' | sort }}", "template t.jinja, line 2: the filter 'sort' is not known");
  ExpectError("\n{{ 'a' is upper }}", "template t.jinja, line 2: the test 'upper' is not known");
  ExpectError("\n{{ 'a'.zfill('3') }}", "template t.jinja, line 2: str has no method 'zfill' here");
  ExpectError("\n{% for i in 5 %}{% endfor %}", "template t.jinja, line 2: int has no elements");
  ExpectError("{% macro f() %}\n\n{% endmacro %}\n{{ f() + 1 }}",
              "template t.jinja, line 4: '+' has no meaning for str and int");
  ExpectError("\n{{ 99999999999 * 99999999 }}", "template t.jinja, line 2: a number has more than 64 bits");
  ExpectError("\n{{ 99999999999999999999 }}",
              "template t.jinja, line 2: the number 99999999999999999999 has more than 64 bits");
  ExpectError("{{ 1 }}", "template t.jinja, line 1: the variables are no JSON object", Json::array());
}

TEST(ChatTemplateErrors, RefuseWhatWouldRenderOtherwise) {
  for (absl::string_view source :
       {"{% for i in [1] recursive %}{% endfor %}", "{% set x | upper %}a{% endset %}", "{{ 'é' | upper }}",
        "{{ 'a' | tojson(ensure_ascii=true) }}", "{{ 'aa'.replace('a', 'b', 1) }}", "{{ 'a b'.split(none, 1) }}",
        "{{ [1] | join(',', attribute='x') }}", "{{ 'a' | tojson(sort_keys=true) }}", "{% include 'x' %}",
        "{% extends 'x' %}", "{% call f() %}{% endcall %}", "{{ ''.__class__.__mro__ }}", "{{ [].append(1) }}",
        "{{ {}.update({}) }}", "{{ 'a'.format(1) }}", "{{ '%s' % 1 }}"})
    EXPECT_FALSE(Render(source).ok()) << source;
}

TEST(ChatTemplateErrors, ParseErrorsSayWhatIsExpected) {
  for (auto [source, message] : std::initializer_list<std::pair<absl::string_view, absl::string_view>>{
           {"{{ 1", "a tag has no end"},
           {"{# a", "the comment has no end"},
           {"{% raw %}", "raw has no end"},
           {"{{ 'a }}", "the string of line 1 has no end"},
           {"{{ (1] }}", "']' closes nothing"},
           {"{{ 1 ? 2 }}", "the character '?' has no meaning here"},
           {"{% if 1 %}", "a block has no end"},
           {"{% endif %}", "the tag 'endif' is not known"},
           {"{{ }}", "begins no expression"},
           {"{{ '\\ud800' }}", "an escape is no character of Unicode"},
           {"{{ '\\x4' }}", "an escape has too few digits"},
           {"{% break %}", "'break' stands outside of a loop"},
           {"{% for i in x %}{% macro f() %}{% continue %}{% endmacro %}{% endfor %}", "stands outside of a loop"},
           {"{{ f(a=1, 2) }}", "an argument without a name follows one with a name"},
           {"{{ a[] }}", "[] names no element"}}) {
    absl::Status status = ChatTemplate::Parse(source, "t").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << source;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(message))) << source;
    EXPECT_THAT(std::string(status.message()), HasSubstr("template t, line 1: ")) << source;
  }
}

}  // namespace
}  // namespace bowline
