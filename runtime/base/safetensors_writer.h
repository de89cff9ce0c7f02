#ifndef BOWLINE_RUNTIME_BASE_SAFETENSORS_WRITER_H_
#define BOWLINE_RUNTIME_BASE_SAFETENSORS_WRITER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status.h"
#include "types/element_type.h"

namespace bowline {

struct SafetensorsSpec {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape = {};
};

// Writes a safetensors file tensor by tensor, in little memory, through AtomicFile. Equal input gives equal bytes:
// tensors lie in the order of (element size from large to small, name), so every element is aligned; the data begins at
// a multiple of 64 bytes.
class SafetensorsWriter {
 public:
  // Writes the header. Errors: a name that appears twice or is "__metadata__", a shape with a negative or too many
  // elements (kInvalidArgument), and those of AtomicFile.
  static absl::StatusOr<SafetensorsWriter> Create(const std::string& path, std::vector<SafetensorsSpec> tensors,
                                                  const std::map<std::string, std::string>& metadata = {});

  // The tensors in the order in which their bytes must follow.
  const std::vector<SafetensorsSpec>& order() const { return tensors_; }

  // Appends the next bytes, in pieces of any size.
  absl::Status Append(absl::Span<const uint8_t> bytes) { return file_.Append(bytes); }

  // Checks that all bytes were appended, and gives the file its name.
  absl::Status Finish();

 private:
  SafetensorsWriter(AtomicFile file, std::vector<SafetensorsSpec> tensors, uint64_t expected_size)
      : file_(std::move(file)), tensors_(std::move(tensors)), expected_size_(expected_size) {}

  AtomicFile file_;
  std::vector<SafetensorsSpec> tensors_;
  uint64_t expected_size_;
};

// A tensor in memory: dense, row-major, little-endian.
struct SafetensorsSource {
  SafetensorsSpec spec;
  const void* data = nullptr;
};

// Writes all of `tensors`, given in any order.
absl::Status WriteSafetensors(const std::string& path, absl::Span<const SafetensorsSource> tensors,
                              const std::map<std::string, std::string>& metadata = {});

// Bytes of a dense tensor; kInvalidArgument when a size is negative or the product does not fit into 63 bits.
absl::StatusOr<uint64_t> TensorBytes(ElementType type, absl::Span<const int64_t> shape);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_SAFETENSORS_WRITER_H_
