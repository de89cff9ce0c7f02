#ifndef BOWLINE_RUNTIME_TOOLS_TOKEN_PRINTER_H_
#define BOWLINE_RUNTIME_TOOLS_TOKEN_PRINTER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/status.h"

namespace bowline {

// Prints to stdout the tokens of a prompt and its continuation: ids as 1,2,3, or text.
class TokenPrinter {
 public:
  // The text that is complete with a token; may be empty.
  using TextOf = std::function<std::string(int32_t token)>;

  static TokenPrinter OfIds() { return TokenPrinter(nullptr); }
  static TokenPrinter OfText(TextOf text_of) { return TokenPrinter(std::move(text_of)); }

  absl::Status Print(int32_t token);
  // The end, with text that no token completed. A redirected text stays as the model wrote it; on a terminal the prompt
  // should not follow it. Ids are a line.
  absl::Status Finish(const std::string& rest = "");

 private:
  explicit TokenPrinter(TextOf text_of) : text_of_(std::move(text_of)) {}
  absl::Status PrintText(const std::string& text);

  TextOf text_of_;    // null: ids
  std::string last_;  // of the printed text
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_TOKEN_PRINTER_H_
