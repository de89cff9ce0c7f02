#ifndef BOWLINE_RUNTIME_BASE_LFS_POINTER_H_
#define BOWLINE_RUNTIME_BASE_LFS_POINTER_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

// Git LFS keeps large files apart, and leaves a text of three lines in their place in a clone that did not fetch them.
// kInvalidArgument, naming `path`, where `bytes`, all of the file, are such a pointer.
absl::Status RefuseLfsPointer(absl::string_view path, absl::Span<const uint8_t> bytes);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_LFS_POINTER_H_
