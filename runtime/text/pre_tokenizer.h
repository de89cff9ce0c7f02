#ifndef BOWLINE_RUNTIME_TEXT_PRE_TOKENIZER_H_
#define BOWLINE_RUNTIME_TEXT_PRE_TOKENIZER_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "runtime/base/status.h"
#include "runtime/text/definition.h"
#include "runtime/text/expression.h"

namespace bowline {

// Splits text into the pieces that a PieceModel encodes one by one.
class PreTokenizer {
 public:
  static absl::StatusOr<PreTokenizer> Create(const std::vector<PreTokenizerStep>& steps);

  using Piece = absl::FunctionRef<absl::Status(absl::string_view piece)>;
  // `at_start`: whether `text` is the beginning of the caller's text.
  absl::Status Split(absl::string_view text, bool at_start, Piece piece) const { return Run(0, text, at_start, piece); }

 private:
  struct Step {
    PreTokenizerStep definition;
    absl::optional<Expression> expression;
  };
  absl::Status Run(size_t step, absl::string_view text, bool at_start, Piece piece) const;

  std::vector<Step> steps_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_PRE_TOKENIZER_H_
