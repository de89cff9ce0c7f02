#ifndef BOWLINE_RUNTIME_BASE_OUTPUT_FILES_H_
#define BOWLINE_RUNTIME_BASE_OUTPUT_FILES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

// A file or directory, and the flag or argument that names it: {"--data", "d.bin"}.
struct NamedFile {
  std::string flag;
  std::string path;  // empty: not given
};

// Checks that a command does not write over its inputs or write a file twice. Returns kInvalidArgument, naming both
// flags, if an output is an input, is a model or checkpoint file in an input directory, or is another output too. Files
// are the same if device and inode are, after links are followed. Call this before opening anything for writing.
absl::Status CheckOutputs(absl::Span<const NamedFile> inputs, absl::Span<const NamedFile> outputs);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_OUTPUT_FILES_H_
