//===- KernelCache.cpp - Object code of kernels on disk
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/KernelCache.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/atomic_file.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"

#include <elf.h>
#include <fcntl.h>
#include <filesystem>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

using namespace bowline;
namespace fs = std::filesystem;

static constexpr llvm::StringLiteral kSuffix = ".kernel";

/// checksum of the rest | key | extent | number of pairs | pairs | object
static constexpr size_t kHashBytes = sizeof(Sha256Digest), kHeaderBytes = 2 * kHashBytes + 16;

static absl::string_view view(llvm::StringRef text) { return {text.data(), text.size()}; }

static llvm::StringRef text(const Sha256Digest &digest) {
  return {reinterpret_cast<const char *>(digest.data()), digest.size()};
}

/// The build id that the notes of a loaded object say; empty where they say none.
static std::string buildIdOf(const dl_phdr_info &object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    const char *at = reinterpret_cast<const char *>(object.dlpi_addr + segment.p_vaddr), *end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto &note = *reinterpret_cast<const ElfW(Nhdr) *>(at);
      const char *name = at + sizeof(ElfW(Nhdr)), *content = name + llvm::alignTo(note.n_namesz, 4);
      if (note.n_type == NT_GNU_BUILD_ID && llvm::StringRef(name, note.n_namesz) == llvm::StringRef("GNU", 4))
        return std::string(content, note.n_descsz);
      at = content + llvm::alignTo(note.n_descsz, 4);
    }
  }
  return "";
}

std::string bowline::codeGeneratorBuild() {
  struct Search {
    std::string ids;
    bool isComplete = true;
  } search;
  dl_iterate_phdr(
      [](dl_phdr_info *object, size_t, void *data) {
        auto &search = *static_cast<Search *>(data);
        llvm::StringRef name = object->dlpi_name;
        // The program itself has no name.
        if (!name.empty() && !name.contains("libLLVM") && !name.contains("libMLIR"))
          return 0;
        std::string id = buildIdOf(*object);
        search.isComplete &= !id.empty();
        search.ids += id;
        return 0;
      },
      &search);
  return search.isComplete ? search.ids : "";
}

absl::StatusOr<std::unique_ptr<KernelCache>> KernelCache::open(const std::string &directory, uint64_t limitBytes) {
  std::string build = codeGeneratorBuild();
  if (build.empty())
    return absl::FailedPreconditionError(
        "this program or its LLVM was linked without --build-id, so that their versions are not known");
  std::error_code error;
  fs::create_directories(directory, error);
  if (error)
    return absl::PermissionDeniedError(absl::StrCat("cannot make the folder '", directory, "': ", error.message()));
  if (access(directory.c_str(), R_OK | W_OK | X_OK) != 0)
    return ErrnoToStatus(errno, absl::StrCat("cannot use the folder '", directory, "'"));
  return std::unique_ptr<KernelCache>(new KernelCache(directory, limitBytes, std::move(build)));
}

Sha256Digest KernelCache::keyOf(llvm::StringRef ir, llvm::StringRef target) const {
  Sha256 hash;
  // Lengths come first, so that no two lists of strings give the same bytes.
  for (llvm::StringRef part : {llvm::StringRef("kernel cache 1"), llvm::StringRef(build), target, ir})
    hash.Update(absl::StrCat(part.size(), ":", view(part)));
  return hash.Finish();
}

std::string KernelCache::pathOf(const Sha256Digest &key) const {
  return absl::StrCat(folder, "/", ToHex(key), view(kSuffix));
}

static std::string encode(const Sha256Digest &key, const CachedKernel &kernel) {
  std::string bytes = text(key).str();
  auto append = [&](uint64_t number) {
    char buffer[8];
    llvm::support::endian::write64le(buffer, number);
    bytes.append(buffer, sizeof(buffer));
  };
  append(kernel.parallelExtent);
  append(kernel.inPlace.size());
  for (auto [output, input] : kernel.inPlace) {
    append(output);
    append(input);
  }
  bytes += kernel.object;
  return text(Sha256Of(view(bytes))).str() + bytes;
}

static std::optional<CachedKernel> decode(const Sha256Digest &key, llvm::StringRef bytes) {
  if (bytes.size() < kHeaderBytes ||
      bytes.take_front(kHashBytes) != text(Sha256Of(view(bytes.drop_front(kHashBytes)))) ||
      bytes.substr(kHashBytes, kHashBytes) != text(key))
    return std::nullopt;
  llvm::StringRef rest = bytes.drop_front(2 * kHashBytes);
  auto take = [&] {
    uint64_t number = llvm::support::endian::read64le(rest.data());
    rest = rest.drop_front(8);
    return number;
  };
  CachedKernel kernel;
  kernel.parallelExtent = static_cast<int64_t>(take());
  uint64_t pairs = take();
  if (pairs > rest.size() / 16)
    return std::nullopt;
  for (uint64_t i = 0; i < pairs; ++i) {
    int output = static_cast<int>(take());
    kernel.inPlace.emplace_back(output, static_cast<int>(take()));
  }
  kernel.object = rest.str();
  return kernel;
}

std::optional<CachedKernel> KernelCache::find(const Sha256Digest &key) {
  std::string path = pathOf(key);
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false,
                                          /*IsVolatile=*/true);
  std::optional<CachedKernel> kernel;
  if (file)
    kernel = decode(key, (*file)->getBuffer());
  if (!kernel) {
    ++missCount;
    return std::nullopt;
  }
  ++hitCount;
  // Entries that were used last are removed last. If this fails, the entry is merely older than it should be.
  (void)utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return kernel;
}

void KernelCache::store(const Sha256Digest &key, const CachedKernel &kernel) {
  if (!firstProblem.ok())
    return;
  auto write = [&]() -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(pathOf(key)));
    BOWLINE_RETURN_IF_ERROR(file.Append(encode(key, kernel)));
    return file.CommitUnsynced();
  };
  firstProblem = write();
  ++storeCount;
}

void KernelCache::trim() {
  if (storeCount == 0)
    return;
  struct File {
    fs::file_time_type used;
    std::string path;
    uint64_t bytes;
    bool operator<(const File &other) const { return std::tie(used, path) < std::tie(other.used, other.path); }
  };
  std::vector<File> files;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    // Another compiler may remove a file at any moment; then there is one less to count.
    std::error_code gone;
    if (it->path().extension().string() != kSuffix)
      continue;
    File file{it->last_write_time(gone), it->path().string(), it->file_size(gone)};
    if (gone)
      continue;
    total += file.bytes;
    files.push_back(std::move(file));
  }
  llvm::sort(files);
  for (const File &file : files) {
    if (total <= limit)
      break;
    fs::remove(file.path, error);
    total -= file.bytes;
  }
}
