#ifndef BOWLINE_RUNTIME_TRAIN_TOKEN_PORTS_H_
#define BOWLINE_RUNTIME_TRAIN_TOKEN_PORTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status.h"
#include "runtime/executor/session.h"
#include "runtime/train/data/dataset.h"
#include "runtime/train/data/sampler.h"

namespace bowline {

// The inputs `tokens` and `labels` of an entry. Each has one slot per microbatch, i32 [rows, sequence] over all ranks.
// A rank has its shard of that, and a pipeline stage only the inputs that it reads.
class TokenPorts {
 public:
  // Returns kFailedPrecondition, naming entry and port, when an input is missing or the two do not match.
  static absl::StatusOr<TokenPorts> Find(const Session& session, absl::string_view entry);

  // The number of samples in one run of the entry, over all microbatches and ranks.
  int64_t batch() const { return rows_ * static_cast<int64_t>(tokens_.slots.size()); }
  int64_t sequence() const { return sequence_; }
  int64_t tokens() const { return batch() * sequence(); }
  // Options for opening a dataset whose tokens fit these ports.
  DatasetOptions dataset_options() const { return {.vocabulary = vocabulary_}; }

  // Reads `count` rows, from `first` on, of the batch() rows of a run, as Sampler::FillDraws reads draws.
  using ReadRows = absl::FunctionRef<absl::Status(int64_t first, int64_t count, int32_t* tokens, int32_t* labels)>;

  // Writes this rank's shard of the inputs of all microbatches in order. `session` must be the one of Find. No heap
  // allocation unless it fails.
  absl::Status Fill(Session& session, ReadRows read);
  // As above, with rows from draws first to first + batch() - 1.
  absl::Status Fill(Session& session, const Sampler& sampler, int64_t first);

 private:
  // The indices of a dimension that a rank holds: [first, first + count) of [0, whole).
  struct Part {
    int64_t first = 0, count = 0, whole = 0;
  };
  // One of the two inputs, and this rank's shard of it.
  struct Input {
    Part rows, columns;
    std::vector<std::optional<TensorRef>> slots;  // by microbatch; absent where the rank's stage lacks the input
    std::vector<int32_t> whole;                   // one microbatch, over all ranks
    std::vector<int32_t> part;                    // this rank's shard of `whole`
  };

  TokenPorts() = default;

  static Part PartOf(const fbs::Plan& plan, uint32_t rank, const fbs::Layout* layout, uint32_t dim, int64_t local);
  static absl::StatusOr<Input> InputOf(const Session& session, absl::string_view entry, const fbs::Buffer& buffer);
  static absl::Status WritePart(Session& session, Input& input, size_t slot);

  bool IsStraight(size_t slot) const;

  Input tokens_, labels_;
  int64_t rows_ = 0;  // rows of one microbatch, over all ranks
  int64_t sequence_ = 0;
  int64_t vocabulary_ = 0;
};

// Finds the entry of a kind, other than one with buckets. Returns kFailedPrecondition when the plan has none.
struct FoundEntry {
  int index = 0;
  absl::string_view name;
};
absl::StatusOr<FoundEntry> RequireEntry(const Session& session, fbs::EntryKind kind);

// Finds an output that is a single f32. Returns kFailedPrecondition when it is missing or has another type or size.
absl::StatusOr<TensorRef> FindScalarOutput(const Session& session, absl::string_view entry, absl::string_view port);

// Returns an input port of an entry; null when there is none.
const fbs::Port* FindInputPort(const fbs::Plan& plan, absl::string_view entry, absl::string_view port);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TOKEN_PORTS_H_
