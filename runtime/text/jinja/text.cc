#include "runtime/text/jinja/text.h"

#include <algorithm>
#include <cstring>

namespace bowline::jinja {

std::vector<absl::string_view> Characters(absl::string_view text) {
  std::vector<absl::string_view> characters;
  while (!text.empty()) {
    size_t size = 1;
    while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) ++size;
    characters.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return characters;
}

size_t FindText(absl::string_view text, absl::string_view part, size_t begin) {
  if (begin > text.size()) return text.npos;
  if (part.empty()) return begin;
  // string_view::find may take the product of both sizes.
  const void* found = memmem(text.data() + begin, text.size() - begin, part.data(), part.size());
  return found == nullptr ? text.npos : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

bool IsUtf8(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    unsigned char first = text[i];
    size_t size = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    if (size == 0 || i + size > text.size()) return false;
    for (size_t k = 1; k < size; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
    if (size > 2) {
      unsigned char second = text[i + 1];
      if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
          (first == 0xF4 && second > 0x8F))
        return false;
    }
    i += size;
  }
  return true;
}

bool IsSpace(absl::string_view c) {
  if (c.size() == 1) return (c[0] >= 9 && c[0] <= 13) || (c[0] >= 28 && c[0] <= 32);
  for (absl::string_view space :
       {"\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007",
        "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"})
    if (c == space) return true;
  return false;
}

std::string Strip(absl::string_view text, const std::string* set, bool left, bool right) {
  std::vector<absl::string_view> characters = Characters(text), removed;
  if (set != nullptr) removed = Characters(*set);
  std::sort(removed.begin(), removed.end());
  auto goes = [&](absl::string_view c) {
    if (set == nullptr) return IsSpace(c);
    return std::binary_search(removed.begin(), removed.end(), c);
  };
  size_t begin = 0, end = characters.size();
  while (left && begin < end && goes(characters[begin])) text.remove_prefix(characters[begin++].size());
  while (right && begin < end && goes(characters[end - 1])) text.remove_suffix(characters[--end].size());
  return std::string(text);
}

}  // namespace bowline::jinja
