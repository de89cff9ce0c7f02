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
  BOWLINE_ASSIGN_OR_RETURN(ChatTemplate parsed, ChatTemplate::Parse(files.chat_template, "'chat_template'"));
  return ChatRenderer([chat = std::make_shared<const ChatTemplate>(std::move(parsed)), begin = files.begin_text,
                       end = files.end_text](const OrderedJson& messages) {
    return chat->Render({{"messages", messages},
                         {"bos_token", begin},
                         {"eos_token", end},
                         {"add_generation_prompt", true},
                         {"tools", nullptr}},
                        FormatNow);
  });
}

}  // namespace bowline::serve
