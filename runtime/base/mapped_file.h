#ifndef BOWLINE_RUNTIME_BASE_MAPPED_FILE_H_
#define BOWLINE_RUNTIME_BASE_MAPPED_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

// A whole file, mapped read-only. Opening costs the same for a kilobyte and a terabyte: pages are loaded when they are
// read. The bytes stay valid when the file is deleted or replaced by a rename, as Bowline does. If a process truncates
// the mapped file in place, reading a lost page raises SIGBUS, as with every mapping: see mapping_faults.h and
// SurviveFaults.
class MappedFile {
 public:
  // How the bytes will be read; steers the kernel's read-ahead.
  enum class Access { kNormal, kSequential, kRandom };

  // An empty file maps to an empty span. Errors name `path`: kNotFound, kPermissionDenied, and kInvalidArgument for a
  // file that is not regular (a directory, a pipe) or is a Git LFS pointer (foreign_file.h).
  static absl::StatusOr<MappedFile> Open(const std::string& path, Access access = Access::kNormal);

  MappedFile(MappedFile&& other) noexcept
      : path_(std::move(other.path_)),
        bytes_(std::exchange(other.bytes_, absl::Span<const uint8_t>())),
        lost_(std::move(other.lost_)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(bytes_, other.bytes_);
    std::swap(lost_, other.lost_);
    return *this;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  // Page-aligned; valid as long as this object, also after it was moved.
  absl::Span<const uint8_t> bytes() const { return bytes_; }

  // From now on a page that can no longer be read holds zeros and raises no SIGBUS, in commands that called
  // ReportMappingFaults. The reader has to call CheckRead after it has read.
  void SurviveFaults();
  // Returns kUnavailable, naming the file, if bytes that were read may not have been the file's.
  absl::Status CheckRead() const;

 private:
  MappedFile(std::string path, absl::Span<const uint8_t> bytes) : path_(std::move(path)), bytes_(bytes) {}

  std::string path_;
  absl::Span<const uint8_t> bytes_;
  std::unique_ptr<std::atomic<bool>> lost_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_MAPPED_FILE_H_
