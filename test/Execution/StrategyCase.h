//===- StrategyCase.h - A model, and how ranks divide the work on it
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_EXECUTION_STRATEGYCASE_H
#define BOWLINE_TEST_EXECUTION_STRATEGYCASE_H

#include "test/Execution/RankHarness.h"
#include "test/Unit/Sharding/ShardedModel.h"

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace bowline::test {

/// Also as text, to be repeated from a command line: "model=llama-tiny mesh=dp=2,tp=2 zero=1".
struct StrategyCase {
  std::string model = "llama-tiny", mesh = "";
  int64_t microbatches = 1;
  bool sequenceParallel = false;
  int64_t zero = 0;
  ModelSizes sizes = {};
  std::string recompute = "none", zeroAxis = "", schedule = "", optimizer = "adamw", dtype = "f32";
  double lr = 1e-3, clipNorm = 1;
  int64_t batch = 8, seq = 8;
  int64_t bucketBytes = 4096, prefetch = 1; // several buckets, though models are small: so they overlap
  bool overlap = true, zeroOnce = false;
  int64_t overlapChunks = 1;

  /// The same training on one rank.
  StrategyCase onOneRank() const;
  /// The settings that differ from the above, as `key=value` with spaces between.
  std::string text() const;
  /// None, with a line on stderr, where the text is not such a list.
  static std::optional<StrategyCase> parse(const std::string &text);
  /// The text with nothing but letters, digits and underscores, as tests may be called.
  std::string name() const;
};

/// How test reports show a case.
inline void PrintTo(const StrategyCase &strategy, std::ostream *os) { *os << strategy.text(); }

/// The plan that trains as the case says; on one rank where its mesh is empty. Null after a test failure. `remarks`
/// gets the compiler's remarks on the strategy.
std::unique_ptr<fbs::PlanT> compileStrategy(const StrategyCase &strategy, std::vector<std::string> *remarks = nullptr);

/// Random tokens of a vocabulary. Null after a test failure.
std::unique_ptr<TokenDataset> randomDataset(int64_t vocabulary);

/// How far two trainings may be apart, relative.
struct TrainingTolerance {
  double loss = 1e-4, gradNorm = 1e-4;
};

/// As many steps, whose losses and gradient norms agree and whose learning rates are equal. Otherwise adds a test
/// failure.
void expectSameTraining(const std::vector<StepResult> &actual, const std::vector<StepResult> &expected,
                        TrainingTolerance tolerance = {});

/// Trains for `steps` steps on one rank in f32 and on those of the mesh, and expects the same training; in bf16, as far
/// as bf16 can be. Adds a test failure where trainOnRanks does, too. The plan for the mesh, null after some failures,
/// and the compiler's remarks.
std::unique_ptr<fbs::PlanT> expectTrainsAsOneRank(const StrategyCase &strategy, int steps,
                                                  std::vector<std::string> *remarks = nullptr);

/// Trains a plan with tokens of randomDataset(vocabulary) for `steps` steps, and evaluates after each, by the driver
/// that it names and by another, and expects the same bits of all results and states. Otherwise adds a test failure.
void expectTrainsAlikeOn(const std::string &driver, fbs::PlanT &plan, int64_t vocabulary, int steps);

} // namespace bowline::test

#endif // BOWLINE_TEST_EXECUTION_STRATEGYCASE_H
