#include "runtime/tools/train_console.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace bowline {
namespace {

std::string DescribeSeconds(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  return whole < 3600 ? absl::StrFormat("%d:%02d", whole / 60, whole % 60)
                      : absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

TrainConsole::TrainConsole(bool quiet, int64_t first, int64_t last)
    : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1), first_(first), last_(last), next_(Clock::now()) {}

TrainConsole::~TrainConsole() {
  if (line_is_open_) std::fputc('\n', stderr);
}

void TrainConsole::OnStep(int64_t step, const StepResult& result, double tokens_per_second) {
  const Clock::time_point now = Clock::now();
  // The first step is not typical: it touches all memory for the first time.
  if (step == first_) after_first_ = now;
  if (step > first_ && result.host_seconds.has_value() && host_seconds_.size() < kHostSteps) {
    host_seconds_.push_back(*result.host_seconds);
  }
  if (quiet_ || (now < next_ && step != last_)) return;
  next_ = now + (terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10'000));
  std::string line = absl::StrFormat("step %d/%d  loss %.4f  grad norm %.3g  lr %.3g  %.0f tokens/s", step, last_,
                                     result.loss, result.grad_norm, result.lr, tokens_per_second);
  if (step > first_ && step < last_) {
    const double seconds_per_step =
        std::chrono::duration<double>(now - after_first_).count() / static_cast<double>(step - first_);
    absl::StrAppend(&line, "  ", DescribeSeconds(seconds_per_step * static_cast<double>(last_ - step)), " left");
  }
  if (terminal_) {
    absl::FPrintF(stderr, "\r\033[K%s", line);
    line_is_open_ = true;
  } else {
    absl::FPrintF(stderr, "%s\n", line);
  }
  std::fflush(stderr);
}

void TrainConsole::Summarize() {
  if (host_seconds_.empty()) return;
  const auto middle = host_seconds_.begin() + static_cast<std::ptrdiff_t>(host_seconds_.size() / 2);
  std::nth_element(host_seconds_.begin(), middle, host_seconds_.end());
  Say(absl::StrFormat("the host issued the commands of a step in %.3f ms, the median of %d steps", *middle * 1e3,
                      host_seconds_.size()));
}

void TrainConsole::OnEvaluation(int64_t step, double loss) {
  Say(absl::StrFormat("step %d: evaluation loss %.4f", step, loss));
}

void TrainConsole::OnSave(int64_t step, const std::string& path) { Say(absl::StrCat("step ", step, ": saved ", path)); }

void TrainConsole::OnNote(absl::string_view note) { Say(absl::StrCat("bowline-run: note: ", note)); }

void TrainConsole::Say(absl::string_view text) {
  if (quiet_) return;
  if (line_is_open_) std::fputs("\r\033[K", stderr);
  line_is_open_ = false;
  next_ = terminal_ ? Clock::now() : next_;
  absl::FPrintF(stderr, "%s\n", text);
}

}  // namespace bowline
