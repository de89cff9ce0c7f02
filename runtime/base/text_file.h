#ifndef BOWLINE_RUNTIME_BASE_TEXT_FILE_H_
#define BOWLINE_RUNTIME_BASE_TEXT_FILE_H_

#include <string>

#include "runtime/base/status.h"

namespace bowline {

// Checks a regular file before a text parser, which would complain about single characters, reads it. The error of
// MappedFile::Open, or kInvalidArgument with the format if the file is no text. OK for anything else, such as a pipe.
absl::Status CheckTextFile(const std::string& path);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_TEXT_FILE_H_
