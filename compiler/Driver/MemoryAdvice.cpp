//===- MemoryAdvice.cpp - Choices of a strategy that do not pay
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/MemoryAdvice.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/Driver/MemoryReport.h"

#include <cmath>

using namespace bowline;

/// Parts of a rank's memory below which a saving does not pay, and above which a plan contradicts the formulas.
static constexpr double kLeastSaving = 0.02, kMostDifference = 0.10;

namespace {

class Advice {
public:
  Advice(const MemoryInputs &inputs, uint64_t arenaBytes, const PrefetchSeconds &prefetch)
      : shape(inputs.shape), strategy(inputs.strategy), arenaBytes(arenaBytes), prefetch(prefetch),
        bytes(predictedBytes(shape, strategy)) {}

  std::vector<std::string> take() {
    adviseOnRecompute();
    adviseOnZero();
    adviseOnSequence();
    adviseOnPrefetch();
    adviseOnType();
    adviseOnPlan();
    return std::move(sentences);
  }

private:
  /// Bytes of the rank that needs the most, of a strategy that differs by \p change.
  template <typename Change> int64_t bytesWith(Change change) const {
    MemoryStrategy other = strategy;
    change(other);
    return predictedBytes(shape, other);
  }

  bool saves(int64_t without) const {
    return static_cast<double>(without - bytes) >= kLeastSaving * static_cast<double>(without);
  }

  /// "saves 1.0 MiB of 1.0 GiB (0.1 %)", or that it saves nothing.
  std::string describeSaving(int64_t without) const {
    if (bytes >= without)
      return absl::StrCat("saves nothing: a rank needs ", formatBytes(bytes), " with it and ", formatBytes(without),
                          " without");
    return absl::StrFormat("saves %s of %s (%.1f %%)", formatBytes(without - bytes), formatBytes(without),
                           100.0 * static_cast<double>(without - bytes) / static_cast<double>(without));
  }

  void adviseOnRecompute() {
    if (strategy.recompute == RecomputeLevel::None)
      return;
    const int64_t without = bytesWith([](MemoryStrategy &other) { other.recompute = RecomputeLevel::None; });
    if (!saves(without))
      say(strategy.recompute == RecomputeLevel::Full ? "--recompute full" : "--recompute selective",
          describeSaving(without), "its work does not pay; use --recompute none");
  }

  void adviseOnZero() {
    if (strategy.zero < 2)
      return;
    const int64_t lower = strategy.zero - 1;
    const int64_t without = bytesWith([&](MemoryStrategy &other) { other.zero = lower; });
    if (!saves(without))
      say(absl::StrCat("--zero ", strategy.zero), describeSaving(without),
          absl::StrCat(strategy.zero == 2 && strategy.microbatches == 1
                           ? "gradients of one microbatch are scattered at once with either level"
                           : "other rows prevail",
                       "; use --zero ", lower));
  }

  void adviseOnSequence() {
    if (!strategy.isSequenceParallel)
      return;
    const int64_t without = bytesWith([](MemoryStrategy &other) { other.isSequenceParallel = false; });
    if (!saves(without))
      say("--sequence-parallel", describeSaving(without), "it pays by other than memory, or not at all");
  }

  /// A gather that is hidden behind one product gains nothing from a second one.
  void adviseOnPrefetch() {
    if (strategy.zero < 3 || strategy.prefetch < 2 || prefetch.gather > prefetch.product)
      return;
    const int64_t one = bytesWith([](MemoryStrategy &other) { other.prefetch = 1; });
    if (bytes > one)
      say(absl::StrCat("--prefetch ", strategy.prefetch),
          absl::StrCat("takes ", formatBytes(bytes - one), " more than --prefetch 1"),
          absl::StrFormat("the gather of a matrix of an MLP (%.3g ms) is hidden behind one product (%.3g ms) already; "
                          "use --prefetch 1",
                          1e3 * prefetch.gather, 1e3 * prefetch.product));
  }

  void adviseOnType() {
    if (!strategy.isBf16)
      return;
    const int64_t wide = bytesWith([](MemoryStrategy &other) { other.isBf16 = false; });
    if (bytes > wide)
      say("--dtype bf16",
          absl::StrCat("takes ", formatBytes(bytes - wide), " more than f32, which needs ", formatBytes(wide)),
          "rounded copies of weights take more memory than narrower activations save; it pays by its speed alone");
  }

  void adviseOnPlan() {
    const double ratio = static_cast<double>(arenaBytes) / static_cast<double>(bytes);
    if (std::abs(ratio - 1) > kMostDifference)
      sentences.push_back(absl::StrFormat("memory: the plan needs %s, %.0f %% %s than the formulas of docs/memory.md, "
                                          "which say %s; the page has the known reasons, and small models have others",
                                          formatBytes(arenaBytes), 100 * std::abs(ratio - 1),
                                          ratio > 1 ? "more" : "less", formatBytes(bytes)));
  }

  void say(const std::string &choice, const std::string &numbers, const std::string &reason) {
    sentences.push_back(absl::StrCat(choice, " ", numbers, " by the formulas of docs/memory.md; ", reason));
  }

  const LayeredShape &shape;
  const MemoryStrategy &strategy;
  uint64_t arenaBytes;
  PrefetchSeconds prefetch;
  int64_t bytes;
  std::vector<std::string> sentences;
};

} // namespace

std::vector<std::string> bowline::adviseOnMemory(const MemoryInputs &inputs, uint64_t arenaBytes,
                                                 const PrefetchSeconds &prefetch) {
  return Advice(inputs, arenaBytes, prefetch).take();
}
