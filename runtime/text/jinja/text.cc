#include "runtime/text/jinja/text.h"

#include "absl/strings/match.h"

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
  auto goes = [&](absl::string_view c) {
    if (set == nullptr) return IsSpace(c);
    for (absl::string_view other : removed)
      if (c == other) return true;
    return false;
  };
  size_t begin = 0, end = characters.size();
  while (left && begin < end && goes(characters[begin])) text.remove_prefix(characters[begin++].size());
  while (right && begin < end && goes(characters[end - 1])) text.remove_suffix(characters[--end].size());
  return std::string(text);
}

}  // namespace bowline::jinja
