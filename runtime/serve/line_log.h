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

// Writes lines to a descriptor from a thread of its own, so that a reader that stops delays no other thread.
class LineLog {
 public:
  struct Options {
    size_t waiting_bytes = 1 << 20;  // of lines that no reader read yet; further lines are lost
    // How long the end waits for a reader.
    std::chrono::milliseconds patience = std::chrono::seconds(1);
  };

  // `descriptor` stays the caller's, and open as long as this lives.
  LineLog(int descriptor, Options options);
  explicit LineLog(int descriptor) : LineLog(descriptor, Options()) {}
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;
  ~LineLog();

  // Takes a line without its end, and returns at once. Behind lines that are lost comes {"lost_lines":N}.
  void Write(absl::string_view line);

 private:
  void Run();
  // False when no process can read any more.
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
