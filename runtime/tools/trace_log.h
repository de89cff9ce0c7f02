#ifndef BOWLINE_RUNTIME_TOOLS_TRACE_LOG_H_
#define BOWLINE_RUNTIME_TOOLS_TRACE_LOG_H_

#include "runtime/base/chrome_trace.h"
#include "runtime/executor/session.h"

namespace bowline {

// Adds the measurements of the session's rank: its commands by stream, each with its source and bytes.
void AddTrace(const Session& session, ChromeTrace& trace);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_TRACE_LOG_H_
