#include "runtime/serve/line_log.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace bowline::serve {
namespace {

// A pipe that has room has it for this many bytes: a write of them does not wait.
constexpr size_t kPiece = PIPE_BUF;
// Between two looks at whether the log ends.
constexpr int kLookMilliseconds = 20;

}  // namespace

LineLog::LineLog(int descriptor, Options options)
    : descriptor_(descriptor), options_(options), thread_([this] { Run(); }) {}

LineLog::~LineLog() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
    give_up_ = std::chrono::steady_clock::now() + options_.patience;
  }
  changed_.notify_all();
  thread_.join();
}

void LineLog::Write(absl::string_view line) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (broken_) return;
  if (lost_ > 0 || waiting_.size() + line.size() >= options_.waiting_bytes) {
    ++lost_;
  } else {
    absl::StrAppend(&waiting_, line, "\n");
  }
  changed_.notify_all();
}

void LineLog::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || lost_ > 0 || !waiting_.empty(); });
    std::string text = std::exchange(waiting_, {});
    if (lost_ > 0) absl::StrAppend(&text, "{\"lost_lines\":", std::exchange(lost_, 0), "}\n");
    if (text.empty()) return;
    lock.unlock();
    const bool written = WriteAll(text);
    lock.lock();
    if (written) continue;
    broken_ = true;
    return;
  }
}

bool LineLog::WriteAll(absl::string_view text) {
  while (!text.empty()) {
    if (!WaitForRoom()) return false;
    const ssize_t size = ::write(descriptor_, text.data(), std::min(text.size(), kPiece));
    if (size < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (size > 0) text.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

bool LineLog::WaitForRoom() {
  while (true) {
    pollfd room = {descriptor_, POLLOUT, 0};
    const int found = ::poll(&room, 1, kLookMilliseconds);
    if (found > 0) return (room.revents & POLLOUT) != 0;
    if (found < 0 && errno != EINTR) return false;
    if (std::chrono::steady_clock::now() >= give_up_.load()) return false;
  }
}

}  // namespace bowline::serve
