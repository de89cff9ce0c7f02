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
#include "runtime/train/tensors/checkpoint_files.h"
#include "runtime/train/tensors/sharding.h"
#include "runtime/train/tensors/tensor_memory.h"
#include "types/element_type.h"

namespace bowline {

// Tensors in files, whole or divided among the files of many ranks, read by the positions of their elements. A file is
// mapped when one of its elements is asked for. One thread at a time may use this.
class StoredTensors {
 public:
  struct Tensor {
    std::string key;
    ElementType type = ElementType::kF32;
    std::vector<int64_t> shape;
    int64_t elements = 0;
    std::string file;  // for messages: the file that has the tensor, or the index
  };

  virtual ~StoredTensors() = default;

  // The file or directory that has them all.
  const std::string& path() const { return path_; }
  // Tensors are in the order of keys.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  // nullptr when there is no such tensor.
  const Tensor* Find(absl::string_view key) const;
  // Why a tensor that an index lists is missing, as a clause behind its name ("which 'X' lists in 'Y', ..."); empty
  // where nothing lists it.
  virtual std::string DescribeMissing(absl::string_view key) const { return ""; }
  // The bytes of a tensor that is stored in blocks of bits, of type u8, [rows, blocks of a row, bytes of a block], and
  // which format that is; nullptr where it is not stored so, or the order of its rows would be another one.
  virtual const Tensor* FindBlocks(absl::string_view key, ElementType& format) const { return nullptr; }

  // The bytes of the elements from `first` on, as many as are contiguous in the file: at least one. `first` is an
  // element of the tensor, which is one of tensors(), or of FindBlocks. Valid until the next call. Errors name
  // the file.
  virtual absl::StatusOr<absl::Span<const uint8_t>> BytesFrom(const Tensor& tensor, int64_t first) = 0;
  // Returns whether these bytes of `tensor` stay valid as long as this object.
  virtual bool KeepsBytes(const Tensor& tensor) const = 0;
  // Returns whether BytesFrom opens files, which may fail.
  virtual bool OpensFilesLate() const { return false; }

 protected:
  explicit StoredTensors(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  std::vector<Tensor> tensors_;
};

// The parameters or the optimizer state of one checkpoint directory.
absl::StatusOr<std::unique_ptr<StoredTensors>> OpenStoredTensors(const std::string& checkpoint, CheckpointRole role);

// The weights of a Hugging Face directory, of one checkpoint directory, or of a GGUF file (*.gguf).
absl::StatusOr<std::unique_ptr<StoredTensors>> OpenWeightTensors(const std::string& directory);

// Visits the elements of a tensor that a rank has in memory, piece by piece: the bytes, and the number of the first
// element in the rank's memory.
absl::Status ForEachPiece(StoredTensors& stored, const StoredTensors::Tensor& tensor, const ShardedTensor& sharded,
                          int64_t rank,
                          absl::FunctionRef<absl::Status(absl::Span<const uint8_t> bytes, int64_t local)> visit);

// Makes `memory` use the bytes of a rank's shard of a tensor in the file, which `stored` keeps mapped, without a copy.
// Returns false, and changes nothing, if they have to be read: they are not contiguous, have another type than `type`,
// or `memory` cannot be there.
absl::StatusOr<bool> BorrowPart(const std::shared_ptr<StoredTensors>& stored, const StoredTensors::Tensor& tensor,
                                const ShardedTensor& sharded, int64_t rank, ElementType type, TensorMemory& memory);

using PieceVisitor = std::function<absl::Status(absl::Span<const uint8_t> bytes, int64_t local)>;

// Reads a rank's shard of a tensor into `memory`, converted to `type`, for which CanConvert is true; padding becomes
// zero. `look`, which may be null, sees the bytes of the file as in ForEachPiece; its error ends the reading.
absl::Status ReadPart(StoredTensors& stored, const StoredTensors::Tensor& tensor, const ShardedTensor& sharded,
                      int64_t rank, ElementType type, TensorMemory& memory, const PieceVisitor& look = nullptr);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_STORED_TENSORS_H_
