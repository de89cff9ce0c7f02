#include "runtime/text/pre_tokenizer.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "runtime/text/byte_alphabet.h"
#include "runtime/text/utf8.h"

namespace bowline {
namespace {

constexpr size_t kMaxSteps = 64;  // each is a level of recursion

// Joins matches and the text between them as `behavior` says, and hands over complete pieces.
class Joiner {
 public:
  using Part = absl::FunctionRef<absl::Status(size_t begin, size_t end)>;
  Joiner(SplitBehavior behavior, Part part) : behavior_(behavior), part_(part) {}

  absl::Status Add(size_t begin, size_t end, bool match) {
    if (begin == end) return absl::OkStatus();
    bool joins = false;
    switch (behavior_) {
      case SplitBehavior::kRemoved:
        if (match) return absl::OkStatus();
        break;
      case SplitBehavior::kIsolated:
        break;
      case SplitBehavior::kMergedWithPrevious:
        joins = match && !match_;
        break;
      case SplitBehavior::kMergedWithNext:
        joins = !match && match_;
        break;
      case SplitBehavior::kContiguous:
        joins = match == match_;
        break;
    }
    match_ = match;
    if (joins && end_ == begin) {
      end_ = end;
      return absl::OkStatus();
    }
    BOWLINE_RETURN_IF_ERROR(Finish());
    begin_ = begin;
    end_ = end;
    return absl::OkStatus();
  }

  absl::Status Finish() {
    const size_t begin = std::exchange(begin_, end_);
    return begin == end_ ? absl::OkStatus() : part_(begin, end_);
  }

 private:
  const SplitBehavior behavior_;
  const Part part_;
  size_t begin_ = 0, end_ = 0;
  bool match_ = false;  // whether the last one was
};

absl::Status SplitByExpression(const Expression& expression, const PreTokenizerStep& step, absl::string_view text,
                               Joiner::Part part) {
  Joiner joiner(step.behavior, part);
  size_t done = 0;
  BOWLINE_RETURN_IF_ERROR(expression.ForEachMatch(text, [&](size_t begin, size_t end) -> absl::Status {
    BOWLINE_RETURN_IF_ERROR(joiner.Add(done, begin, step.invert));
    done = end;
    return joiner.Add(begin, end, !step.invert);
  }));
  BOWLINE_RETURN_IF_ERROR(joiner.Add(done, text.size(), step.invert));
  return joiner.Finish();
}

}  // namespace

absl::StatusOr<PreTokenizer> PreTokenizer::Create(const std::vector<PreTokenizerStep>& steps) {
  if (steps.size() > kMaxSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("the pre-tokenizer has ", steps.size(), " steps; the limit is ", kMaxSteps));
  }
  PreTokenizer pre_tokenizer;
  for (const PreTokenizerStep& definition : steps) {
    Step step{definition, {}};
    if (definition.kind == PreTokenizerStep::Kind::kSplit) {
      BOWLINE_ASSIGN_OR_RETURN(step.expression, Expression::Compile(definition.expression));
    }
    pre_tokenizer.steps_.push_back(std::move(step));
  }
  return pre_tokenizer;
}

absl::Status PreTokenizer::Run(size_t index, absl::string_view text, bool at_start, Piece piece) const {
  if (text.empty()) return absl::OkStatus();
  if (index == steps_.size()) return piece(text);
  const PreTokenizerStep& step = steps_[index].definition;
  switch (step.kind) {
    case PreTokenizerStep::Kind::kSplit:
      return SplitByExpression(*steps_[index].expression, step, text, [&](size_t begin, size_t end) {
        return Run(index + 1, text.substr(begin, end - begin), at_start && begin == 0, piece);
      });
    case PreTokenizerStep::Kind::kByteLevel:
      return Run(index + 1, ToByteAlphabet(text), at_start, piece);
    case PreTokenizerStep::Kind::kPrefix:
      if (absl::StartsWith(text, step.content)) return Run(index + 1, text, at_start, piece);
      return Run(index + 1, absl::StrCat(step.content, text), at_start, piece);
    case PreTokenizerStep::Kind::kMetaspace: {
      std::string marked = absl::StrReplaceAll(text, {{" ", step.content}});
      const bool prepend =
          step.where == PreTokenizerStep::Where::kAlways || (step.where == PreTokenizerStep::Where::kFirst && at_start);
      if (prepend && !absl::StartsWith(marked, step.content)) marked.insert(0, step.content);
      return Run(index + 1, marked, at_start, piece);
    }
  }
  return absl::OkStatus();
}

}  // namespace bowline
