#ifndef BOWLINE_RUNTIME_TEXT_BYTE_ALPHABET_H_
#define BOWLINE_RUNTIME_TEXT_BYTE_ALPHABET_H_

// The alphabet of byte-level vocabularies, since GPT-2: a printable character for each byte.

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace bowline {

// The character of `byte`, in UTF-8.
absl::string_view CharacterOfByte(uint8_t byte);

// The characters of all bytes of `bytes`.
std::string ToByteAlphabet(absl::string_view bytes);

// Appends the bytes that the characters of `text` stand for; text with a character that is none of them is appended as
// it is.
void AppendFromByteAlphabet(absl::string_view text, std::string* bytes);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_BYTE_ALPHABET_H_
