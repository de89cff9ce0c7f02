#ifndef BOWLINE_RUNTIME_BASE_SAFETENSORS_H_
#define BOWLINE_RUNTIME_BASE_SAFETENSORS_H_

// Reader of the safetensors format (https://huggingface.co/docs/safetensors): 8 bytes header length N (little-endian),
// N bytes JSON {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, "__metadata__": {...}}, then
// the data, to which the offsets are relative, row-major and without holes or overlaps.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status.h"
#include "types/element_type.h"

namespace bowline {

struct SafetensorsTensor {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;  // empty for a scalar
  int64_t elements = 0;        // product of the shape
  uint64_t offset = 0;         // offset of the first byte in the file
  uint64_t bytes = 0;          // elements * SizeOf(type)
};

// "F32 [2, 3]"
std::string DescribeTensor(ElementType type, absl::Span<const int64_t> shape);

// One file. Opening it validates the header only; tensors are read from the mapping on demand. Thread-safe.
class SafetensorsFile {
 public:
  static constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit

  // Errors name the file, and the tensor where there is one: kDataLoss for a file that is truncated, kInvalidArgument
  // for one that breaks the format.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  // The same over bytes in memory, which must outlive the result; `name` stands for the path in messages.
  static absl::StatusOr<SafetensorsFile> FromBytes(absl::Span<const uint8_t> bytes, const std::string& name);

  const std::string& path() const { return path_; }
  // The tensors in the order of their data in the file.
  const std::vector<SafetensorsTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Null if there is no such tensor.
  const SafetensorsTensor* Find(absl::string_view name) const;

  // The raw little-endian bytes of a tensor of this file; no alignment is promised.
  absl::Span<const uint8_t> Bytes(const SafetensorsTensor& tensor) const {
    return bytes_.subspan(tensor.offset, tensor.bytes);
  }

  // Reads a tensor converted to f32 (see ConvertToF32); `out` has exactly tensor.elements elements.
  absl::Status ReadF32(const SafetensorsTensor& tensor, absl::Span<float> out) const;

  // Reads the block that starts at `starts` and has the shape `sizes` (one number per dimension each), row-major.
  absl::Status ReadSliceF32(const SafetensorsTensor& tensor, absl::Span<const int64_t> starts,
                            absl::Span<const int64_t> sizes, absl::Span<float> out) const;

 private:
  SafetensorsFile() = default;
  absl::Status Parse();

  std::string path_;
  std::unique_ptr<MappedFile> mapping_;  // null for bytes in memory
  absl::Span<const uint8_t> bytes_;
  std::vector<SafetensorsTensor> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
  std::map<std::string, std::string> metadata_;
};

// The weights of a Hugging Face directory: `model.safetensors`, or the shards that `model.safetensors.index.json`
// names.
class SafetensorsDirectory {
 public:
  // Returns kNotFound if the directory holds neither. Every tensor of a shard must be in the index, with that shard. If
  // a shard lacks a tensor of the index, the tensor is in missing() and no error: transformers loads such shards too.
  static absl::StatusOr<SafetensorsDirectory> Open(const std::string& directory);

  struct Entry {
    const SafetensorsFile* file;
    const SafetensorsTensor* tensor;
  };

  // The tensors in the order of names. They are valid as long as this object, also after it was moved.
  const std::map<std::string, Entry, std::less<>>& tensors() const { return tensors_; }
  // Null if there is no such tensor.
  const Entry* Find(absl::string_view name) const;
  const std::vector<std::unique_ptr<SafetensorsFile>>& files() const { return files_; }

  // The tensors that the index lists in a shard that lacks them: from a tensor's name to that shard's path.
  const std::map<std::string, std::string, std::less<>>& missing() const { return missing_; }
  // "which 'DIR/model.safetensors.index.json' lists in 'DIR/SHARD', but that shard does not have it"; empty for a
  // tensor that is not in missing().
  std::string DescribeMissing(absl::string_view name) const;

 private:
  SafetensorsDirectory() = default;
  absl::Status AddFile(const std::string& path);
  absl::Status OpenShards(const std::string& directory, const std::string& index_path);

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Entry, std::less<>> tensors_;
  std::string index_path_;  // empty for one file
  std::map<std::string, std::string, std::less<>> missing_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_SAFETENSORS_H_
