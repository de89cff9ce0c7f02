#include "runtime/tools/token_printer.h"

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/tools/tool_support.h"

namespace bowline {

absl::Status TokenPrinter::Print(int32_t token) {
  return PrintText(text_of_ == nullptr ? absl::StrCat(last_.empty() ? "" : ",", token) : text_of_(token));
}

absl::Status TokenPrinter::Finish(const std::string& rest) {
  BOWLINE_RETURN_IF_ERROR(PrintText(rest));
  if (last_.empty() || absl::EndsWith(last_, "\n")) return absl::OkStatus();
  return text_of_ == nullptr || ::isatty(STDOUT_FILENO) == 1 ? PrintToStdout("\n") : absl::OkStatus();
}

absl::Status TokenPrinter::PrintText(const std::string& text) {
  if (text.empty()) return absl::OkStatus();
  last_ = text;
  return PrintToStdout(text);
}

}  // namespace bowline
