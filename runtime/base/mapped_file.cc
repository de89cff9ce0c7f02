#include "runtime/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "runtime/base/file_descriptor.h"
#include "runtime/base/foreign_file.h"
#include "runtime/base/mapping_faults.h"

namespace bowline {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path, Access access) {
  // O_NONBLOCK: opening a named pipe must fail below instead of waiting for a writer.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return ErrnoToStatus(errno, absl::StrCat("cannot open '", path, "'"));
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return ErrnoToStatus(errno, absl::StrCat("cannot examine '", path, "'"));
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is a directory; give the name of a file"));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is not a regular file and cannot be mapped; write its content to a file first"));
  }
  const size_t size = static_cast<size_t>(info.st_size);
  if (size == 0) return MappedFile(path, {});
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) return ErrnoToStatus(errno, absl::StrCat("cannot map '", path, "'"));
  // Advice only: a kernel that does not take it reads just as correctly.
  if (access == Access::kSequential) ::madvise(address, size, MADV_SEQUENTIAL);
  if (access == Access::kRandom) ::madvise(address, size, MADV_RANDOM);
  MappedFile mapped(path, {static_cast<const uint8_t*>(address), size});
  AddMapping(mapped.bytes(), path);
  BOWLINE_RETURN_IF_ERROR(RefuseLfsPointer(path, mapped.bytes()));
  return mapped;
}

void MappedFile::SurviveFaults() {
  if (lost_ != nullptr) return;
  lost_ = std::make_unique<std::atomic<bool>>(false);
  bowline::SurviveFaults(bytes_, lost_.get());
}

absl::Status MappedFile::CheckRead() const {
  if (lost_ == nullptr || !lost_->load()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "'", path_, "' cannot be read any more: it was made shorter while this command used it, or its disk failed; ",
      "leave files as they are while a command uses them, and start it again"));
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  RemoveMapping(bytes_);
  ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace bowline
