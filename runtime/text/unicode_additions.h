#ifndef BOWLINE_RUNTIME_TEXT_UNICODE_ADDITIONS_H_
#define BOWLINE_RUNTIME_TEXT_UNICODE_ADDITIONS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace bowline {

// The characters of Unicode 15 and 16 of a general category, as L or Lu, for within a class of an expression. Debian's
// PCRE2 knows Unicode 14, the reference tokenizers' Oniguruma 16. Nothing for other names.
absl::optional<std::string> AdditionsToCategory(absl::string_view category);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_UNICODE_ADDITIONS_H_
