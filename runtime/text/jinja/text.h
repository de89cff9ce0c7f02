#ifndef BOWLINE_RUNTIME_TEXT_JINJA_TEXT_H_
#define BOWLINE_RUNTIME_TEXT_JINJA_TEXT_H_

// Strings as Python sees them: sequences of Unicode characters, with Unicode's white space.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace bowline::jinja {

std::vector<absl::string_view> Characters(absl::string_view text);
// The first offset of `part` at or after `begin`; npos if there is none. Takes linear time.
size_t FindText(absl::string_view text, absl::string_view part, size_t begin = 0);
bool IsUtf8(absl::string_view text);
bool IsSpace(absl::string_view character);
// Removes the characters of `set` (null: white space) at the left end, the right end or both.
std::string Strip(absl::string_view text, const std::string* set, bool left, bool right);

}  // namespace bowline::jinja

#endif  // BOWLINE_RUNTIME_TEXT_JINJA_TEXT_H_
