#ifndef BOWLINE_RUNTIME_TEXT_CHAT_TEMPLATE_H_
#define BOWLINE_RUNTIME_TEXT_CHAT_TEMPLATE_H_

// Chat templates: the part of Jinja that published ones use, as transformers' apply_chat_template sets it up. Templates
// may be hostile: they change nothing but their own namespaces, and limits bound their use of time and memory.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bowline {

namespace jinja {
struct Node;
}

struct ChatTemplateLimits {
  size_t source_bytes = 256 << 10;
  int depth = 64;               // nesting of expressions and blocks, and depth of macro calls
  int64_t steps = 1'000'000;    // evaluated nodes, visited elements, and blocks of 64 bytes of text
  size_t text_bytes = 4 << 20;  // of the output, and of each string
  int64_t range = 100'000;      // elements of range()
  int nesting = 100;            // levels of lists and dicts that contain each other
};

class ChatTemplate {
 public:
  // Returns the text of strftime_now(format) in a template.
  using Clock = std::function<std::string(const std::string& format)>;

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
