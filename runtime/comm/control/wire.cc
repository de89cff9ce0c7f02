#include "runtime/comm/control/wire.h"

namespace bowline {

WireWriter& WireWriter::Unsigned(uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  return *this;
}

WireWriter& WireWriter::Text(absl::string_view text) {
  U32(static_cast<uint32_t>(text.size()));
  bytes_.append(text.data(), text.size());
  return *this;
}

WireWriter& WireWriter::List(absl::Span<const int> values) {
  U32(static_cast<uint32_t>(values.size()));
  for (int value : values) I32(value);
  return *this;
}

WireWriter& WireWriter::Status(const absl::Status& status) {
  U32(static_cast<uint32_t>(status.raw_code()));
  return Text(status.message());
}

uint64_t WireReader::Unsigned(size_t bytes) {
  if (rest_.size() < bytes) {
    failed_ = true;
    rest_ = {};
    return 0;
  }
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(static_cast<uint8_t>(rest_[i])) << (8 * i);
  rest_.remove_prefix(bytes);
  return value;
}

std::string WireReader::Text() {
  const size_t size = U32();
  if (size > rest_.size()) {
    failed_ = true;
    rest_ = {};
    return "";
  }
  std::string text(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return text;
}

std::vector<int> WireReader::List() {
  const size_t size = U32();
  if (size > rest_.size() / 4) {
    failed_ = true;
    rest_ = {};
    return {};
  }
  std::vector<int> values(size);
  for (int& value : values) value = I32();
  return values;
}

absl::Status WireReader::Status() {
  const int code = I32();
  const std::string message = Text();
  const bool known =
      code > static_cast<int>(absl::StatusCode::kOk) && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return absl::Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown, message);
}

}  // namespace bowline
