#ifndef BOWLINE_RUNTIME_DRIVERS_CPU_PERF_MAP_H_
#define BOWLINE_RUNTIME_DRIVERS_CPU_PERF_MAP_H_

#include <string>

#include "runtime/base/status.h"

namespace bowline {

// Lets `perf report` show the names of generated kernels. They come from no file that perf could read symbols from, so
// it looks for their addresses in /tmp/perf-PID.map, and only where their memory belongs to no file at all.

// Returns whether the environment has BOWLINE_PERF_MAP=1.
bool PerfMapRequested();

// The path that perf expects for this process.
std::string PerfMapPath();

// Replaces the executable pages of the loaded object `handle`, of dlopen, by anonymous memory with the same bytes. No
// thread may be executing them. Returns kInternal, with the object unchanged, if the pages cannot be replaced.
absl::Status DetachFromFile(void* handle);

// Appends the name and the extent of the function that starts at `address` in a loaded object. If the file cannot be
// written, returns an error that names it.
absl::Status AppendToPerfMap(const void* address, const std::string& name);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CPU_PERF_MAP_H_
