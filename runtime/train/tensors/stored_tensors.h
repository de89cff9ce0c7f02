#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_STORED_TENSORS_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_STORED_TENSORS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/train/tensors/sharding.h"
#include "runtime/train/tensors/tensor_memory.h"
#include "types/element_type.h"

namespace bowline {

// Tensors in files, whole or divided among files of many ranks. Readers address elements by their positions in the
// whole tensor. A file is mapped when one of its elements is first read. Not thread-safe.
class StoredTensors {
 public:
  struct Tensor {
    std::string key;
    ElementType type = ElementType::kF32;
    std::vector<int64_t> shape;
    int64_t elements = 0;
    std::string file;  // for messages: the tensor's file, or the index
  };

  virtual ~StoredTensors() = default;

  // The file or directory that contains all tensors.
  const std::string& path() const { return path_; }
  // All tensors, sorted by key.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  // Returns null when there is no tensor of that key.
  const Tensor* Find(absl::string_view key) const;
  // Explains why a tensor that an index lists is missing, as a clause after its name ("which 'X' lists in 'Y', ...");
  // empty if no index lists it.
  virtual std::string DescribeMissing(absl::string_view key) const { return ""; }
  // Returns a quantised tensor as its stored blocks, of type u8 and shape [rows, blocks per row, bytes per block], and
  // sets `format`. Returns null if the tensor is not stored in blocks, or its rows are stored in another order.
  virtual const Tensor* FindBlocks(absl::string_view key, ElementType& format) const { return nullptr; }

  // Returns the bytes of as many elements from `first` on as are contiguous in the file, at least one. `tensor` must be
  // one of tensors() or a result of FindBlocks, and `first` an index in it. The bytes stay valid until the next call.
  // Errors name the file.
  virtual absl::StatusOr<absl::Span<const uint8_t>> BytesFrom(const Tensor& tensor, int64_t first) = 0;
  // Returns whether the bytes of `tensor` from BytesFrom stay valid as long as this object.
  virtual bool KeepsBytes(const Tensor& tensor) const = 0;
  // Returns whether BytesFrom may open files, which may fail.
  virtual bool OpensFilesLate() const { return false; }

 protected:
  explicit StoredTensors(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  std::vector<Tensor> tensors_;
};

// Visits the elements that `rank` holds in memory, piece by piece. `local` is the index of the piece's first element in
// the rank's memory.
absl::Status ForEachPiece(StoredTensors& stored, const StoredTensors::Tensor& tensor, const ShardedTensor& sharded,
                          int64_t rank,
                          absl::FunctionRef<absl::Status(absl::Span<const uint8_t> bytes, int64_t local)> visit);

// Makes `memory` use the rank's shard of a tensor where the file is mapped, without a copy; `stored` keeps it mapped.
// Returns false, without effect, if the shard must be read instead: it is not contiguous, its type is not `type`, or
// `memory` cannot use these addresses.
absl::StatusOr<bool> BorrowPart(const std::shared_ptr<StoredTensors>& stored, const StoredTensors::Tensor& tensor,
                                const ShardedTensor& sharded, int64_t rank, ElementType type, TensorMemory& memory);

using PieceVisitor = std::function<absl::Status(absl::Span<const uint8_t> bytes, int64_t local)>;

// Reads a rank's shard of a tensor into `memory` and converts it to `type`; CanConvert must be true for it. Padding
// becomes zero. `look`, if not null, visits the file's bytes as in ForEachPiece; its error ends the reading.
absl::Status ReadPart(StoredTensors& stored, const StoredTensors::Tensor& tensor, const ShardedTensor& sharded,
                      int64_t rank, ElementType type, TensorMemory& memory, const PieceVisitor& look = nullptr);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_STORED_TENSORS_H_
