#include "runtime/text/jinja/lexer.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace bowline::jinja {
namespace {

void AppendUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 63));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 63));
    out += static_cast<char>(0x80 | (code & 63));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 63));
    out += static_cast<char>(0x80 | (code >> 6 & 63));
    out += static_cast<char>(0x80 | (code & 63));
  }
}

class Lexer {
 public:
  explicit Lexer(absl::string_view source) : source_(absl::StrReplaceAll(source, {{"\r\n", "\n"}, {"\r", "\n"}})) {
    if (absl::EndsWith(source_, "\n")) source_.pop_back();
  }

  absl::StatusOr<std::vector<Token>> Run() {
    while (at_ < source_.size())
      if (absl::Status status = Section(); !status.ok()) return status;
    Add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  void Add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  absl::string_view rest() const { return absl::string_view(source_).substr(at_); }
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("line ", line_, ": ", what));
  }
  void Skip(size_t count) {
    for (; count > 0 && at_ < source_.size(); --count)
      if (source_[at_++] == '\n') ++line_;
  }
  void SkipSpace() {
    while (at_ < source_.size() && absl::ascii_isspace(source_[at_])) Skip(1);
  }

  // After a tag's end: "-" strips, a block's line feed goes, "+" keeps it.
  void AfterEnd(char sign, bool trims) {
    size_t begin = at_;
    if (sign == '-')
      SkipSpace();
    else if (sign != '+' && trims && absl::StartsWith(rest(), "\n"))
      Skip(1);
    line_starting_ = at_ > begin && source_[at_ - 1] == '\n';
  }

  // The text before a tag whose sign is `sign`.
  void AddData(absl::string_view text, char sign, bool block) {
    if (sign == '-') {
      text = absl::StripTrailingAsciiWhitespace(text);
    } else if (block && sign != '+') {
      size_t feed = text.rfind('\n');
      size_t begin = feed == text.npos ? 0 : feed + 1;
      if ((begin > 0 || line_starting_) && absl::StripAsciiWhitespace(text.substr(begin)).empty())
        text = text.substr(0, begin);
    }
    if (!text.empty()) Add(TokenKind::kData, std::string(text));
  }

  static char SignOf(absl::string_view text) {
    return !text.empty() && (text[0] == '-' || text[0] == '+') ? text[0] : 0;
  }

  // Whether the text is "{%", a sign, `word`, and the end of the tag; its length and signs.
  static size_t MatchWord(absl::string_view text, absl::string_view word, char& first, char& last) {
    absl::string_view tail = text;
    if (!absl::ConsumePrefix(&tail, "{%")) return 0;
    first = SignOf(tail);
    if (first) tail.remove_prefix(1);
    tail = absl::StripLeadingAsciiWhitespace(tail);
    if (!absl::ConsumePrefix(&tail, word)) return 0;
    tail = absl::StripLeadingAsciiWhitespace(tail);
    last = SignOf(tail);
    if (last) tail.remove_prefix(1);
    if (!absl::ConsumePrefix(&tail, "%}")) return 0;
    return text.size() - tail.size();
  }

  absl::Status Section() {
    absl::string_view text = rest();
    size_t tag = 0;
    for (;; ++tag) {
      tag = text.find('{', tag);
      if (tag == text.npos || tag + 1 >= text.size()) {
        Add(TokenKind::kData, std::string(text));
        at_ = source_.size();
        return absl::OkStatus();
      }
      if (char c = text[tag + 1]; c == '{' || c == '%' || c == '#') break;
    }
    char form = text[tag + 1], sign = SignOf(text.substr(tag + 2)), last = 0;
    AddData(text.substr(0, tag), sign, form != '{');
    Skip(tag);
    if (size_t length = MatchWord(rest(), "raw", sign, last); length > 0) return Raw(length, last);
    Skip(sign ? 3 : 2);
    if (form == '#') {
      size_t end = rest().find("#}");
      if (end == absl::string_view::npos) return Error("the comment has no end; write \"#}\"");
      char before = end > 0 ? SignOf(rest().substr(end - 1, 1)) : 0;
      Skip(end + 2);
      AfterEnd(before, true);
      return absl::OkStatus();
    }
    Add(form == '{' ? TokenKind::kPrintBegin : TokenKind::kBlockBegin, "");
    return Inside(form == '{' ? "}}" : "%}", form == '{' ? TokenKind::kPrintEnd : TokenKind::kBlockEnd);
  }

  absl::Status Raw(size_t length, char last) {
    Skip(length);
    if (last == '-') SkipSpace();
    line_starting_ = false;
    char first = 0, end_sign = 0;
    for (size_t end = rest().find("{%"); end != absl::string_view::npos; end = rest().find("{%", end + 2)) {
      size_t tag = MatchWord(rest().substr(end), "endraw", first, end_sign);
      if (tag == 0) continue;
      AddData(rest().substr(0, end), first, true);
      Skip(end + tag);
      AfterEnd(end_sign, true);
      return absl::OkStatus();
    }
    return Error("raw has no end; write {% endraw %}");
  }

  absl::Status Inside(absl::string_view end, TokenKind end_kind) {
    std::string open;  // brackets that wait for their ends
    while (true) {
      SkipSpace();
      absl::string_view text = rest();
      if (text.empty()) return Error(absl::StrCat("a tag has no end; write \"", end, "\""));
      if (open.empty()) {
        char sign = SignOf(text);
        if (absl::StartsWith(text.substr(sign ? 1 : 0), end) && !(sign == '+' && end == "}}")) {
          Skip(sign ? 3 : 2);
          Add(end_kind, "");
          AfterEnd(sign, end == "%}");
          return absl::OkStatus();
        }
      }
      char c = text[0];
      if (c == '"' || c == '\'') {
        if (absl::Status status = String(c); !status.ok()) return status;
      } else if (absl::ascii_isdigit(c)) {
        Number(text);
      } else if (absl::ascii_isalpha(c) || c == '_') {
        size_t size = 1;
        while (size < text.size() && (absl::ascii_isalnum(text[size]) || text[size] == '_')) ++size;
        Add(TokenKind::kName, std::string(text.substr(0, size)));
        at_ += size;
      } else {
        static constexpr absl::string_view kPairs[] = {"**", "//", "==", "!=", "<=", ">="};
        size_t size = 0;
        for (absl::string_view pair : kPairs)
          if (absl::StartsWith(text, pair)) size = 2;
        if (size == 0 && absl::StrContains("+-*/%~<>=.,:|()[]{};", c)) size = 1;
        if (size == 0) return Error(absl::StrCat("the character '", std::string(1, c), "' has no meaning here"));
        if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
        if (c == ')' || c == ']' || c == '}') {
          if (open.empty() || open.back() != c) return Error(absl::StrCat("'", std::string(1, c), "' closes nothing"));
          open.pop_back();
        }
        Add(TokenKind::kOperator, std::string(text.substr(0, size)));
        at_ += size;
      }
    }
  }

  void Number(absl::string_view text) {
    size_t size = 0;
    bool real = false;
    auto digits = [&] {
      while (size < text.size() && (absl::ascii_isdigit(text[size]) || text[size] == '_')) ++size;
    };
    auto digit_at = [&](size_t i) { return i < text.size() && absl::ascii_isdigit(text[i]); };
    digits();
    if (size < text.size() && text[size] == '.' && digit_at(size + 1)) real = true, ++size, digits();
    if (size < text.size() && (text[size] | 32) == 'e') {
      size_t next = size + 1;
      if (next < text.size() && (text[next] == '+' || text[next] == '-')) ++next;
      if (digit_at(next)) real = true, size = next, digits();
    }
    Add(real ? TokenKind::kFloat : TokenKind::kInteger, absl::StrReplaceAll(text.substr(0, size), {{"_", ""}}));
    at_ += size;
  }

  absl::Status String(char quote) {
    std::string out;
    int begin = line_;
    Skip(1);
    while (at_ < source_.size() && source_[at_] != quote) {
      char c = source_[at_];
      Skip(1);
      if (c != '\\' || at_ == source_.size()) {
        out += c;
        continue;
      }
      c = source_[at_];
      Skip(1);
      static constexpr absl::string_view kNames = "ntrabfv\\'\"", kMeanings = "\n\t\r\a\b\f\v\\'\"";
      if (size_t i = kNames.find(c); i != kNames.npos) {
        out += kMeanings[i];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        size_t size = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        uint32_t code = 0;
        for (size_t i = 0; i < size; ++i, ++at_) {
          if (at_ >= source_.size() || !absl::ascii_isxdigit(source_[at_]))
            return Error("an escape has too few digits");
          char d = absl::ascii_tolower(source_[at_]);
          code = code * 16 + (d <= '9' ? d - '0' : d - 'a' + 10);
        }
        if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return Error("an escape is no character of Unicode");
        AppendUtf8(code, out);
      } else if (c >= '0' && c <= '7') {
        uint32_t code = c - '0';
        for (int i = 0; i < 2 && at_ < source_.size() && source_[at_] >= '0' && source_[at_] <= '7'; ++i)
          code = code * 8 + (source_[at_++] - '0');
        AppendUtf8(code, out);
      } else if (c != '\n') {
        out += '\\';
        out += c;
      }
    }
    if (at_ == source_.size()) return Error(absl::StrCat("the string of line ", begin, " has no end"));
    Skip(1);
    Add(TokenKind::kString, std::move(out));
    return absl::OkStatus();
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source) { return Lexer(source).Run(); }

}  // namespace bowline::jinja
