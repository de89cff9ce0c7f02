#ifndef BOWLINE_RUNTIME_BASE_MAPPING_FAULTS_H_
#define BOWLINE_RUNTIME_BASE_MAPPING_FAULTS_H_

#include <atomic>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace bowline {

// Tell the handler below which file is mapped where. MappedFile calls both; neither allocates or waits.
void AddMapping(absl::Span<const uint8_t> bytes, absl::string_view path);
void RemoveMapping(absl::Span<const uint8_t> bytes);
// From now on a page of this mapping that cannot be read becomes zeros and sets *lost; the process does not end.
void SurviveFaults(absl::Span<const uint8_t> bytes, std::atomic<bool>* lost);

// Installs a handler for SIGBUS at an address of a mapped file, which another process truncated or whose disk failed.
// It prints "TOOL: error: ..." with the file's name to stderr and ends the process with code 3. Other SIGBUS have their
// usual effect. For commands: a program that uses this library has its own handlers. `tool` must stay alive.
void ReportMappingFaults(const char* tool);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_MAPPING_FAULTS_H_
