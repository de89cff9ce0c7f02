#include "runtime/serve/chat_renderer.h"

#include <array>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/text/chat_template.h"

namespace bowline::serve {
namespace {

std::string FormatNow(const std::string& format) {
  const std::time_t now = std::time(nullptr);
  std::tm parts;
  gmtime_r(&now, &parts);
  std::array<char, 256> text;
  return std::string(text.data(), std::strftime(text.data(), text.size(), format.c_str(), &parts));
}

}  // namespace

absl::StatusOr<ChatRenderer> MakeChatRenderer(const ModelFiles& files) {
  BOWLINE_ASSIGN_OR_RETURN(ChatTemplate parsed, ChatTemplate::Parse(files.chat_template, files.template_name));
  return ChatRenderer([chat = std::make_shared<const ChatTemplate>(std::move(parsed)), begin = files.begin_text,
                       end = files.end_text](const OrderedJson& messages) {
    absl::StatusOr<std::string> text = chat->Render({{"messages", messages},
                                                     {"bos_token", begin},
                                                     {"eos_token", end},
                                                     {"add_generation_prompt", true},
                                                     {"tools", nullptr}},
                                                    FormatNow);
    // The template is wrong that takes too many steps, and not the machine too small.
    if (absl::IsResourceExhausted(text.status())) {
      return absl::StatusOr<std::string>(absl::InvalidArgumentError(text.status().message()));
    }
    return text;
  });
}

}  // namespace bowline::serve
