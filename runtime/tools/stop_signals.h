#ifndef BOWLINE_RUNTIME_TOOLS_STOP_SIGNALS_H_
#define BOWLINE_RUNTIME_TOOLS_STOP_SIGNALS_H_

#include <atomic>

namespace bowline {

// Makes the first SIGINT or SIGTERM a request to finish what is being done; a second one ends the process at once. The
// result becomes true with the request.
const std::atomic<bool>& CatchStopSignals();

// Makes the same request as the first signal.
void RequestStop();

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_STOP_SIGNALS_H_
