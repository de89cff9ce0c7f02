#ifndef BOWLINE_TEST_UNIT_BASE_SAFETENSORS_BYTES_H_
#define BOWLINE_TEST_UNIT_BASE_SAFETENSORS_BYTES_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/types/span.h"

namespace bowline {

// A safetensors file with this header text and this data, written without Bowline's writer.
inline std::string SafetensorsBytes(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + header + data;
}

inline absl::Span<const uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace bowline

#endif  // BOWLINE_TEST_UNIT_BASE_SAFETENSORS_BYTES_H_
