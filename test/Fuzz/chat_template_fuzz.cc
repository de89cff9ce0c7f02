// Any bytes as a template: an error, or a rendering within its limits that is UTF-8.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/jinja/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* variables = new nlohmann::ordered_json(nlohmann::ordered_json::parse(R"({
    "messages": [{"role": "system", "content": " be good"}, {"role": "user", "content": "h\u00e9\n"},
                 {"role": "assistant", "content": null, "tool_calls": [{"name": "f", "arguments": {"x": [1, 2.5]}}]}],
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true})"));
  const bowline::ChatTemplateLimits limits = {.source_bytes = 16 << 10, .steps = 20'000, .text_bytes = 64 << 10};
  const absl::string_view source(reinterpret_cast<const char*>(data), size);
  const auto parsed = bowline::ChatTemplate::Parse(source, "fuzz", limits);
  if (!parsed.ok()) return 0;
  const auto text = parsed->Render(*variables, [](const std::string& format) { return format; });
  if (text.ok() && (text->size() > limits.text_bytes || !bowline::jinja::IsUtf8(*text))) std::abort();
  return 0;
}
