//===- KernelCache.h - Object code of kernels on disk
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// One file per kernel, named by the hash of everything that decides its contents. Files appear complete or not at all,
// carry a checksum over all of their bytes, and are ignored and replaced when it is wrong: any number of compilers may
// use and clear one folder at the same time. A hit is byte for byte the result of code generation.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_KERNELCACHE_H
#define BOWLINE_COMPILER_CODEGEN_KERNELCACHE_H

#include "runtime/base/sha256.h"
#include "runtime/base/status.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace bowline {

/// A compiled kernel without its name.
struct CachedKernel {
  int64_t parallelExtent = 0;
  llvm::SmallVector<std::pair<int, int>> inPlace;
  /// An ELF object file with one function.
  std::string object;
};

class KernelCache {
public:
  static constexpr uint64_t kDefaultLimit = uint64_t{256} << 20;

  /// Makes the folder if it is missing. Fails where it cannot be made or written, or where the build of this program is
  /// not known, on which entries depend.
  static absl::StatusOr<std::unique_ptr<KernelCache>> open(const std::string &directory,
                                                           uint64_t limitBytes = kDefaultLimit);

  /// The name of the entry for a kernel with this IR and target, under this build of the code generator.
  Sha256Digest keyOf(llvm::StringRef ir, llvm::StringRef target) const;

  /// The entry, which is then the one used last; none if there is none or its file is damaged.
  std::optional<CachedKernel> find(const Sha256Digest &key);

  /// Stores the entry. After an error, which `problem` returns, later calls store nothing.
  void store(const Sha256Digest &key, const CachedKernel &kernel);

  /// Removes the entries used longest ago while all together are larger than the limit. Does nothing unless this cache
  /// stored an entry.
  void trim();

  const std::string &directory() const { return folder; }
  int64_t hits() const { return hitCount; }
  int64_t misses() const { return missCount; }
  /// Why nothing was stored any more; ok while all is well.
  const absl::Status &problem() const { return firstProblem; }

private:
  KernelCache(std::string directory, uint64_t limitBytes, std::string build)
      : folder(std::move(directory)), limit(limitBytes), build(std::move(build)) {}

  std::string pathOf(const Sha256Digest &key) const;

  std::string folder;
  uint64_t limit;
  std::string build;
  int64_t hitCount = 0, missCount = 0, storeCount = 0;
  absl::Status firstProblem;
};

/// The build IDs of this program and of the LLVM and MLIR libraries that it runs with. Empty if one of them has none.
std::string codeGeneratorBuild();

} // namespace bowline

#endif // BOWLINE_COMPILER_CODEGEN_KERNELCACHE_H
