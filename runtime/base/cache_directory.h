#ifndef BOWLINE_RUNTIME_BASE_CACHE_DIRECTORY_H_
#define BOWLINE_RUNTIME_BASE_CACHE_DIRECTORY_H_

#include <string>

namespace bowline {

// The folder of replaceable files: $BOWLINE_CACHE_DIR, $XDG_CACHE_HOME/bowline or ~/.cache/bowline, the first that
// is set; empty if none is, or if BOWLINE_CACHE_DIR is "off". It may not exist yet.
std::string DefaultCacheDirectory();

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_CACHE_DIRECTORY_H_
