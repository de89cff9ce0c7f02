#ifndef BOWLINE_RUNTIME_BASE_JSON_LINES_H_
#define BOWLINE_RUNTIME_BASE_JSON_LINES_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/status.h"

namespace bowline {

// Writes one JSON object per line, each line in one piece and handed to the system at once, so that a reader that
// follows the file never sees half a line and a killed run loses none. A file has one writer at a time.
class JsonLinesWriter {
 public:
  // For a pipe, whose reader decides when it takes a line.
  struct PipeHooks {
    std::function<void(absl::string_view)> note;  // of a reader that is waited for; may be null
    std::function<bool()> stops;                  // whether a reader that takes nothing is waited for no longer
  };

  // Appends to existing contents. `path` may be a pipe or a device such as /dev/stdout. A named pipe is opened when it
  // has a reader, for which this waits. kFailedPrecondition when another writer has the file.
  static absl::StatusOr<JsonLinesWriter> Open(const std::string& path, PipeHooks hooks = {});

  // The line of an object, with its end. Numbers that JSON cannot express (infinity, NaN) become null; bytes that are
  // no UTF-8 become U+FFFD.
  static std::string LineOf(const nlohmann::ordered_json& object);

  // A line that cannot be written as a whole is taken back from a file. kUnavailable when a pipe's reader takes
  // nothing.
  absl::Status Write(const nlohmann::ordered_json& object) { return WriteLine(LineOf(object)); }
  absl::Status WriteLine(absl::string_view line);

  // Makes a file, which must be one, shorter.
  absl::Status Cut(uint64_t size);

  const std::string& path() const { return path_; }
  bool is_file() const { return is_file_; }

 private:
  JsonLinesWriter(std::string path, FileDescriptor file, bool is_file, PipeHooks hooks)
      : path_(std::move(path)), file_(std::move(file)), is_file_(is_file), hooks_(std::move(hooks)) {}

  absl::Status WaitForReader() const;

  std::string path_;
  FileDescriptor file_;
  bool is_file_ = false;
  PipeHooks hooks_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_JSON_LINES_H_
