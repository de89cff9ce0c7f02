#ifndef BOWLINE_TEST_UNIT_BASE_GGUF_BYTES_H_
#define BOWLINE_TEST_UNIT_BASE_GGUF_BYTES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace bowline {

template <typename T>
std::string Little(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

inline std::string GgufString(const std::string& text) { return Little<uint64_t>(text.size()) + text; }

// A key with the bytes of its value.
inline std::string GgufKey(const std::string& key, uint32_t type, const std::string& value) {
  return GgufString(key) + Little(type) + value;
}

// A line of the table; `shape` as the file has it, the contiguous dimension first.
inline std::string GgufTensorLine(const std::string& name, const std::vector<uint64_t>& shape, uint32_t type,
                                  uint64_t offset) {
  std::string line = GgufString(name) + Little(static_cast<uint32_t>(shape.size()));
  for (const uint64_t size : shape) line += Little(size);
  return line + Little(type) + Little(offset);
}

inline std::string GgufBytes(const std::vector<std::string>& keys, const std::vector<std::string>& tensors,
                             const std::string& data, uint32_t version = 3) {
  std::string bytes = "GGUF" + Little(version) + Little<uint64_t>(tensors.size()) + Little<uint64_t>(keys.size());
  for (const std::string& key : keys) bytes += key;
  for (const std::string& tensor : tensors) bytes += tensor;
  bytes.resize((bytes.size() + 31) / 32 * 32);
  return bytes + data;
}

}  // namespace bowline

#endif  // BOWLINE_TEST_UNIT_BASE_GGUF_BYTES_H_
