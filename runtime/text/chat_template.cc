#include "runtime/text/chat_template.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/text/jinja/evaluator.h"
#include "runtime/text/jinja/parser.h"
#include "runtime/text/jinja/text.h"

namespace bowline {

static absl::Status InTemplate(absl::string_view name, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("template ", name, ", ", status.message()));
}

absl::StatusOr<ChatTemplate> ChatTemplate::Parse(absl::string_view text, absl::string_view name,
                                                 const ChatTemplateLimits& limits) {
  if (text.size() > limits.source_bytes)
    return absl::ResourceExhaustedError(absl::StrCat("template ", name, " has ", text.size(), " bytes, more than the ",
                                                     limits.source_bytes, " that a template may have"));
  if (!jinja::IsUtf8(text)) return absl::InvalidArgumentError(absl::StrCat("template ", name, " is not UTF-8"));
  auto root = jinja::ParseTemplate(text, {.depth = limits.depth});
  if (!root.ok()) return InTemplate(name, root.status());
  ChatTemplate result;
  result.name_ = std::string(name);
  result.limits_ = limits;
  result.root_ = *std::move(root);
  return result;
}

absl::StatusOr<std::string> ChatTemplate::Render(const nlohmann::ordered_json& variables, const Clock& clock) const {
  jinja::Evaluator evaluator(limits_, clock);
  auto text = evaluator.Run(*root_, variables);
  if (!text.ok()) return InTemplate(name_, text.status());
  return text;
}

}  // namespace bowline
