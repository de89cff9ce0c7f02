#ifndef BOWLINE_RUNTIME_TEXT_BYTE_ALPHABET_H_
#define BOWLINE_RUNTIME_TEXT_BYTE_ALPHABET_H_

// The alphabet of byte-level vocabularies, which GPT-2 introduced: a printable character for each byte.

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace bowline {

// The character of `byte`, in UTF-8.
absl::string_view CharacterOfByte(uint8_t byte);

// Returns the characters of all bytes, in order.
std::string ToByteAlphabet(absl::string_view bytes);

// Appends the bytes that the characters of `text` stand for. If one of the characters is not in the alphabet, appends
// `text` unchanged.
void AppendFromByteAlphabet(absl::string_view text, std::string* bytes);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_BYTE_ALPHABET_H_
