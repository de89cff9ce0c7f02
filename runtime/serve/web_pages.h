#ifndef BOWLINE_RUNTIME_SERVE_WEB_PAGES_H_
#define BOWLINE_RUNTIME_SERVE_WEB_PAGES_H_

// Files that are part of the binary.

#include "absl/strings/string_view.h"

namespace bowline::serve {

absl::string_view ChatPage();     // chat.html
absl::string_view OpenApiText();  // openapi.json

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_WEB_PAGES_H_
