#ifndef BOWLINE_RUNTIME_SERVE_CHAT_RENDERER_H_
#define BOWLINE_RUNTIME_SERVE_CHAT_RENDERER_H_

#include <functional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/serve/api_request.h"
#include "runtime/serve/model_files.h"

namespace bowline::serve {

// The text of a conversation, up to where the assistant's answer begins. kInvalidArgument where the template refuses
// it.
using ChatRenderer = std::function<absl::StatusOr<std::string>(const OrderedJson& messages)>;

// By the template of the files, which has the time of day in UTC. kInvalidArgument where it is not understood.
absl::StatusOr<ChatRenderer> MakeChatRenderer(const ModelFiles& files);

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_CHAT_RENDERER_H_
