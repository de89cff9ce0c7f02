#ifndef BOWLINE_RUNTIME_TEXT_CHAT_TEMPLATE_H_
#define BOWLINE_RUNTIME_TEXT_CHAT_TEMPLATE_H_

// Chat templates: the part of Jinja that published ones use, as transformers' apply_chat_template sets it up. Templates
// may be hostile: they change nothing but their own namespaces, and limits bound their use of time and memory.

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/text/jinja/limits.h"

namespace bowline {

namespace jinja {
struct Node;
}

class ChatTemplate {
 public:
  using Clock = ChatTemplateClock;

  // `name` names the template in messages.
  static absl::StatusOr<ChatTemplate> Parse(absl::string_view text, absl::string_view name,
                                            const ChatTemplateLimits& limits = {});
  // `variables` is an object with messages, bos_token, add_generation_prompt and tools. Without a clock, strftime_now
  // is an error.
  absl::StatusOr<std::string> Render(const nlohmann::ordered_json& variables, const Clock& clock = nullptr) const;

 private:
  std::string name_;
  ChatTemplateLimits limits_;
  std::shared_ptr<const jinja::Node> root_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_CHAT_TEMPLATE_H_
