//===- CacheTest.cpp - Kernels on disk: the same bytes, damaged files, other processes, a bounded size
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Cpu/CpuCodegen.h"
#include "compiler/Codegen/KernelCache.h"
#include "compiler/Codegen/LowerToLLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "test/Unit/Base/temp_directory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

using namespace bowline;
namespace fs = std::filesystem;

namespace {

const char *kSource = R"(
func.func @first(%x: tensor<70xf32>) -> tensor<70xf32> {
  %r = graph.silu %x : tensor<70xf32>
  return %r : tensor<70xf32>
}
func.func @second(%x: tensor<3x70xf32>, %s: tensor<70xf32>) -> tensor<3x70xf32> {
  %r = graph.rms_norm %x, %s eps 1.0e-6 : (tensor<3x70xf32>, tensor<70xf32>) -> tensor<3x70xf32>
  return %r : tensor<3x70xf32>
}
)";

struct Compiled {
  std::vector<char> image;
  std::vector<KernelInfo> infos;
};

Compiled compile(std::shared_ptr<KernelCache> cache, const std::string &source = kSource,
                 const std::string &cpu = "x86-64-v3") {
  mlir::DialectRegistry registry;
  codegen::registerCodegenDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
  CpuTarget target;
  target.cpu = cpu;
  target.cache = std::move(cache);
  CpuCodegen codegen(target);
  Compiled result;
  for (auto function : module->getOps<mlir::func::FuncOp>()) {
    auto info = codegen.add(function);
    if (mlir::failed(info))
      return {};
    result.infos.push_back(*info);
  }
  if (auto image = codegen.finish(); mlir::succeeded(image))
    result.image = *image;
  return result;
}

void expectEqual(const Compiled &left, const Compiled &right) {
  EXPECT_FALSE(left.image.empty());
  EXPECT_TRUE(left.image == right.image);
  ASSERT_EQ(left.infos.size(), right.infos.size());
  for (auto [one, other] : llvm::zip_equal(left.infos, right.infos)) {
    EXPECT_EQ(one.symbol, other.symbol);
    EXPECT_EQ(one.parallelExtent, other.parallelExtent);
    EXPECT_EQ(one.inPlace, other.inPlace);
  }
}

class Cache : public testing::Test {
protected:
  std::shared_ptr<KernelCache> open(uint64_t limit = KernelCache::kDefaultLimit) {
    auto cache = KernelCache::open(folder, limit);
    EXPECT_TRUE(cache.ok()) << cache.status();
    return cache.ok() ? std::move(*cache) : nullptr;
  }
  std::vector<fs::path> files() {
    std::vector<fs::path> paths;
    for (const auto &entry : fs::directory_iterator(folder))
      paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  static std::string read(const fs::path &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const fs::path &path, const std::string &bytes) { std::ofstream(path, std::ios::binary) << bytes; }

  TempDirectory temporary;
  std::string folder = temporary.path() + "/some/where";
};

TEST_F(Cache, HitsAreTheBytesThatWouldBeCompiled) {
  Compiled without = compile(nullptr);
  auto first = open(), second = open();
  expectEqual(compile(first), without);
  EXPECT_EQ(first->hits(), 0);
  EXPECT_EQ(first->misses(), 2);
  expectEqual(compile(second), without);
  EXPECT_EQ(second->hits(), 2);
  EXPECT_EQ(second->misses(), 0);
  EXPECT_EQ(files().size(), 2U);
}

TEST_F(Cache, TheNameOfAKernelIsNotPartOfIt) {
  compile(open());
  std::string renamed = kSource;
  renamed.replace(renamed.find("@first"), 6, "@other");
  auto cache = open();
  Compiled result = compile(cache, renamed);
  EXPECT_EQ(cache->hits(), 2);
  EXPECT_EQ(result.infos[0].symbol, "other");
  expectEqual(result, compile(nullptr, renamed));
}

TEST_F(Cache, WhatDecidesTheCodeIsPartOfTheKey) {
  compile(open());
  auto cache = open();
  compile(cache, kSource, "x86-64-v2");
  EXPECT_EQ(cache->hits(), 0);
  std::string changed = kSource;
  changed.replace(changed.find("1.0e-6"), 6, "1.0e-5");
  compile(cache, changed);
  EXPECT_EQ(cache->hits(), 1);
  EXPECT_NE(cache->keyOf("ab", "c"), cache->keyOf("a", "bc"));
  EXPECT_FALSE(codeGeneratorBuild().empty());
}

TEST_F(Cache, DamagedEntriesAreCompiledAgain) {
  Compiled want = compile(open());
  const std::vector<fs::path> paths = files();
  const std::vector<std::string> good = {read(paths[0]), read(paths[1])};
  std::mt19937 generator(7);
  for (int round = 0; round < 60; ++round) {
    std::string bad = good[0];
    size_t at = generator() % bad.size();
    switch (round % 4) {
    case 0:
      bad[at] = static_cast<char>(bad[at] ^ (1 << generator() % 8));
      break;
    case 1:
      bad.resize(at);
      break;
    case 2:
      bad += "x";
      break;
    default:
      bad = good[1]; // sound, but another kernel
    }
    write(paths[0], bad);
    auto cache = open();
    expectEqual(compile(cache), want);
    EXPECT_EQ(cache->hits(), 1);
    EXPECT_EQ(cache->misses(), 1);
    EXPECT_EQ(read(paths[0]), good[0]) << "the entry was not replaced";
  }
}

TEST_F(Cache, ManyCompilersAtOnceAgree) {
  Compiled want = compile(nullptr);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    pid_t child = fork();
    if (child == 0) {
      bool same = true;
      for (int round = 0; round < 5; ++round) {
        auto cache = KernelCache::open(folder, /*limitBytes=*/round % 2 ? 1 : KernelCache::kDefaultLimit);
        same &= cache.ok() && compile(std::shared_ptr<KernelCache>(std::move(*cache))).image == want.image;
        // Removes entries that others are about to read.
        if (auto again = KernelCache::open(folder, 1); again.ok() && i == 0) {
          (*again)->store((*again)->keyOf("x", "y"), CachedKernel{});
          (*again)->trim();
        }
      }
      _exit(same ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(Cache, TheEntriesUsedLongestAgoGo) {
  constexpr size_t kBytes = 1000;
  auto cache = open(3500);
  std::vector<Sha256Digest> keys;
  for (int i = 0; i < 5; ++i) {
    keys.push_back(cache->keyOf(std::to_string(i), "t"));
    cache->store(keys.back(), CachedKernel{1, {}, std::string(kBytes - 80, 'o')});
    // Files of one moment have no order.
    fs::last_write_time(folder + "/" + ToHex(keys.back()) + ".kernel",
                        fs::file_time_type::clock::now() - std::chrono::hours(10 - i));
  }
  EXPECT_TRUE(cache->find(keys[0])); // now it is the youngest
  std::ofstream(folder + "/unrelated") << std::string(5000, 'u');
  cache->trim();
  for (int i : {0, 3, 4})
    EXPECT_TRUE(cache->find(keys[i])) << i;
  for (int i : {1, 2})
    EXPECT_FALSE(cache->find(keys[i])) << i;
  EXPECT_TRUE(fs::exists(folder + "/unrelated"));
}

TEST_F(Cache, FoldersThatCannotBeUsedAreRefusedWithAReason) {
  write(temporary.path() + "/file", "");
  auto cache = KernelCache::open(temporary.path() + "/file/cache");
  ASSERT_FALSE(cache.ok());
  EXPECT_NE(std::string(cache.status().message()).find("cannot make the folder"), std::string::npos) << cache.status();
}

TEST_F(Cache, AFolderThatVanishesIsOneProblemAndNoFailure) {
  auto cache = open();
  fs::remove_all(folder);
  expectEqual(compile(cache), compile(nullptr));
  EXPECT_FALSE(cache->problem().ok());
  cache->trim();
}

} // namespace
