#ifndef BOWLINE_RUNTIME_BASE_JSON_LINES_H_
#define BOWLINE_RUNTIME_BASE_JSON_LINES_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/base/file_descriptor.h"
#include "runtime/base/status.h"

namespace bowline {

// Writes one JSON object per line, each line in one piece and handed to the system at once, so that a reader that
// follows the file never sees half a line and a killed run loses none.
class JsonLinesWriter {
 public:
  enum class Mode {
    kTruncate,  // start anew
    kAppend,    // go on; an unfinished last line (of a machine that lost power) is cut off
  };

  // `path` may be a pipe or a device such as /dev/stdout.
  static absl::StatusOr<JsonLinesWriter> Open(const std::string& path, Mode mode = Mode::kTruncate);

  // Numbers that JSON cannot express (infinity, NaN) become null; bytes that are no UTF-8 become U+FFFD.
  absl::Status Write(const nlohmann::ordered_json& object);

  const std::string& path() const { return path_; }

 private:
  JsonLinesWriter(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  FileDescriptor file_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_JSON_LINES_H_
