#ifndef BOWLINE_RUNTIME_TEXT_EXPRESSION_H_
#define BOWLINE_RUNTIME_TEXT_EXPRESSION_H_

// Expressions that split text, written for Oniguruma and executed by PCRE2.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

struct pcre2_real_code_8;

namespace bowline {

// Translates an expression for PCRE2. Refuses syntax with another meaning there, and syntax that no tokenizer needs.
absl::StatusOr<std::string> TranslateExpression(absl::string_view expression);

// The time that the matches of a text may take: many times that of published expressions, but not that of an expression
// that looks at the rest of the text for each character.
struct MatchPatience {
  std::chrono::nanoseconds at_least = std::chrono::seconds(5), per_byte = std::chrono::microseconds(5);
};

class Expression {
 public:
  static absl::StatusOr<Expression> Compile(const std::string& expression);

  // Calls `match` with the bounds of each match in `text`, which is UTF-8, from left to right. An expression that takes
  // too many steps for a match, or too much time for a text, is kInvalidArgument.
  absl::Status ForEachMatch(absl::string_view text, absl::FunctionRef<absl::Status(size_t begin, size_t end)> match,
                            const MatchPatience& patience = {}) const;

 private:
  struct Deleter {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::string source_;
  std::unique_ptr<pcre2_real_code_8, Deleter> code_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_EXPRESSION_H_
