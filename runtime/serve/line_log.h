#ifndef BOWLINE_RUNTIME_SERVE_LINE_LOG_H_
#define BOWLINE_RUNTIME_SERVE_LINE_LOG_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"

namespace bowline::serve {

// Writes lines to a descriptor on its own thread, so that a reader that stops reading delays no other thread.
class LineLog {
 public:
  struct Options {
    size_t waiting_bytes = 1 << 20;  // of lines that are not yet written; further lines are lost
    // How long the destructor waits for a reader.
    std::chrono::milliseconds patience = std::chrono::seconds(1);
  };

  // The caller owns `descriptor`, and keeps it open as long as the log exists.
  LineLog(int descriptor, Options options);
  explicit LineLog(int descriptor) : LineLog(descriptor, Options()) {}
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;
  ~LineLog();

  // Takes a line without a newline, and returns at once. Writes {"lost_lines":N} after lines that were lost.
  void Write(absl::string_view line);

 private:
  void Run();
  // Returns false if the log can write no more: no reader is left, or the destructor's patience has run out.
  bool WriteAll(absl::string_view text);
  bool WaitForRoom();

  const int descriptor_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string waiting_;
  size_t lost_ = 0;
  bool broken_ = false, ends_ = false;
  std::atomic<std::chrono::steady_clock::time_point> give_up_ = std::chrono::steady_clock::time_point::max();
  std::thread thread_;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_LINE_LOG_H_
