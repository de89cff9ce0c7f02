#ifndef BOWLINE_RUNTIME_BASE_FILE_FINGERPRINT_H_
#define BOWLINE_RUNTIME_BASE_FILE_FINGERPRINT_H_

#include <string>

#include "runtime/base/status.h"

namespace bowline {

// Tells different contents apart without reading all of them, so that processes on several machines can compare their
// copies: the size, and a hash of the size and of blocks spread evenly over the file, the first and the last included.
// Files of up to 256 KiB are read whole. For a directory: the names, sizes and blocks of the regular files in it and
// below. The path itself does not count.
//
// "1234 bytes, sha256 of samples 89abcdef0123", or "2 files, ...". Errors name the path.
absl::StatusOr<std::string> FingerprintOf(const std::string& path);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_FILE_FINGERPRINT_H_
