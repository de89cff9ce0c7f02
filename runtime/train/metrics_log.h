#ifndef BOWLINE_RUNTIME_TRAIN_METRICS_LOG_H_
#define BOWLINE_RUNTIME_TRAIN_METRICS_LOG_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/json_lines.h"
#include "runtime/base/status.h"
#include "runtime/train/checkpoint/checkpoint_saver.h"
#include "runtime/train/trainer.h"

namespace bowline {

// The metrics of a run as JSON lines, in the order in which things happened:
//
//   {"step":1,"loss":4.8,"grad_norm":1.3,"lr":0.001,"tokens_per_s":51200.0,"step_ms":20.0,"run":"1f0c9ab3d2470e65"}
//   {"step":1,"save_s":2.5,"save_stall_s":0.3}
//   {"step":1,"eval_loss":4.7}
//   {"step":2,"changes":{"lr":{"from":0.001,"to":0.01}}}
//
// Where the device runs beside the host, a step also has "host_ms": how long the host took to issue its commands.
// A save in the background is written when it is done, after lines of later
// steps. Losses are f32 written exactly: equal numbers mean equal bits. A value that is no number is written as null.
//
// A file belongs to one run, which its first line names as checkpoints do (TrainerState.run).
class MetricsLog {
 public:
  using PipeHooks = JsonLinesWriter::PipeHooks;

  // Where a run goes on that is resumed.
  struct Place {
    std::string run;                          // its name
    int64_t step = 0;                         // that was done
    std::vector<std::string> unwritten = {};  // lines up to that step, see below
    // Whether lines of later steps stay, for no step is taken again.
    bool is_finished = false;
  };

  // kInvalidArgument when `path` is a file that holds something else than metrics, which a run would lose for good.
  static absl::Status CheckFile(const std::string& path);

  // Starts the file of a run, which may be there if it is empty or has a part of its first line. kFailedPrecondition,
  // with the file as it was, when it has metrics of an earlier run, or another run is writing them.
  static absl::StatusOr<MetricsLog> Create(const std::string& path, const std::string& run, PipeHooks hooks = {});

  // Continues the file of a run that is resumed: removes the lines of later steps, which the run will take again, and
  // writes those that could not be written before. A run that was killed and resumed thus leaves the lines of one that
  // never stopped. Begins a file if there is none; devices and pipes are only appended to. With the file as it was:
  // kInvalidArgument when a line up to that step is no line of metrics; kFailedPrecondition when the file is that of
  // another run, or another run is writing it.
  static absl::StatusOr<MetricsLog> Continue(const std::string& path, const Place& place, PipeHooks hooks = {});

  // Whether the file, which may not be there, has a line of the evaluation after `step`.
  static bool HasEvaluation(const std::string& path, int64_t step);

  // "steps 7 to 9", those before the place that have no line in the file; empty if none is missing or nothing is known.
  const std::string& missing() const { return missing_; }

  // After the first line that cannot be written none is, and all calls return its error. These are the lines, for the
  // run that goes on.
  const std::vector<std::string>& unwritten() const { return unwritten_; }

  absl::Status WriteStep(int64_t step, const StepResult& result, double tokens_per_second, double milliseconds);
  // Writes the evaluation of a run that has taken all of its steps, unless the file already has that loss.
  absl::Status WriteEvaluation(int64_t step, double loss);
  // Before the first step of a run that goes on with other settings than its checkpoint.
  absl::Status WriteChanges(int64_t step, absl::Span<const SettingChange> changes);
  absl::Status WriteSave(const SavedCheckpoint& saved);

 private:
  MetricsLog(JsonLinesWriter writer, std::string run) : writer_(std::move(writer)), run_(std::move(run)) {}

  absl::Status Write(std::string line);

  JsonLinesWriter writer_;
  std::string run_;
  bool names_run_ = false;  // whether the first line is written
  std::vector<std::string> unwritten_;
  std::string missing_;
  bool is_finished_ = false;
  absl::Status failed_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_METRICS_LOG_H_
