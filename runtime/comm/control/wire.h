#ifndef BOWLINE_RUNTIME_COMM_CONTROL_WIRE_H_
#define BOWLINE_RUNTIME_COMM_CONTROL_WIRE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

// The values of a message, one behind the other: integers little endian, texts and lists after their length.
class WireWriter {
 public:
  WireWriter& U8(uint8_t value) { return Unsigned(value, 1); }
  WireWriter& U32(uint32_t value) { return Unsigned(value, 4); }
  WireWriter& U64(uint64_t value) { return Unsigned(value, 8); }
  WireWriter& I32(int32_t value) { return U32(static_cast<uint32_t>(value)); }
  WireWriter& Text(absl::string_view text);
  WireWriter& List(absl::Span<const int> values);
  WireWriter& Status(const absl::Status& status);

  const std::string& bytes() const { return bytes_; }

 private:
  WireWriter& Unsigned(uint64_t value, int bytes);

  std::string bytes_;
};

// Reads the output of a WireWriter from a source that is not trusted. Past the end, or if a length exceeds the
// remaining bytes, it returns zeros and empty texts, and complete() is false.
class WireReader {
 public:
  explicit WireReader(absl::string_view bytes) : rest_(bytes) {}

  uint8_t U8() { return static_cast<uint8_t>(Unsigned(1)); }
  uint32_t U32() { return static_cast<uint32_t>(Unsigned(4)); }
  uint64_t U64() { return Unsigned(8); }
  int32_t I32() { return static_cast<int32_t>(U32()); }
  std::string Text();
  std::vector<int> List();
  // Never OK: an error code that is none becomes kUnknown.
  absl::Status Status();

  bool failed() const { return failed_; }
  // Returns whether all bytes were read and none was missing.
  bool complete() const { return !failed_ && rest_.empty(); }

 private:
  uint64_t Unsigned(size_t bytes);

  absl::string_view rest_;
  bool failed_ = false;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_CONTROL_WIRE_H_
