#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/text/expression.h"

#include <pcre2.h>

#include <chrono>

#include "runtime/text/utf8.h"

namespace bowline {
namespace {

constexpr size_t kMaxExpressionBytes = size_t{64} << 10;
constexpr uint32_t kMatchLimit = 10'000'000;  // steps of one match, which is of a few characters
constexpr uint32_t kHeapLimitKib = 64 << 10;

struct ContextDeleter {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

std::string Message(int error) {
  PCRE2_UCHAR text[256];
  if (pcre2_get_error_message(error, text, sizeof(text)) < 0) return absl::StrCat("error ", error);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

void Expression::Deleter::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

absl::StatusOr<Expression> Expression::Compile(const std::string& source) {
  if (source.size() > kMaxExpressionBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("an expression has ", source.size(), " bytes; the limit is ", kMaxExpressionBytes));
  }
  if (FindInvalidUtf8(source) != std::string::npos) return absl::InvalidArgumentError("an expression is no UTF-8");
  BOWLINE_ASSIGN_OR_RETURN(const std::string translated, TranslateExpression(source));
  const std::unique_ptr<pcre2_compile_context, ContextDeleter> context(pcre2_compile_context_create(nullptr));
  if (context == nullptr) return absl::ResourceExhaustedError("no memory for an expression");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 50);
  int error = 0;
  PCRE2_SIZE offset = 0;
  Expression expression;
  expression.source_ = source;
  expression.code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                       PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_BACKSLASH_C, &error,
                                       &offset, context.get()));
  if (expression.code_ == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the expression '", source, "' is wrong: ", Message(error)));
  }
  uint32_t empty = 0;
  pcre2_pattern_info(expression.code_.get(), PCRE2_INFO_MATCHEMPTY, &empty);
  if (empty != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the expression '", source, "' may match without a character, which is not supported"));
  }
  // Without code for this processor the interpreter of PCRE2 finds the same.
  pcre2_jit_compile(expression.code_.get(), PCRE2_JIT_COMPLETE);
  return expression;
}

absl::Status Expression::ForEachMatch(absl::string_view text,
                                      absl::FunctionRef<absl::Status(size_t begin, size_t end)> match,
                                      const MatchPatience& patience) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point until =
      Clock::now() + patience.at_least + patience.per_byte * static_cast<int64_t>(text.size());
  const std::unique_ptr<pcre2_match_data, ContextDeleter> data(pcre2_match_data_create(1, nullptr));
  const std::unique_ptr<pcre2_match_context, ContextDeleter> context(pcre2_match_context_create(nullptr));
  if (data == nullptr || context == nullptr) return absl::ResourceExhaustedError("no memory for an expression");
  pcre2_set_match_limit(context.get(), kMatchLimit);
  pcre2_set_heap_limit(context.get(), kHeapLimitKib);
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  constexpr size_t kMatchesPerLook = 16;
  size_t matches = 0;
  for (size_t at = 0; at < text.size();) {
    int result = pcre2_match(code_.get(), subject, text.size(), at, PCRE2_NO_UTF_CHECK, data.get(), context.get());
    // The stack of compiled code is small; the interpreter has the heap.
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
      result = pcre2_match(code_.get(), subject, text.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data.get(),
                           context.get());
    }
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      return absl::InvalidArgumentError(absl::StrCat("the expression '", source_, "' of the tokenizer fails at byte ",
                                                     at, " of a text: ", Message(result)));
    }
    const PCRE2_SIZE* const bounds = pcre2_get_ovector_pointer(data.get());
    if (bounds[1] <= bounds[0]) {
      return absl::InvalidArgumentError(absl::StrCat("the expression '", source_, "' matches without a character"));
    }
    BOWLINE_RETURN_IF_ERROR(match(bounds[0], bounds[1]));
    at = bounds[1];
    if (++matches % kMatchesPerLook == 0 && Clock::now() > until) {
      return absl::InvalidArgumentError(absl::StrCat("the expression '", source_,
                                                     "' of the tokenizer takes too long: it is at byte ", at,
                                                     " of a text of ", text.size()));
    }
  }
  return absl::OkStatus();
}

}  // namespace bowline
