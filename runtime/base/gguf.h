#ifndef BOWLINE_RUNTIME_BASE_GGUF_H_
#define BOWLINE_RUNTIME_BASE_GGUF_H_

// Reader of GGUF (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), versions 2 and 3, little-endian: "GGUF",
// version, numbers of tensors and of keys; typed metadata; name, shape, type and offset of each tensor; padding; data.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/gguf_blocks.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status.h"

namespace bowline {

struct GgufTensor {
  std::string name;
  const GgufType* type = nullptr;
  std::vector<int64_t> shape;  // row-major: the last dimension is contiguous; the file lists it first
  int64_t elements = 0;
  uint64_t offset = 0;  // of the first byte, in the file
  uint64_t bytes = 0;
};

// "Q4_1 [2, 32]"
std::string DescribeTensor(const GgufTensor& tensor);

enum class GgufValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

// One file. Opening it validates the metadata and the table of tensors, and allocates nothing by a number in the file
// that the file's bytes do not back. Errors name file, key or tensor: kDataLoss if the file ends too early;
// kInvalidArgument if it breaks the format, or has a type or version that is not supported.
class GgufFile {
 public:
  // The value of a key, checked, in the encoding of the file.
  struct Value {
    GgufValueType type;
    GgufValueType element_type;       // for an array
    uint64_t count = 0;               // elements, for an array
    absl::Span<const uint8_t> bytes;  // without a length before them
  };

  static absl::StatusOr<GgufFile> Open(const std::string& path);
  // The same over bytes in memory, which must outlive the result; `name` stands for the path in messages.
  static absl::StatusOr<GgufFile> FromBytes(absl::Span<const uint8_t> bytes, const std::string& name);

  const std::string& path() const { return path_; }
  const std::map<std::string, Value, std::less<>>& metadata() const { return metadata_; }
  // The tensors in the order of their data in the file.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  // Null if there is no such tensor.
  const GgufTensor* Find(absl::string_view name) const;

  bool Has(absl::string_view key) const { return metadata_.find(key) != metadata_.end(); }
  // Returns kNotFound if the key is missing; kInvalidArgument if it has another type, or an integer beyond 63 bits.
  absl::StatusOr<int64_t> Integer(absl::string_view key) const;
  absl::StatusOr<double> Number(absl::string_view key) const;
  absl::StatusOr<bool> Boolean(absl::string_view key) const;
  absl::StatusOr<absl::string_view> String(absl::string_view key) const;

  absl::Span<const uint8_t> Bytes(const GgufTensor& tensor) const {
    return bytes_.subspan(tensor.offset, tensor.bytes);
  }
  // Reads a row, which lies along the last dimension, as f32. `out` has the size of that dimension.
  void ReadRow(const GgufTensor& tensor, int64_t row, absl::Span<float> out) const;

 private:
  GgufFile() = default;
  absl::Status Parse();
  absl::Status CheckLayout(uint64_t data_begin);
  absl::StatusOr<const Value*> Get(absl::string_view key) const;
  absl::Status WrongType(absl::string_view key, absl::string_view expected) const;

  std::string path_;
  std::unique_ptr<MappedFile> mapping_;  // null for bytes in memory
  absl::Span<const uint8_t> bytes_;
  std::map<std::string, Value, std::less<>> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_GGUF_H_
