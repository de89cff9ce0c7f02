#ifndef BOWLINE_RUNTIME_TOOLS_TOOL_SUPPORT_H_
#define BOWLINE_RUNTIME_TOOLS_TOOL_SUPPORT_H_

// The code that all commands share.

#include <chrono>
#include <cstdint>
#include <string>

#include "runtime/base/status.h"

namespace CLI {
class App;
}

namespace bowline {

// Lets a write return an error for a closed pipe or a file size limit, which would otherwise end the process. Reports
// an error that names the file if a process shortens a file that `tool` has mapped (runtime/base/mapping_faults.h).
// Call this first.
void PrepareSignals(const char* tool);

// Parses the command line. Returns true if the command must continue. Otherwise prints a message and sets `*exit_code`:
// 0 after --help and kPrintFlags (flag_list.h), 1 for wrong flags.
bool ParseCommandLine(CLI::App& app, int argc, char** argv, int* exit_code);

// Prints "TOOL: error: MESSAGE" to stderr unless `status` is OK; returns the exit code.
int ReportStatus(absl::string_view tool, const absl::Status& status);

// Writes `text` to stdout. Returns an error if stdout does not take all of it, for example because a disk is full. If
// the reader closed the pipe (`| head`), drops the text without an error, so that the command ends with the exit code
// of its own work.
absl::Status PrintToStdout(absl::string_view text);

// Returns whether PrintToStdout has found the pipe closed. Work that only produces output may then end.
bool StdoutIsClosed();

// Shows the progress of long work as a line on stderr. Silent if stderr is no terminal, and for the first half second.
class Progress {
 public:
  // `total` in the unit of Update; 0 when it is not known.
  Progress(std::string verb, uint64_t total);
  ~Progress();
  void Update(uint64_t done);

 private:
  std::string verb_;
  uint64_t total_;
  bool enabled_;
  bool printed_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_TOOL_SUPPORT_H_
