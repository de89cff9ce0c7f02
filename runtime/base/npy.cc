#include "runtime/base/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/foreign_file.h"

namespace bowline {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);

// "uint16", of a type that NumPy has.
std::string NumpyName(const ElementTypeInfo& type) {
  if (type.kind == ElementKind::kBool) return "bool_";
  const char* kind = type.kind == ElementKind::kFloat ? "float" : type.kind == ElementKind::kSigned ? "int" : "uint";
  return absl::StrCat(kind, 8 * type.block_bytes);
}

absl::string_view AsText(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Header {
  absl::string_view descr;  // "<u2"
  bool fortran_order = false;
  std::vector<uint64_t> shape;
};

// Parses the Python dictionary {'descr': '<u2', 'fortran_order': False, 'shape': (5,), }: its keys in any order, each
// once. Every method returns false when the text is something else.
class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : rest_(text) {}

  bool Parse(Header* header) {
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
        has_shape = ParseShape(&header->shape);
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
    *value = Consume("True");
    return *value || Consume("False");
  }

  bool ParseShape(std::vector<uint64_t>* shape) {
    if (!Consume("(")) return false;
    while (!Consume(")")) {
      SkipSpace();
      uint64_t size;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc()) return false;
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      shape->push_back(size);
      if (!Consume(",")) return Consume(")");
    }
    return true;
  }

  absl::string_view rest_;
};

// False where the sizes that are not 0 have a product beyond 2^63 - 1.
bool MultiplySizes(const std::vector<uint64_t>& sizes, uint64_t* count) {
  uint64_t product = 1;
  bool is_empty = false;
  for (const uint64_t size : sizes) {
    is_empty |= size == 0;
    if (size != 0 && product > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / size) return false;
    product *= size == 0 ? 1 : size;
  }
  *count = is_empty ? 0 : product;
  return true;
}

}  // namespace

bool LooksLikeNpy(absl::Span<const uint8_t> file) { return absl::StartsWith(AsText(file), kMagic); }

absl::StatusOr<NpyView> ParseNpy(absl::Span<const uint8_t> file, absl::string_view name,
                                 absl::Span<const ElementType> supported) {
  const auto invalid = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "': ", what));
  };
  const auto truncated = [&](absl::string_view what) {
    return absl::DataLossError(
        absl::StrCat("'", name, "': the .npy ", what, "; the file is truncated or damaged, make it again"));
  };
  if (!LooksLikeNpy(file))
    return invalid(absl::StrCat("not a .npy file; save the array with numpy.save", ForeignFormatNote(file)));
  // Magic, major and minor version, then the header's length: u16 in version 1, u32 in version 2.
  constexpr size_t kVersionEnd = 8;
  if (file.size() < kVersionEnd) return truncated("file ends before its version");
  const int major = file[6];
  if (major != 1 && major != 2) {
    return invalid(absl::StrCat(".npy format version ", major, " is not supported; save it in version 1 or 2"));
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (file.size() < kVersionEnd + length_bytes) return truncated("file ends before its header");
  uint32_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data() + kVersionEnd, length_bytes);
  file.remove_prefix(kVersionEnd + length_bytes);
  if (header_bytes > file.size()) {
    return truncated(absl::StrCat("header of ", header_bytes, " bytes runs beyond the end of the file"));
  }
  Header header;
  if (!HeaderParser(AsText(file.first(header_bytes))).Parse(&header)) {
    return invalid("the .npy header is not a dictionary of descr, fortran_order and shape");
  }
  NpyView view;
  view.data = file.subspan(header_bytes);
  std::vector<std::string> names;
  bool is_supported = false;
  for (const ElementTypeInfo& known : kElementTypes) {
    if (std::find(supported.begin(), supported.end(), known.type) == supported.end()) continue;
    const absl::string_view descr(known.npy.data(), known.npy.size());
    names.push_back(absl::StrCat("'", descr, "' (np.", NumpyName(known), ")"));
    if (descr != header.descr) continue;
    view.type = known.type;
    is_supported = true;
  }
  if (!is_supported) {
    return invalid(absl::StrCat(".npy array of type '", absl::Utf8SafeCEscape(header.descr.substr(0, 32)),
                                "'; supported are ", absl::StrJoin(names, ", "), ", convert it with astype"));
  }
  if (header.fortran_order) {
    return invalid(".npy array in Fortran order; save it in C order (numpy.ascontiguousarray)");
  }
  uint64_t count;
  const bool fits = MultiplySizes(header.shape, &count);
  const size_t item = SizeOf(view.type);
  if (!fits || view.data.size() % item != 0 || view.data.size() / item != count) {
    return truncated(absl::StrCat("header promises ", fits ? absl::StrCat(count) : "too many", " elements of ", item,
                                  " bytes but ", view.data.size(), " bytes follow it"));
  }
  view.shape.assign(header.shape.begin(), header.shape.end());
  return view;
}

}  // namespace bowline
