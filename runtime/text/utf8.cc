#include "runtime/text/utf8.h"

#include "absl/strings/str_cat.h"

namespace bowline {

Utf8Step NextUtf8(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {Utf8Step::Kind::kCharacter, 1, lead};
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Step::Kind::kInvalid, 1, 0};
  const size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  char32_t code_point = lead & (0x7F >> size);
  for (size_t i = 1; i < size; ++i) {
    if (i == text.size()) return {Utf8Step::Kind::kIncomplete, i, 0};
    uint8_t low = 0x80, high = 0xBF;
    if (i == 1) {  // neither overlong, nor a surrogate, nor above U+10FFFF
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    }
    if (byte(i) < low || byte(i) > high) return {Utf8Step::Kind::kInvalid, i, 0};
    code_point = code_point << 6 | (byte(i) & 0x3F);
  }
  return {Utf8Step::Kind::kCharacter, size, code_point};
}

size_t FindInvalidUtf8(absl::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = NextUtf8(text.substr(at));
    if (step.kind != Utf8Step::Kind::kCharacter) return at;
    at += step.size;
  }
  return absl::string_view::npos;
}

size_t AppendUtf8Lossy(absl::string_view text, bool last, std::string* out) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = NextUtf8(text.substr(at));
    if (step.kind == Utf8Step::Kind::kIncomplete && !last) return step.size;
    if (step.kind == Utf8Step::Kind::kCharacter) {
      absl::StrAppend(out, text.substr(at, step.size));
    } else {
      out->append(kReplacementCharacter);
    }
    at += step.size;
  }
  return 0;
}

void AppendCodePoint(char32_t code_point, std::string* out) {
  const auto put = [&](char32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

}  // namespace bowline
