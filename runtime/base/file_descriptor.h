#ifndef BOWLINE_RUNTIME_BASE_FILE_DESCRIPTOR_H_
#define BOWLINE_RUNTIME_BASE_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace bowline {

// Owns a POSIX file descriptor and closes it.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { Close(); }

  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }

  // 0, or -1 with errno: a network file system may report a failed write only here.
  int Close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 ? 0 : ::close(fd);
  }

 private:
  int fd_ = -1;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_FILE_DESCRIPTOR_H_
