#ifndef BOWLINE_RUNTIME_TOOLS_TRAIN_CONSOLE_H_
#define BOWLINE_RUNTIME_TOOLS_TRAIN_CONSOLE_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/train/train_loop.h"

namespace bowline {

// Tells a person on stderr how a training run goes. On a terminal: one line that is rewritten; elsewhere: a line for
// the first and the last step and one every ten seconds. Evaluations and checkpoints have lines of their own.
class TrainConsole : public TrainObserver {
 public:
  // `first` and `last`: the steps that the run will take.
  TrainConsole(bool quiet, int64_t first, int64_t last);
  ~TrainConsole() override;

  void OnStep(int64_t step, const StepResult& result, double tokens_per_second) override;
  void OnEvaluation(int64_t step, double loss) override;
  void OnSave(int64_t step, const std::string& path) override;
  void OnNote(absl::string_view note) override;

  // Prints the cost of the steps to the host, if the steps ran beside the host.
  void Summarize();

  // A line that stays.
  void Say(absl::string_view text);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kHostSteps = 10'000;

  bool quiet_;
  bool terminal_;
  int64_t first_;
  int64_t last_;
  bool line_is_open_ = false;  // the terminal's cursor is behind a line that is to be rewritten
  Clock::time_point after_first_;
  Clock::time_point next_;
  std::vector<double> host_seconds_;  // of the first kHostSteps steps after the first one
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_TRAIN_CONSOLE_H_
