#ifndef BOWLINE_RUNTIME_SERVE_FINISH_REASON_H_
#define BOWLINE_RUNTIME_SERVE_FINISH_REASON_H_

#include <cstdint>

namespace bowline::serve {

enum class FinishReason : uint8_t {
  kStop,       // an end token, or the receiver of the tokens wants no more
  kLength,     // as many tokens as were asked for, or as fit
  kCancelled,  // the client is gone, or the server stops
  kFailed,
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_FINISH_REASON_H_
