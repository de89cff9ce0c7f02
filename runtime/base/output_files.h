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

// kInvalidArgument, naming both flags, where a command would write over its inputs: where an output is an input, a
// file of a model or of checkpoints in a directory that is an input, or a file that another output is too. Files are
// the same if device and inode are, after links are followed. To be called before anything is opened for writing.
absl::Status CheckOutputs(absl::Span<const NamedFile> inputs, absl::Span<const NamedFile> outputs);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_OUTPUT_FILES_H_
