#ifndef BOWLINE_RUNTIME_TRAIN_METRICS_LOG_H_
#define BOWLINE_RUNTIME_TRAIN_METRICS_LOG_H_

#include <cstdint>
#include <string>

#include "runtime/base/json_lines.h"
#include "runtime/base/status.h"
#include "runtime/train/checkpoint_saver.h"
#include "runtime/train/trainer.h"

namespace bowline {

// The metrics of a run as JSON lines, in the order in which things happened:
//
//   {"step":1,"loss":4.8,"grad_norm":1.3,"lr":0.001,"tokens_per_s":51200.0,"step_ms":20.0}
//   {"step":1,"save_s":2.5,"save_stall_s":0.3}
//   {"step":1,"eval_loss":4.7}
//   {"step":2,"changes":{"lr":{"from":0.001,"to":0.01}}}
//
// Where the device runs beside the host, a step also has "host_ms": how long the host took to issue its commands.
// A save in the background is written when it is done, after lines of later
// steps. Losses are f32 written exactly: equal numbers mean equal bits. A value that is no number is written as null.
class MetricsLog {
 public:
  // kInvalidArgument when `path` is a file that holds something else than metrics, which a run would lose for good.
  static absl::Status CheckFile(const std::string& path);

  // Starts an empty file in place of that of an earlier run, which CheckFile must allow.
  static absl::StatusOr<MetricsLog> Create(const std::string& path);

  // Continues the file of a run that is resumed after `step`: removes the lines of later steps, which the run will take
  // again. A run that was killed and resumed thus leaves the lines of one that never stopped. Begins a file if there is
  // none; devices and pipes are only appended to. kInvalidArgument, with the file as it was, when a line up to that
  // step is no line of metrics.
  static absl::StatusOr<MetricsLog> Continue(const std::string& path, int64_t step);

  // Whether the file, which may not be there, has a line of the evaluation after `step`.
  static bool HasEvaluation(const std::string& path, int64_t step);

  absl::Status WriteStep(int64_t step, const StepResult& result, double tokens_per_second, double milliseconds);
  absl::Status WriteEvaluation(int64_t step, double loss);
  // Before the first step of a run that goes on with other settings than its checkpoint.
  absl::Status WriteChanges(int64_t step, absl::Span<const SettingChange> changes);
  absl::Status WriteSave(const SavedCheckpoint& saved);

 private:
  explicit MetricsLog(JsonLinesWriter writer) : writer_(std::move(writer)) {}

  JsonLinesWriter writer_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_METRICS_LOG_H_
