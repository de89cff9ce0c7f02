#ifndef BOWLINE_RUNTIME_TEXT_JINJA_PARSER_H_
#define BOWLINE_RUNTIME_TEXT_JINJA_PARSER_H_

// Syntax trees of templates.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/text/jinja/value.h"

namespace bowline::jinja {

enum class NodeKind {
  // Statements.
  kData,
  kPrint,
  kFor,
  kIf,
  kSet,
  kSetBlock,
  kMacro,
  kBreak,
  kContinue,
  kFilterBlock,
  kGeneration,
  // Expressions.
  kConstant,
  kName,
  kList,
  kTuple,
  kDict,
  kAttribute,
  kItem,
  kSlice,
  kCall,
  kFilter,
  kTest,
  kUnary,
  kBinary,
  kCompare,
  kAnd,
  kOr,
  kChoice,
};

struct Node {
  NodeKind kind;
  int line = 0;
  std::string text;                                                  // a name, an operator
  Value value;                                                       // of kConstant
  std::vector<std::unique_ptr<Node>> parts;                          // operands; null where one is left out
  std::vector<std::pair<std::string, std::unique_ptr<Node>>> named;  // arguments with names, parameters with defaults
  std::vector<std::string> operators;                                // of kCompare
  std::vector<std::unique_ptr<Node>> body, otherwise;
};

struct ParserLimits {
  int depth = 64;  // of nested expressions and blocks
};

// Parses a template into one node with a body. Error messages begin with "line N: ".
absl::StatusOr<std::unique_ptr<Node>> ParseTemplate(absl::string_view source, const ParserLimits& limits);

}  // namespace bowline::jinja

#endif  // BOWLINE_RUNTIME_TEXT_JINJA_PARSER_H_
