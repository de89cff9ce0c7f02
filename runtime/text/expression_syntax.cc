// From Oniguruma's syntax to that of PCRE2.

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "runtime/text/expression.h"
#include "runtime/text/unicode_additions.h"

namespace bowline {
namespace {

// White space and word characters by Unicode, which PCRE2 has other sets for.
constexpr char kSpace[] =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
// Oniguruma's, with the superscripts and fractions of Latin-1.
std::string WordSet() {
  std::string set =
      "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}\\x{24b6}-\\x{24e9}"
      "\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";
  for (const char* category : {"L", "M", "Nd"}) set += *AdditionsToCategory(category);
  return set;
}

class Translator {
 public:
  explicit Translator(absl::string_view source) : source_(source) {}

  absl::StatusOr<std::string> Run() {
    while (at_ < source_.size()) {
      BOWLINE_RETURN_IF_ERROR(in_class_ ? InClass() : Outside());
    }
    if (in_class_) return Refuse("a class without its ]");
    return std::move(out_);
  }

 private:
  absl::Status Refuse(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("the expression '", source_, "' has ", what, " at byte ", at_, ", which is not supported"));
  }
  bool Next(absl::string_view text) const { return absl::StartsWith(source_.substr(at_), text); }
  void Take(size_t count) {
    absl::StrAppend(&out_, source_.substr(at_, count));
    at_ += count;
  }

  absl::Status Outside() {
    const char c = source_[at_];
    if (c == '\\') return Escape();
    if (c == '^' || c == '$') return Refuse(absl::StrCat("the anchor ", absl::string_view(&c, 1)));
    if (c == '[') {
      in_class_ = true;
      Take(1);
      if (Next("^")) Take(1);
      if (Next("]")) return Refuse("an empty class");
      return absl::OkStatus();
    }
    if (c == '(') {
      if (!Next("(?")) {
        if (Next("(*")) return Refuse("a verb");
        Take(1);
        return absl::OkStatus();
      }
      for (const absl::string_view form : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?i)"}) {
        if (Next(form)) {
          Take(form.size());
          return absl::OkStatus();
        }
      }
      return Refuse("a group of an unknown kind");
    }
    if (c == '{') {
      size_t end = at_ + 1;
      while (end < source_.size() &&
             (absl::ascii_isdigit(static_cast<unsigned char>(source_[end])) || source_[end] == ','))
        ++end;
      if (end == source_.size() || source_[end] != '}' || end == at_ + 1 || source_[at_ + 1] == ',') {
        return Refuse("a { that begins no repetition");
      }
      Take(end + 1 - at_);
      if (Next("+")) return Refuse("}+, a repetition of a repetition");
      return absl::OkStatus();
    }
    Take(1);
    return absl::OkStatus();
  }

  absl::Status InClass() {
    const char c = source_[at_];
    if (c == '\\') return Escape();
    if (c == '[') return Refuse("a class within a class");
    if (Next("&&")) return Refuse("an intersection of classes");
    if (c == ']') in_class_ = false;
    Take(1);
    return absl::OkStatus();
  }

  absl::Status Escape() {
    if (at_ + 1 == source_.size()) return Refuse("a \\ at the end");
    const char c = source_[at_ + 1];
    if (c == 's' || c == 'w') {
      const std::string set = c == 's' ? kSpace : WordSet();
      at_ += 2;
      // A set followed by - would read as a range.
      if (in_class_ && Next("-") && !Next("-]")) return Refuse("a range that begins with a set");
      absl::StrAppend(&out_, in_class_ ? "" : "[", set, in_class_ ? "" : "]");
      return absl::OkStatus();
    }
    if (c == 'S' || c == 'W') {
      if (in_class_) return Refuse("a negated set within a class");
      absl::StrAppend(&out_, "[^", c == 'S' ? std::string(kSpace) : WordSet(), "]");
      at_ += 2;
      return absl::OkStatus();
    }
    if (c == 'p' || c == 'P') return Property(/*negated=*/c == 'P');
    if (c == 'd' || c == 'D') {
      if (c == 'D' && in_class_) return Refuse("a negated set within a class");
      at_ += 2;
      return AppendCategory("Nd", /*negated=*/c == 'D');
    }
    if (c == 'x' || c == 'u') return CodePoint(c);
    if (absl::StrContains("rntf", absl::string_view(&c, 1))) {
      Take(2);
      return absl::OkStatus();
    }
    if (!absl::ascii_ispunct(static_cast<unsigned char>(c))) return Refuse("an unknown escape");
    Take(2);
    return absl::OkStatus();
  }

  absl::Status Property(bool negated) {
    const size_t end = source_.find('}', at_);
    if (at_ + 2 == source_.size() || source_[at_ + 2] != '{' || end == absl::string_view::npos) {
      return Refuse("a property without braces");
    }
    if (negated && in_class_) return Refuse("a negated set within a class");
    const absl::string_view category = source_.substr(at_ + 3, end - at_ - 3);
    BOWLINE_RETURN_IF_ERROR(AppendCategory(category, negated));
    at_ = end + 1;
    return absl::OkStatus();
  }

  absl::Status AppendCategory(absl::string_view category, bool negated) {
    const absl::optional<std::string> additions = AdditionsToCategory(category);
    if (!additions) return Refuse(absl::StrCat("the property '", category, "', which is no general category,"));
    const std::string set = absl::StrCat("\\p{", category, "}", *additions);
    absl::StrAppend(&out_, in_class_ ? "" : negated ? "[^" : "[", set, in_class_ ? "" : "]");
    return absl::OkStatus();
  }

  absl::Status CodePoint(char kind) {
    size_t begin = at_ + 2, end = begin;
    const auto hex = [&](size_t i) {
      return i < source_.size() && absl::ascii_isxdigit(static_cast<unsigned char>(source_[i]));
    };
    const bool braces = kind == 'x' && begin < source_.size() && source_[begin] == '{';
    if (braces) end = ++begin;
    while (hex(end) && end - begin < (braces ? 6u : kind == 'x' ? 2u : 4u)) ++end;
    const bool complete =
        braces ? end > begin && end < source_.size() && source_[end] == '}' : end - begin == (kind == 'x' ? 2u : 4u);
    if (!complete) return Refuse("an incomplete code point");
    // Two digits are a byte for Oniguruma.
    if (!braces && kind == 'x' && source_[begin] >= '8') return Refuse("a byte that is no character");
    absl::StrAppend(&out_, "\\x{", source_.substr(begin, end - begin), "}");
    at_ = end + (braces ? 1 : 0);
    return absl::OkStatus();
  }

  absl::string_view source_;
  size_t at_ = 0;
  bool in_class_ = false;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::string> TranslateExpression(absl::string_view expression) { return Translator(expression).Run(); }

}  // namespace bowline
