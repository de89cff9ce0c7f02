#ifndef BOWLINE_RUNTIME_BASE_MAPPING_FAULTS_H_
#define BOWLINE_RUNTIME_BASE_MAPPING_FAULTS_H_

#include <atomic>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace bowline {

// Which file is mapped where, for the handler below. MappedFile calls both; neither allocates or waits.
void AddMapping(absl::Span<const uint8_t> bytes, absl::string_view path);
void RemoveMapping(absl::Span<const uint8_t> bytes);
// A page of this mapping that cannot be read is zeros from then on, and sets `*lost`, in place of the end below.
void SurviveFaults(absl::Span<const uint8_t> bytes, std::atomic<bool>* lost);

// From now on SIGBUS at an address of a mapped file, which another process shortened or whose disk failed, prints
// "TOOL: error: ..." with the file's name to stderr and ends the process with code 3. SIGBUS anywhere else has its
// usual effect. For commands; a program that uses this library has handlers of its own. `tool` must stay.
void ReportMappingFaults(const char* tool);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_MAPPING_FAULTS_H_
