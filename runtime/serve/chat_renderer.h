#ifndef BOWLINE_RUNTIME_SERVE_CHAT_RENDERER_H_
#define BOWLINE_RUNTIME_SERVE_CHAT_RENDERER_H_

#include <functional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/serve/api_request.h"
#include "runtime/serve/model_files.h"

namespace bowline::serve {

// Renders a conversation as text, up to where the assistant's answer begins. Returns kInvalidArgument if the chat
// template refuses the conversation.
using ChatRenderer = std::function<absl::StatusOr<std::string>(const OrderedJson& messages)>;

// Renders by the chat template of the files, which can read the time in UTC. kInvalidArgument if it does not parse.
absl::StatusOr<ChatRenderer> MakeChatRenderer(const ModelFiles& files);

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_CHAT_RENDERER_H_
