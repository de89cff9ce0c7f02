#ifndef BOWLINE_RUNTIME_BASE_CHROME_TRACE_H_
#define BOWLINE_RUNTIME_BASE_CHROME_TRACE_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace bowline {

// A trace for chrome://tracing and ui.perfetto.dev, in the JSON object format of Chrome's trace events. Ranks are
// processes, and streams are threads. Several threads may add to it at the same time.
class ChromeTrace {
 public:
  struct Slice {
    std::string name;
    std::string category;
    double begin_us = 0;
    double duration_us = 0;
    std::map<std::string, std::string> arguments;
  };

  void NameProcess(int64_t process, const std::string& name) { Name("process_name", process, 0, name); }
  void NameThread(int64_t process, int64_t thread, const std::string& name) {
    Name("thread_name", process, thread, name);
  }
  void Add(int64_t process, int64_t thread, const Slice& slice);

  // Writes the trace, with times from the earliest slice on. Replaces the file as a whole.
  absl::Status Write(const std::string& path) const;

 private:
  struct Event {
    int64_t process, thread;
    Slice slice;
    std::string named;  // not a slice but the name of a process or a thread
  };
  void Name(const char* kind, int64_t process, int64_t thread, const std::string& name);

  mutable std::mutex mutex_;
  std::vector<Event> events_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_CHROME_TRACE_H_
