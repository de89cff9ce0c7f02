#ifndef BOWLINE_RUNTIME_BASE_FOREIGN_FILE_H_
#define BOWLINE_RUNTIME_BASE_FOREIGN_FILE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

// How ForeignFormatOf names a safetensors file.
inline constexpr absl::string_view kSafetensorsFormat = "it is a safetensors file";

// Names the format of a file by its bytes, of which the first ones count, with what to do about it: "it is a web page:
// ...". Empty where they are those of none that is known. For messages about files that could not be read: their reader
// knows best.
absl::string_view ForeignFormatOf(absl::Span<const uint8_t> bytes);

// "it is text, and begins with '...': ..." where the first bytes of a file that should be binary are text, as of a
// server's error that was saved in its place; otherwise empty.
std::string DescribeText(absl::Span<const uint8_t> bytes);

// Git LFS keeps large files apart, and leaves a text of three lines in their place in a clone that did not fetch them.
// kInvalidArgument, naming `path`, where `bytes`, all of the file, are such a pointer.
absl::Status RefuseLfsPointer(absl::string_view path, absl::Span<const uint8_t> bytes);

// For a regular file that a parser of text is to read, which would complain about single characters: the error of
// MappedFile::Open, or kInvalidArgument with the format of a file that is no text. OK for anything else, as a pipe.
absl::Status CheckTextFile(const std::string& path);

// "; it is a web page: ..." to be put behind a message; empty where the format is not known.
std::string ForeignFormatNote(absl::Span<const uint8_t> bytes);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_FOREIGN_FILE_H_
