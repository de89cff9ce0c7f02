#ifndef BOWLINE_RUNTIME_TRAIN_TOKEN_PORTS_H_
#define BOWLINE_RUNTIME_TRAIN_TOKEN_PORTS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"
#include "runtime/executor/session.h"
#include "runtime/train/dataset.h"
#include "runtime/train/sampler.h"

namespace bowline {

// The inputs `tokens` and `labels` of an entry, each i32 [rows, sequence] per microbatch (slot).
class TokenPorts {
 public:
  // kFailedPrecondition, naming entry and port, when the entry does not have these inputs or they do not fit together.
  static absl::StatusOr<TokenPorts> Find(const Session& session, absl::string_view entry);

  // Samples in one run of the entry, of all microbatches.
  int64_t batch() const { return rows_ * static_cast<int64_t>(slots_.size()); }
  int64_t sequence() const { return sequence_; }
  int64_t tokens() const { return batch() * sequence_; }
  // What a dataset must satisfy to be read into these ports.
  DatasetOptions dataset_options() const { return {.vocabulary = vocabulary_}; }

  // Fills all microbatches, in order, with the draws first ... first + batch() - 1. No allocation unless it fails.
  absl::Status Fill(const Sampler& sampler, int64_t first) const;

 private:
  struct Slot {
    int32_t* tokens;
    int32_t* labels;
  };

  TokenPorts() = default;

  std::vector<Slot> slots_;
  int64_t rows_ = 0;
  int64_t sequence_ = 0;
  int64_t vocabulary_ = 0;
};

// The one f32 of an output. kFailedPrecondition when there is no such output or it is something else.
absl::StatusOr<const float*> FindScalarOutput(const Session& session, absl::string_view entry, absl::string_view port);

// True when the plan has the entry.
bool HasEntry(const fbs::Plan& plan, absl::string_view entry);

// The input port of an entry; null when there is none.
const fbs::Port* FindInputPort(const fbs::Plan& plan, absl::string_view entry, absl::string_view port);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TOKEN_PORTS_H_
