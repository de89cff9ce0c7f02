#ifndef BOWLINE_RUNTIME_BASE_FOREIGN_FILE_H_
#define BOWLINE_RUNTIME_BASE_FOREIGN_FILE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

// The text by which ForeignFormatOf names a safetensors file.
inline constexpr absl::string_view kSafetensorsFormat = "it is a safetensors file";

// Names the format of a file by its first bytes, and says how to proceed: "it is a web page: ...". Empty if the format
// is not known. For messages about a file that its own reader has refused: only that reader decides whether the file is
// valid. `least_magic`: leaves out formats that fewer bytes tell, for files that may begin with any bytes.
absl::string_view ForeignFormatOf(absl::Span<const uint8_t> bytes, size_t least_magic = 0);

// "it is text, and begins with '...': ..." if the first bytes of a file that should be binary are text, such as a
// server's error that was saved in its place. Otherwise empty.
std::string DescribeText(absl::Span<const uint8_t> bytes);

// Returns kInvalidArgument, naming `path`, if `bytes`, which are the whole file, are a Git LFS pointer: three lines of
// text that replace a large file in a clone that did not fetch it.
absl::Status RefuseLfsPointer(absl::string_view path, absl::Span<const uint8_t> bytes);

// "; it is a web page: ...", to append to a message; empty if the format is not known.
std::string ForeignFormatNote(absl::Span<const uint8_t> bytes);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_FOREIGN_FILE_H_
