#include "runtime/text/byte_alphabet.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "runtime/text/utf8.h"

namespace bowline {
namespace {

constexpr char32_t kAlphabetEnd = 0x144;

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<int16_t, kAlphabetEnd> bytes;  // by code point; -1: none

  Alphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const char32_t code_point = printable ? static_cast<char32_t>(byte) : next++;
      AppendCodePoint(code_point, &characters[static_cast<size_t>(byte)]);
      bytes[code_point] = static_cast<int16_t>(byte);
    }
  }
};

const Alphabet& TheAlphabet() {
  static const Alphabet* const alphabet = new Alphabet;
  return *alphabet;
}

}  // namespace

absl::string_view CharacterOfByte(uint8_t byte) { return TheAlphabet().characters[byte]; }

std::string ToByteAlphabet(absl::string_view bytes) {
  const Alphabet& alphabet = TheAlphabet();
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) text += alphabet.characters[static_cast<uint8_t>(byte)];
  return text;
}

void AppendFromByteAlphabet(absl::string_view text, std::string* bytes) {
  const Alphabet& alphabet = TheAlphabet();
  const size_t before = bytes->size();
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = NextUtf8(text.substr(at));
    const bool known = step.kind == Utf8Step::Kind::kCharacter && step.code_point < kAlphabetEnd &&
                       alphabet.bytes[step.code_point] >= 0;
    if (!known) {
      bytes->resize(before);
      absl::StrAppend(bytes, text);
      return;
    }
    bytes->push_back(static_cast<char>(alphabet.bytes[step.code_point]));
    at += step.size;
  }
}

}  // namespace bowline
