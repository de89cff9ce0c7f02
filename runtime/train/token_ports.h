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

// The inputs `tokens` and `labels` of an entry, each i32 [rows, sequence] per microbatch (slot), as a rank sees them:
// its shard of the global batch; and in a pipeline only the inputs that its stage reads.
class TokenPorts {
 public:
  // kFailedPrecondition, naming entry and port, when the entry does not have these inputs or they do not fit together.
  static absl::StatusOr<TokenPorts> Find(const Session& session, absl::string_view entry);

  // The number of samples in one run of the entry, of all microbatches and ranks.
  int64_t batch() const { return rows_ * static_cast<int64_t>(tokens_.slots.size()); }
  int64_t sequence() const { return sequence_; }
  int64_t tokens() const { return batch() * sequence(); }
  // The options of a dataset that can be read into these ports.
  DatasetOptions dataset_options() const { return {.vocabulary = vocabulary_}; }

  // Reads the rows first ... first + count - 1 of a run, of batch() rows, as Sampler::FillDraws reads draws.
  using ReadRows = absl::FunctionRef<absl::Status(int64_t first, int64_t count, int32_t* tokens, int32_t* labels)>;

  // Writes all microbatches of `session`, in which the ports were found, in order, with this rank's shard of all rows.
  // No allocation unless it fails.
  absl::Status Fill(Session& session, ReadRows read);
  // The same with the draws first ... first + batch() - 1.
  absl::Status Fill(Session& session, const Sampler& sampler, int64_t first);

 private:
  // The range of a dimension that a rank has: `count` of `whole` indices, from `first` on.
  struct Part {
    int64_t first = 0, count = 0, whole = 0;
  };
  // One of the inputs, and the shard of it that a rank has.
  struct Input {
    Part rows, columns;
    std::vector<std::optional<TensorRef>> slots;  // nothing where the rank's stage has no such input
    std::vector<int32_t> whole;                   // the global batch of one microbatch
    std::vector<int32_t> part;                    // this rank's shard of `whole`
  };

  TokenPorts() = default;

  static Part PartOf(const fbs::Plan& plan, uint32_t rank, const fbs::Layout* layout, uint32_t dim, int64_t local);
  static absl::StatusOr<Input> InputOf(const Session& session, absl::string_view entry, const fbs::Buffer& buffer);
  static absl::Status WritePart(Session& session, Input& input, size_t slot);

  bool IsStraight(size_t slot) const;

  Input tokens_, labels_;
  int64_t rows_ = 0;  // rows of a microbatch on all ranks together
  int64_t sequence_ = 0;
  int64_t vocabulary_ = 0;
};

// The index and the name of the session's entry of a kind without buckets. kFailedPrecondition when the plan has none.
struct FoundEntry {
  int index = 0;
  absl::string_view name;
};
absl::StatusOr<FoundEntry> RequireEntry(const Session& session, fbs::EntryKind kind);

// The tensor of an output that is one f32. kFailedPrecondition when there is no such output or it is something else.
absl::StatusOr<TensorRef> FindScalarOutput(const Session& session, absl::string_view entry, absl::string_view port);

// The input port of an entry; null when there is none.
const fbs::Port* FindInputPort(const fbs::Plan& plan, absl::string_view entry, absl::string_view port);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TOKEN_PORTS_H_
