#ifndef BOWLINE_RUNTIME_BASE_SMALL_FILE_H_
#define BOWLINE_RUNTIME_BASE_SMALL_FILE_H_

#include <cstddef>
#include <string>

#include "runtime/base/status.h"

namespace bowline {

// Reads a regular file that should be small: at most its first `most` bytes, whatever its size. Errors are those of
// MappedFile::Open.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t most);

// The first line of a small file, without its newline; empty if the file cannot be read.
std::string FirstLineOf(const std::string& path);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_SMALL_FILE_H_
