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

// Writes the metrics of a run as JSON lines, in the order of events:
//
//   {"step":1,"loss":4.8,"grad_norm":1.3,"lr":0.001,"tokens_per_s":51200.0,"step_ms":20.0,"run":"1f0c9ab3d2470e65"}
//   {"step":1,"save_s":2.5,"save_stall_s":0.3}
//   {"step":1,"eval_loss":4.7}
//   {"step":2,"changes":{"lr":{"from":0.001,"to":0.01}}}
//
// If the device runs beside the host, steps also have "host_ms", the milliseconds that the host took to issue their
// commands. The line of a background save is written when the save has ended, after the lines of steps taken meanwhile.
// Losses are f32 and written exactly, so that equal numbers are equal bits. Infinity and NaN are written as null.
//
// A file belongs to one run. Its first line has the name of the run, as checkpoints do (TrainerState.run).
class MetricsLog {
 public:
  using PipeHooks = JsonLinesWriter::PipeHooks;

  // The point from which a resumed run continues.
  struct Place {
    std::string run;                          // the name of the run
    int64_t step = 0;                         // the last step that was taken
    std::vector<std::string> unwritten = {};  // lines up to that step that are not in the file; see unwritten()
    // Keep the lines of later steps, because the run is finished and takes no step again.
    bool is_finished = false;
  };

  // Returns kInvalidArgument when `path` is a file with other content than metrics, which a run would destroy.
  static absl::Status CheckFile(const std::string& path);

  // Starts the file of a new run. An existing file may be empty or contain a part of a first line. Returns
  // kFailedPrecondition, without changing the file, when it has metrics of an earlier run or another run is writing it.
  static absl::StatusOr<MetricsLog> Create(const std::string& path, const std::string& run, PipeHooks hooks = {});

  // Continues the file of a resumed run: removes the lines of later steps, which the run takes again, and writes those
  // of `place.unwritten`. So a run that was killed and resumed leaves the same lines as one that never stopped. Creates
  // a missing file; only appends to devices and pipes. Without changing the file, returns kInvalidArgument when a line
  // up to that step is not a line of metrics, and kFailedPrecondition when the file belongs to another run or another
  // run is writing it.
  static absl::StatusOr<MetricsLog> Continue(const std::string& path, const Place& place, PipeHooks hooks = {});

  // Returns whether the file, if it exists, has a line for the evaluation after `step`.
  static bool HasEvaluation(const std::string& path, int64_t step);

  // The steps before `place` without a line in the file: "steps 7 to 9". Empty if there are none, or that is unknown.
  const std::string& missing() const { return missing_; }

  // After a line could not be written, all later writes are skipped and return the same error. These are all lines not
  // written; checkpoints keep them for the run that resumes.
  const std::vector<std::string>& unwritten() const { return unwritten_; }

  absl::Status WriteStep(int64_t step, const StepResult& result, double tokens_per_second, double milliseconds);
  // Writes the loss after the last step. In a finished run that was resumed, skips a line that the file already has.
  absl::Status WriteEvaluation(int64_t step, double loss);
  // Writes settings that differ from the checkpoint's, before the first step of a resumed run.
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
