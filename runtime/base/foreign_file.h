#ifndef BOWLINE_RUNTIME_BASE_FOREIGN_FILE_H_
#define BOWLINE_RUNTIME_BASE_FOREIGN_FILE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace bowline {

// How ForeignFormatOf names a safetensors file.
inline constexpr absl::string_view kSafetensorsFormat = "it is a safetensors file";

// Names the format of a file by its first bytes, with what to do about it: "it is a web page: ...". Empty where they
// are those of none that is known. For messages about files that could not be read: their reader knows best.
absl::string_view ForeignFormatOf(absl::Span<const uint8_t> bytes);

// "; it is a web page: ..." to be put behind a message; empty where the format is not known.
std::string ForeignFormatNote(absl::Span<const uint8_t> bytes);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_FOREIGN_FILE_H_
