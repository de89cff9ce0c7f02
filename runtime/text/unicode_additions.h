#ifndef BOWLINE_RUNTIME_TEXT_UNICODE_ADDITIONS_H_
#define BOWLINE_RUNTIME_TEXT_UNICODE_ADDITIONS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace bowline {

// The characters that Unicode 15 and 16 added to a general category, such as L or Lu, to put into a class of an
// expression: Debian's PCRE2 knows Unicode 14, the reference tokenizers' Oniguruma 16. Absent for other names.
absl::optional<std::string> AdditionsToCategory(absl::string_view category);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_UNICODE_ADDITIONS_H_
