#ifndef BOWLINE_RUNTIME_BASE_CACHE_DIRECTORY_H_
#define BOWLINE_RUNTIME_BASE_CACHE_DIRECTORY_H_

#include <string>

namespace bowline {

// The directory for replaceable files: the first of $BOWLINE_CACHE_DIR, $XDG_CACHE_HOME/bowline and ~/.cache/bowline
// that is set. Empty if none is set, or if BOWLINE_CACHE_DIR is "off". It may not exist yet.
std::string DefaultCacheDirectory();

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_CACHE_DIRECTORY_H_
