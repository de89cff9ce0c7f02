#ifndef BOWLINE_RUNTIME_TEXT_JINJA_TEXT_H_
#define BOWLINE_RUNTIME_TEXT_JINJA_TEXT_H_

// Strings as Python sees them: characters of Unicode, and its white space.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace bowline::jinja {

std::vector<absl::string_view> Characters(absl::string_view text);
// The first place of `part` at or after `begin`, in linear time; npos where there is none.
size_t FindText(absl::string_view text, absl::string_view part, size_t begin = 0);
bool IsUtf8(absl::string_view text);
bool IsSpace(absl::string_view character);
// Without the characters of `set` (null: white space) at the ends that are asked for.
std::string Strip(absl::string_view text, const std::string* set, bool left, bool right);

}  // namespace bowline::jinja

#endif  // BOWLINE_RUNTIME_TEXT_JINJA_TEXT_H_
