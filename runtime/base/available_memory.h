#ifndef BOWLINE_RUNTIME_BASE_AVAILABLE_MEMORY_H_
#define BOWLINE_RUNTIME_BASE_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace bowline {

// The bytes of memory that are available on this machine, or those that this process's control group (version 2) may
// still use, if they are fewer. Memory of cached files counts as available. 0 if the number is unknown. `root` is a
// directory to put before the paths /proc and /sys.
uint64_t AvailableMemory(const std::string& root = "");

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_AVAILABLE_MEMORY_H_
