#ifndef BOWLINE_RUNTIME_TEXT_UTF8_H_
#define BOWLINE_RUNTIME_TEXT_UTF8_H_

// Functions for UTF-8 that may be invalid.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace bowline {

inline constexpr char kReplacementCharacter[] = "\xEF\xBF\xBD";  // U+FFFD

struct Utf8Step {
  enum class Kind { kCharacter, kInvalid, kIncomplete };
  Kind kind = Kind::kCharacter;
  size_t size = 0;          // bytes of the character or the invalid sequence
  char32_t code_point = 0;  // of a character
};

// Reads the first character of `text`, which is not empty. If it is broken (kInvalid), or the text ends within it
// (kIncomplete), the result covers the longest part that could begin a character.
Utf8Step NextUtf8(absl::string_view text);

// The offset of the first byte that is not valid UTF-8; npos if the whole text is valid.
size_t FindInvalidUtf8(absl::string_view text);

// Appends `text` to `out`, with U+FFFD for each invalid sequence. Returns how many bytes at the end begin an incomplete
// character; with `last` they are invalid too, and the result is 0.
size_t AppendUtf8Lossy(absl::string_view text, bool last, std::string* out);

void AppendCodePoint(char32_t code_point, std::string* out);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_UTF8_H_
