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

// Makes a closed pipe or a file size limit an error of the write, which would end the process otherwise, and a file
// that a process shortens while `tool` has it mapped an error that names it (runtime/base/mapping_faults.h). To be
// called first.
void PrepareSignals(const char* tool);

// Parses the command line. True when the command is to go on; else `*exit_code` is 0 after --help, and after
// kPrintFlags (flag_list.h), and 1 for wrong flags, and a message went to stdout or stderr.
bool ParseCommandLine(CLI::App& app, int argc, char** argv, int* exit_code);

// Prints "TOOL: error: MESSAGE" to stderr unless `status` is OK; returns the exit code.
int ReportStatus(absl::string_view tool, const absl::Status& status);

// Writes `text` to stdout; an error when it does not take all (a full disk behind a redirection). A reader that closed
// the pipe (`| head`) has seen enough: the text is dropped without an error, so that the command ends with the
// exit code that its own work gives.
absl::Status PrintToStdout(absl::string_view text);

// Returns whether PrintToStdout has met such a reader. Work whose only purpose is to be printed may end then.
bool StdoutIsClosed();

// A line on stderr that says how far long work is. Silent when stderr is no terminal, and for the first half second.
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
