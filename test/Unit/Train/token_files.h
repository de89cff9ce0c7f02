#ifndef BOWLINE_TEST_UNIT_TRAIN_TOKEN_FILES_H_
#define BOWLINE_TEST_UNIT_TRAIN_TOKEN_FILES_H_

// Token files as other programs write them, made without Bowline's own writers.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace bowline {

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::string BytesOf(T value) {
  return BytesOf(std::vector<T>{value});
}

inline std::string LlmcFile(const std::vector<uint16_t>& tokens) {
  std::vector<int32_t> header(256);
  header[0] = 20240520;
  header[1] = 1;
  header[2] = static_cast<int32_t>(tokens.size());
  return BytesOf(header) + BytesOf(tokens);
}

// `dictionary`: {'descr': ...}
inline std::string NpyFile(const std::string& dictionary, const std::string& data, char major = 1) {
  std::string header = dictionary;
  const size_t prefix = major == 1 ? 10 : 12;
  while ((prefix + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes = std::string("\x93NUMPY") + major + '\0';
  bytes += major == 1 ? BytesOf(static_cast<uint16_t>(header.size())) : BytesOf(static_cast<uint32_t>(header.size()));
  return bytes + header + data;
}

inline std::string NpyDictionary(const std::string& descr, size_t size) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + std::to_string(size) + ",), }";
}

// An index of sequences that follow each other; each sequence is a document.
inline std::string MegatronIndexFile(uint8_t type_code, int64_t item_bytes, const std::vector<int32_t>& sizes) {
  std::vector<int64_t> pointers, documents = {0};
  int64_t position = 0;
  for (int32_t size : sizes) {
    pointers.push_back(position);
    position += size * item_bytes;
    documents.push_back(static_cast<int64_t>(pointers.size()));
  }
  return std::string("MMIDIDX\0\0", 9) + BytesOf(uint64_t{1}) + BytesOf(type_code) + BytesOf<uint64_t>(sizes.size()) +
         BytesOf<uint64_t>(documents.size()) + BytesOf(sizes) + BytesOf(pointers) + BytesOf(documents);
}

inline absl::Span<const uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace bowline

#endif  // BOWLINE_TEST_UNIT_TRAIN_TOKEN_FILES_H_
