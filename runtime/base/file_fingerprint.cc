#include "runtime/base/file_fingerprint.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/sha256.h"

namespace bowline {
namespace {

constexpr size_t kBlock = 4096, kBlocks = 64;
constexpr size_t kShownCharacters = 12;

absl::StatusOr<size_t> AddFile(const std::string& path, Sha256& hash) {
  BOWLINE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path, MappedFile::Access::kRandom));
  const absl::Span<const uint8_t> bytes = file.bytes();
  hash.Update(absl::StrCat(bytes.size(), "\n"));
  if (bytes.size() <= kBlock * kBlocks) {
    hash.Update(bytes);
    return bytes.size();
  }
  const size_t last = bytes.size() - kBlock;
  for (size_t i = 0; i < kBlocks; ++i) {
    // The product of terabytes with 63 stays far below 2^64.
    hash.Update(bytes.subspan(last * i / (kBlocks - 1), kBlock));
  }
  return bytes.size();
}

absl::StatusOr<std::vector<std::string>> FilesBelow(const std::string& path) {
  std::vector<std::string> files;
  std::error_code error;
  auto i = std::filesystem::recursive_directory_iterator(path, error);
  for (; !error && i != std::filesystem::recursive_directory_iterator(); i.increment(error)) {
    if (i->is_regular_file(error)) files.push_back(i->path().lexically_relative(path).string());
    if (error) break;
  }
  if (error) return ErrnoToStatus(error.value(), absl::StrCat("cannot read the directory '", path, "'"));
  std::sort(files.begin(), files.end());
  return files;
}

std::string Shown(Sha256& hash) {
  return absl::StrCat("sha256 of samples ", ToHex(hash.Finish()).substr(0, kShownCharacters));
}

}  // namespace

absl::StatusOr<std::string> FingerprintOf(const std::string& path) {
  Sha256 hash;
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    BOWLINE_ASSIGN_OR_RETURN(const size_t size, AddFile(path, hash));
    return absl::StrCat(size, size == 1 ? " byte, " : " bytes, ", Shown(hash));
  }
  BOWLINE_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesBelow(path));
  for (const std::string& file : files) {
    hash.Update(absl::StrCat(file.size(), "\n", file));
    BOWLINE_RETURN_IF_ERROR(AddFile(absl::StrCat(path, "/", file), hash).status());
  }
  return absl::StrCat(files.size(), files.size() == 1 ? " file, " : " files, ", Shown(hash));
}

}  // namespace bowline
