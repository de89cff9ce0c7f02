#include "runtime/text/normalizer.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace bowline {
namespace {

// The most bytes of a normalized text: no published tokenizer comes near these for each byte of the text.
constexpr size_t kMaxBytes = size_t{1} << 30, kBytesPerByte = 64, kFewBytes = size_t{64} << 10;

absl::Status TooLong(size_t bytes, size_t most) {
  return absl::InvalidArgumentError(
      absl::StrCat("a text of ", bytes, " bytes has more than ", most,
                   " when the tokenizer normalizes it; split it, or take another tokenizer"));
}

absl::StatusOr<std::string> ToUnicodeForm(NormalizerStep::Kind kind, const std::string& text) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* form = nullptr;
  switch (kind) {
    case NormalizerStep::Kind::kNfc:
      form = icu::Normalizer2::getNFCInstance(error);
      break;
    case NormalizerStep::Kind::kNfd:
      form = icu::Normalizer2::getNFDInstance(error);
      break;
    case NormalizerStep::Kind::kNfkc:
      form = icu::Normalizer2::getNFKCInstance(error);
      break;
    default:
      form = icu::Normalizer2::getNFKDInstance(error);
      break;
  }
  if (U_FAILURE(error)) return absl::InternalError(absl::StrCat("ICU: ", u_errorName(error)));
  // The reference has the tables of Unicode 9, for which newer characters are none.
  static const icu::UnicodeSet* const known = [] {
    UErrorCode status = U_ZERO_ERROR;
    auto* const set = new icu::UnicodeSet(UNICODE_STRING_SIMPLE("[:age=9.0:]"), status);
    if (U_FAILURE(status)) set->clear();
    set->freeze();
    return set;
  }();
  if (known->isEmpty()) return absl::InternalError("ICU does not know the characters of Unicode 9");
  const icu::FilteredNormalizer2 filtered(*form, *known);
  std::string normalized;
  icu::StringByteSink<std::string> sink(&normalized);
  filtered.normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink, nullptr, error);
  if (U_FAILURE(error)) return absl::InternalError(absl::StrCat("ICU: ", u_errorName(error)));
  return normalized;
}

}  // namespace

absl::StatusOr<std::string> Normalize(const std::vector<NormalizerStep>& steps, absl::string_view text) {
  const size_t most = std::min(kMaxBytes, std::max(kFewBytes, kBytesPerByte * std::min(text.size(), kMaxBytes)));
  std::string normalized(text);
  for (const NormalizerStep& step : steps) {
    if (step.kind == NormalizerStep::Kind::kPrepend) {
      if (!normalized.empty()) normalized.insert(0, step.content);
    } else if (step.kind == NormalizerStep::Kind::kReplace) {
      size_t count = 0;
      for (size_t at = normalized.find(step.pattern); at != std::string::npos;
           at = normalized.find(step.pattern, at + step.pattern.size())) {
        ++count;
      }
      if (count * step.content.size() > most) return TooLong(text.size(), most);
      normalized = absl::StrReplaceAll(normalized, {{step.pattern, step.content}});
    } else {
      BOWLINE_ASSIGN_OR_RETURN(normalized, ToUnicodeForm(step.kind, normalized));
    }
    if (normalized.size() > most) return TooLong(text.size(), most);
  }
  return normalized;
}

}  // namespace bowline
