#include <charconv>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/train/dataset_formats.h"

namespace bowline {
namespace {

constexpr absl::string_view kNpyMagic("\x93NUMPY", 6);

absl::string_view AsText(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct NpyHeader {
  absl::string_view descr;  // "<u2"
  bool fortran_order = false;
  int dimensions = 0;
  uint64_t size = 0;  // of the first dimension
};

// Parses the Python dictionary {'descr': '<u2', 'fortran_order': False, 'shape': (5,), }: its keys in any order, each
// once. Every method returns false when the text is something else.
class NpyHeaderParser {
 public:
  explicit NpyHeaderParser(absl::string_view text) : rest_(text) {}

  bool Parse(NpyHeader* header) {
    if (!Consume("{")) return false;
    bool has_descr = false, has_order = false, has_shape = false;
    while (!Consume("}")) {
      absl::string_view key;
      if (!ParseString(&key) || !Consume(":")) return false;
      if (key == "descr" && !has_descr) {
        has_descr = ParseString(&header->descr);
        if (!has_descr) return false;
      } else if (key == "fortran_order" && !has_order) {
        has_order = ParseBool(&header->fortran_order);
        if (!has_order) return false;
      } else if (key == "shape" && !has_shape) {
        has_shape = ParseShape(header);
        if (!has_shape) return false;
      } else {
        return false;
      }
      if (!Consume(",")) {
        if (!Consume("}")) return false;
        break;
      }
    }
    SkipSpace();
    return has_descr && has_order && has_shape && rest_.empty();
  }

 private:
  void SkipSpace() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

  bool Consume(absl::string_view token) {
    SkipSpace();
    if (!absl::StartsWith(rest_, token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  bool ParseString(absl::string_view* value) {
    SkipSpace();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return false;
    const size_t end = rest_.find(rest_.front(), 1);
    if (end == absl::string_view::npos) return false;
    *value = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return true;
  }

  bool ParseBool(bool* value) {
    if (Consume("True")) {
      *value = true;
      return true;
    }
    *value = false;
    return Consume("False");
  }

  bool ParseShape(NpyHeader* header) {
    if (!Consume("(")) return false;
    while (!Consume(")")) {
      SkipSpace();
      uint64_t size;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc()) return false;
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      if (header->dimensions++ == 0) header->size = size;
      if (!Consume(",")) return Consume(")");
    }
    return true;
  }

  absl::string_view rest_;
};

}  // namespace

bool LooksLikeNpy(absl::Span<const uint8_t> file) { return absl::StartsWith(AsText(file), kNpyMagic); }

absl::StatusOr<TokenArray> ParseNpy(absl::Span<const uint8_t> file, const std::string& name) {
  const auto invalid = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "': ", what));
  };
  const auto truncated = [&](absl::string_view what) {
    return absl::DataLossError(
        absl::StrCat("'", name, "': ", what, "; the file is truncated or damaged, make it again"));
  };
  // Magic, major and minor version, then the header's length: u16 in version 1, u32 in version 2.
  constexpr size_t kVersionEnd = 8;
  if (file.size() < kVersionEnd) return truncated(".npy file ends before its version");
  const int major = file[6];
  if (major != 1 && major != 2) {
    return invalid(absl::StrCat(".npy format version ", major, " is not supported; save it in version 1 or 2"));
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (file.size() < kVersionEnd + length_bytes) return truncated(".npy file ends before its header");
  uint32_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data() + kVersionEnd, length_bytes);
  const size_t data_begin = kVersionEnd + length_bytes + header_bytes;
  if (data_begin > file.size()) {
    return truncated(absl::StrCat(".npy header of ", header_bytes, " bytes runs beyond the end of the file"));
  }
  NpyHeader header;
  if (!NpyHeaderParser(AsText(file.subspan(kVersionEnd + length_bytes, header_bytes))).Parse(&header)) {
    return invalid(".npy header is not a dictionary of descr, fortran_order and shape");
  }
  TokenArray array;
  array.format = "npy";
  if (header.descr == "<u2") {
    array.type = StorageType::kU16;
  } else if (header.descr == "<i4") {
    array.type = StorageType::kI32;
  } else {
    return invalid(absl::StrCat(".npy array of type '", header.descr.substr(0, 32),
                                "'; supported are '<u2' (np.uint16) and '<i4' (np.int32), convert it with astype"));
  }
  if (header.dimensions != 1) {
    return invalid(absl::StrCat(".npy array of ", header.dimensions, " dimensions; tokens are one, use ravel()"));
  }
  if (header.fortran_order) return invalid(".npy array in Fortran order; save it in C order");
  array.bytes = file.subspan(data_begin);
  const size_t item = SizeOf(array.type);
  if (array.bytes.size() % item != 0 || array.bytes.size() / item != header.size) {
    return truncated(absl::StrCat(".npy header promises ", header.size, " tokens of ", item, " bytes but ",
                                  array.bytes.size(), " bytes follow it"));
  }
  return array;
}

}  // namespace bowline
