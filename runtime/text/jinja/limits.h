#ifndef BOWLINE_RUNTIME_TEXT_JINJA_LIMITS_H_
#define BOWLINE_RUNTIME_TEXT_JINJA_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace bowline {

struct ChatTemplateLimits {
  size_t source_bytes = 256 << 10;
  int depth = 64;               // nesting of expressions and blocks, and depth of macro calls
  int64_t steps = 1'000'000;    // evaluated nodes, visited elements, and blocks of 64 bytes of text
  size_t text_bytes = 4 << 20;  // of the output, and of each string
  int64_t range = 100'000;      // elements of range()
  int nesting = 100;            // levels of lists and dicts that contain each other
};

// Returns the text of strftime_now(format) in a template.
using ChatTemplateClock = std::function<std::string(const std::string& format)>;

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_JINJA_LIMITS_H_
