//===- KernelCache.h - Object code of kernels on disk
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Stores each kernel in a file named by the hash of everything that determines its code. Files appear complete or not
// at all, and carry a checksum; a file with a wrong one is ignored and replaced. So any number of compilers may use and
// clear one folder at the same time. A hit has exactly the bytes that code generation would produce.
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

/// A compiled kernel, which has no name yet.
struct CachedKernel {
  int64_t parallelExtent = 0;
  llvm::SmallVector<std::pair<int, int>> inPlace;
  /// An ELF object file with one function.
  std::string object;
};

class KernelCache {
public:
  static constexpr uint64_t kDefaultLimit = uint64_t{256} << 20;

  /// Creates the folder if it is missing. Fails where it cannot be created or written, or where the build of this
  /// program, on which the keys depend, is unknown.
  static absl::StatusOr<std::unique_ptr<KernelCache>> open(const std::string &directory,
                                                           uint64_t limitBytes = kDefaultLimit);

  /// Returns the key of the entry for a kernel with this IR, target and build of the code generator.
  Sha256Digest keyOf(llvm::StringRef ir, llvm::StringRef target) const;

  /// Returns the entry and marks it as used last; nothing if it does not exist or its file is damaged.
  std::optional<CachedKernel> find(const Sha256Digest &key);

  /// Stores the entry. After the first error, which `problem` returns, later calls do nothing.
  void store(const Sha256Digest &key, const CachedKernel &kernel);

  /// If the entries exceed the size limit together, removes the least recently used ones. Does nothing unless this
  /// cache stored an entry.
  void trim();

  const std::string &directory() const { return folder; }
  int64_t hits() const { return hitCount; }
  int64_t misses() const { return missCount; }
  /// The first error of store, after which nothing is stored; OK if there was none.
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

/// Returns the build IDs of this program and of its LLVM and MLIR libraries. Empty if one of them has none.
std::string codeGeneratorBuild();

} // namespace bowline

#endif // BOWLINE_COMPILER_CODEGEN_KERNELCACHE_H
