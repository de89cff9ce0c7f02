#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_TRAINER_STATE_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_TRAINER_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/train/data/sampler.h"

namespace bowline {

// The numbers that a run needs, beside its tensors, to go on as if it had never stopped.
struct TrainerState {
  int64_t step = 0;   // optimizer steps done
  uint64_t seed = 0;  // the seed of the shuffle and of random operations
  DataOrder order = DataOrder::kSequential;
  int64_t next_draw = 0;    // data position: the first draw of the Sampler that was not trained on
  int64_t data_tokens = 0;  // size of the dataset, to notice another one
  std::string plan = {};    // name of the plan, for messages
  // The number of sequences of the global batch, and that of positions of a sequence; 0 if they are not recorded.
  int64_t batch = 0;
  int64_t sequence = 0;
  std::string data_digest = {};  // DigestOf the dataset; empty if it is not recorded
  // A random text that all checkpoints of one run have, also after it is resumed; and the recipe (recipe.h) of the plan
  // that computed the last step. Empty if they are not recorded.
  std::string run = {};
  std::string recipe = {};
  std::vector<std::string> unwritten_metrics = {};  // the last lines of metrics, which could not be written

  bool operator==(const TrainerState&) const = default;
};

// The content of trainer_state.json, and its reader. Errors name the file.
std::string TrainerStateToJson(const TrainerState& state);
absl::StatusOr<TrainerState> ReadTrainerState(const std::string& path);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_TRAINER_STATE_H_
