#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_TRAINER_STATE_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_TRAINER_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/train/data/sampler.h"

namespace bowline {

// The numbers, besides tensors, with which a resumed run continues as if it had never stopped.
struct TrainerState {
  int64_t step = 0;   // optimizer steps done
  uint64_t seed = 0;  // the seed of the shuffle and of random operations
  DataOrder order = DataOrder::kSequential;
  int64_t next_draw = 0;    // data position: number of the first Sampler draw not yet trained on
  int64_t data_tokens = 0;  // number of tokens of the dataset; detects another dataset
  std::string plan = {};    // name of the plan, for messages
  // Global batch in sequences, and positions per sequence; 0 in older checkpoints, which do not record them.
  int64_t batch = 0;
  int64_t sequence = 0;
  std::string data_digest = {};  // DigestOf the dataset; empty in older checkpoints
  std::string data_names = {};   // NamesOf the dataset, for messages; empty in older checkpoints
  // `run` is a random text that all checkpoints of one run share, also after it is resumed. `recipe` (recipe.h) has the
  // settings of the plan that computed the last step. Both are empty in older checkpoints.
  std::string run = {};
  std::string recipe = {};
  std::vector<std::string> unwritten_metrics = {};  // last lines of the metrics log, if writing them failed

  bool operator==(const TrainerState&) const = default;
};

// Format and parse trainer_state.json. Errors name the file.
std::string TrainerStateToJson(const TrainerState& state);
absl::StatusOr<TrainerState> ReadTrainerState(const std::string& path);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_TRAINER_STATE_H_
