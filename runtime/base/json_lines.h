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
  // Hooks for a pipe, whose reader decides when it takes a line.
  struct PipeHooks {
    std::function<void(absl::string_view)> note;  // called while Open waits for a reader; may be null
    std::function<bool()> stops;                  // whether to give up on a reader that takes nothing
  };

  // Opens a file, pipe or device (such as /dev/stdout) to append to it. If a named pipe has no reader, waits for one.
  // Returns kFailedPrecondition if another writer has the file.
  static absl::StatusOr<JsonLinesWriter> Open(const std::string& path, PipeHooks hooks = {});

  // The line of an object, with its newline. Numbers that JSON cannot express (infinity, NaN) become null; bytes that
  // are not UTF-8 become U+FFFD.
  static std::string LineOf(const nlohmann::ordered_json& object);

  // Write a line. If it cannot be written to a file as a whole, the part that was written is removed again. Returns
  // kUnavailable if a pipe's reader takes nothing.
  absl::Status Write(const nlohmann::ordered_json& object) { return WriteLine(LineOf(object)); }
  absl::Status WriteLine(absl::string_view line);

  // Truncates the file to `size` bytes. Requires is_file().
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
