#ifndef BOWLINE_RUNTIME_TEXT_JINJA_LEXER_H_
#define BOWLINE_RUNTIME_TEXT_JINJA_LEXER_H_

// Tokens of a template, with Jinja's trim_blocks and lstrip_blocks as transformers sets them.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bowline::jinja {

enum class TokenKind {
  kData,
  kBlockBegin,
  kBlockEnd,
  kPrintBegin,
  kPrintEnd,
  kName,
  kInteger,
  kFloat,
  kString,
  kOperator,
  kEnd
};

struct Token {
  TokenKind kind;
  std::string text;  // of a string: without quotes and escapes
  int line;
};

// Error messages begin with "line N: ".
absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source);

}  // namespace bowline::jinja

#endif  // BOWLINE_RUNTIME_TEXT_JINJA_LEXER_H_
