#ifndef BOWLINE_RUNTIME_TEXT_UTF8_H_
#define BOWLINE_RUNTIME_TEXT_UTF8_H_

// UTF-8 that may be broken.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace bowline {

inline constexpr char kReplacementCharacter[] = "\xEF\xBF\xBD";  // U+FFFD

struct Utf8Step {
  enum class Kind { kCharacter, kInvalid, kIncomplete };
  Kind kind = Kind::kCharacter;
  size_t size = 0;          // bytes that belong together
  char32_t code_point = 0;  // of a character
};

// The first character of `text`, which is not empty; or the longest beginning of one that is broken (kInvalid), or that
// the text ends within (kIncomplete).
Utf8Step NextUtf8(absl::string_view text);

// The offset of the first byte that is no UTF-8; npos where all of it is.
size_t FindInvalidUtf8(absl::string_view text);

// Appends `text` to `out`, with U+FFFD for each broken sequence. Returns how many bytes at the end are the beginning of
// a character; with `last` they are broken too, and the result is 0.
size_t AppendUtf8Lossy(absl::string_view text, bool last, std::string* out);

void AppendCodePoint(char32_t code_point, std::string* out);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_UTF8_H_
