//===- StrategyCase.h - A model, and how ranks divide the work on it
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_EXECUTION_STRATEGYCASE_H
#define BOWLINE_TEST_EXECUTION_STRATEGYCASE_H

#include "test/Unit/Sharding/ShardedModel.h"

#include <optional>
#include <ostream>
#include <string>

namespace bowline::test {

/// Also as text, to be repeated from a command line: "model=llama-tiny mesh=dp=2,tp=2 zero=1".
struct StrategyCase {
  std::string model = "llama-tiny", mesh = "";
  int64_t microbatches = 1;
  bool sequenceParallel = false;
  int64_t zero = 0;
  ModelSizes sizes;
  std::string recompute = "none", zeroAxis = "", schedule = "", optimizer = "adamw";
  int64_t batch = 8, seq = 8;
  int64_t bucketBytes = 4096, prefetch = 1; // several buckets, though models are small: so they overlap

  /// What differs from the above, as `key=value` with spaces between.
  std::string text() const;
  /// None, with a line on stderr, where the text is not such a list.
  static std::optional<StrategyCase> parse(const std::string &text);
  /// The text with nothing but letters, digits and underscores, as tests may be called.
  std::string name() const;
};

/// How test reports show a case.
inline void PrintTo(const StrategyCase &strategy, std::ostream *os) { *os << strategy.text(); }

/// Trains for `steps` steps on one rank and on those of the mesh: losses and gradient norms agree within 1e-4,
/// relative, and learning rates are equal. Adds a test failure where they do not, or where trainOnRanks does.
void expectTrainsAsOneRank(const StrategyCase &strategy, int steps);

} // namespace bowline::test

#endif // BOWLINE_TEST_EXECUTION_STRATEGYCASE_H
