#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/foreign_file.h"
#include "runtime/base/npy.h"
#include "runtime/train/data/dataset_formats.h"

namespace bowline {
namespace {

struct KnownFile {
  absl::string_view magic, what;
};

constexpr KnownFile kKnownFiles[] = {
    {absl::string_view("\x1f\x8b", 2), "compressed by gzip; decompress it first"},
    {absl::string_view("\x28\xb5\x2f\xfd", 4), "compressed by zstd; decompress it first"},
    {absl::string_view("\xfd"
                       "7zXZ",
                       5),
     "compressed by xz; decompress it first"},
    {absl::string_view("PK\x03\x04", 4),
     "a zip archive, as numpy.savez writes; save the array by itself with numpy.save"},
    {absl::string_view("PAR1", 4), "a Parquet file; write its tokens with numpy.save"},
    {absl::string_view("ARROW1", 6), "an Arrow file; write its tokens with numpy.save"},
};

// Tokens are pairs of printable characters from the first to the last of them by chance in no file of some length.
bool LooksLikeText(absl::Span<const uint8_t> file) {
  constexpr size_t kLooked = 4096, kFewest = 32;
  if (file.size() < kFewest) return false;
  file = file.first(std::min(file.size(), kLooked));
  return std::all_of(file.begin(), file.end(),
                     [](uint8_t byte) { return absl::ascii_isprint(byte) || absl::ascii_isspace(byte); });
}

// Every second number of 16 bits is 0 by chance in no file of some length, unless all are.
bool LooksLikeU32(absl::Span<const uint8_t> file) {
  constexpr size_t kLooked = 4096, kFewest = 64;
  if (file.size() < kFewest || file.size() % 4 != 0) return false;
  bool has_low = false;
  for (size_t i = 0; i < std::min(file.size(), kLooked); i += 4) {
    has_low |= file[i] != 0 || file[i + 1] != 0;
    if (file[i + 2] != 0 || file[i + 3] != 0) return false;
  }
  return has_low;
}

}  // namespace

absl::StatusOr<TokenArray> ParseRawTokens(absl::Span<const uint8_t> file, ElementType type, const std::string& name) {
  const auto invalid = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' was given as raw ", NameOf(type), " tokens, but ", what));
  };
  if (file.empty()) return invalid("is empty");
  if (LooksLikeNpy(file) || LooksLikeLlmc(file) || LooksLikeMegatronIndex(file)) {
    return invalid(absl::StrCat("has a header that states its format; leave out '", NameOf(type), ":'"));
  }
  if (std::string other = DescribeOtherLlmc(file); !other.empty()) return invalid(other);
  const absl::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  for (const KnownFile& known : kKnownFiles) {
    if (absl::StartsWith(text, known.magic)) return invalid(absl::StrCat("is ", known.what));
  }
  // Two bytes, which are one token, would be some format's by chance.
  if (const absl::string_view format = ForeignFormatOf(file, /*least_magic=*/3); !format.empty()) {
    return invalid(format);
  }
  if (LooksLikeText(file)) return invalid("is text; make tokens of it with bowline-data tokenize");
  if (file.size() % SizeOf(type) != 0) {
    return invalid(absl::StrCat("its ", file.size(), " bytes are no multiple of ", SizeOf(type),
                                ", the size of a token; it is of another type, or truncated"));
  }
  if (type == ElementType::kU16 && LooksLikeU32(file)) {
    return invalid(absl::StrCat("every second of them is 0, as where tokens have 32 bits; give u32:", name));
  }
  return TokenArray{"raw", type, file};
}

}  // namespace bowline
