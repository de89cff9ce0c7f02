//===- ServePlanFixture.h - Steps over a paged cache beside whole sequences
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_EXECUTION_SERVEPLANFIXTURE_H
#define BOWLINE_TEST_EXECUTION_SERVEPLANFIXTURE_H

#include "checker/PlanChecker.h"
#include "compiler/Driver/Compile.h"
#include "kernels/cpu/sampling/sampling_reference.h"
#include "runtime/comm/loopback/loopback_group.h"
#include "runtime/plan/plan_writer.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/train/weights.h"
#include "test/Support/test_driver.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Runtime/session_tensors.h"
#include "types/cache_rows.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>
#include <tuple>

namespace bowline::serve_plan {

using ::bowline::testing::ReadTensor;
using ::bowline::testing::WriteTensor;

// The last block of a table has room for a token more than a sequence has.
constexpr int64_t kContext = 23, kSequences = 3, kBlockTokens = 4, kBlocks = 20;
constexpr int64_t kListed = (kContext + kBlockTokens - 1) / kBlockTokens;
inline const std::vector<int64_t> kBuckets = {1, 5, 16};

struct Way {
  std::string model;
  std::string cacheType = "f32", target = {}, driver = {}, mesh = {};
};

inline void PrintTo(const Way &way, std::ostream *os) {
  *os << way.model << ", caches of " << way.cacheType << (way.driver.empty() ? "" : " on " + way.driver) << ' '
      << way.mesh;
}

inline CompileOptions optionsOf(const Way &way, CompileMode mode) {
  CompileOptions options;
  options.model = BOWLINE_TEST_DIR "/Models/" + way.model;
  options.mode = mode;
  options.seq = mode == CompileMode::Serve ? 0 : kContext;
  options.buckets = kBuckets;
  options.maxBatch = kSequences;
  options.maxContext = kContext;
  options.blockTokens = kBlockTokens;
  options.cacheBlocks = kBlocks;
  options.cacheType = way.cacheType;
  options.withLogits = mode == CompileMode::Serve;
  options.target = way.target;
  options.strategy.mesh = way.mesh;
  options.threads = 1;
  return options;
}

/// The bytes of a plan in memory; nothing after a test failure.
inline std::vector<uint8_t> bytesOf(fbs::PlanT &plan) {
  auto bytes = WritePlan(plan);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? std::vector<uint8_t>(bytes->data(), bytes->data() + bytes->size()) : std::vector<uint8_t>();
}

inline std::unique_ptr<fbs::PlanT> compile(const CompileOptions &options) {
  absl::StatusOr<CompileResult> compiled = compileModel(options);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return compiled.ok() ? std::move(compiled->plan) : nullptr;
}

inline std::unique_ptr<Session> sessionOf(const CompileOptions &options, const std::string &driver) {
  std::unique_ptr<fbs::PlanT> made = compile(options);
  if (!made)
    return nullptr;
  auto plan = LoadedPlan::FromBytes(bytesOf(*made));
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok())
    return nullptr;
  PlanChecker checker(plan->plan());
  absl::Status sound = checker.check();
  EXPECT_TRUE(sound.ok()) << sound;
  auto session = Session::Create(std::move(*plan), {.driver = TestDriver(driver)});
  EXPECT_TRUE(session.ok()) << session.status();
  if (!session.ok())
    return nullptr;
  auto loaded = LoadWeights(**session, options.model);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return std::move(*session);
}

/// The logits behind each token of a sequence, which a plan for generating computes whole.
inline std::vector<std::vector<float>> wholeLogits(Session &session, std::vector<int32_t> tokens) {
  auto count = static_cast<int32_t>(tokens.size());
  tokens.resize(kContext, 0);
  std::vector<std::vector<float>> logits;
  for (int32_t position = 0; position < count; ++position) {
    WriteTensor(session, session.Input("generate", "tokens"), tokens);
    WriteTensor<int32_t>(session, session.Input("generate", "position"), {position});
    absl::Status status = session.Run("generate");
    EXPECT_TRUE(status.ok()) << status;
    logits.push_back(ReadTensor<float>(session, session.Output("generate", "logits")));
  }
  return logits;
}

inline const std::string kWholeStep = "step_" + std::to_string(kContext);

/// The same of a plan for serving whose step has room for the sequence. All its tokens are in one step, whose cache the
/// session has afterwards in the blocks from 1 on.
inline std::vector<std::vector<float>> logitsOfWholeSteps(Session &session, std::vector<int32_t> tokens) {
  auto count = static_cast<int32_t>(tokens.size());
  tokens.resize(kContext, 7);
  std::vector<int32_t> table(kSequences * kListed, 0);
  std::iota(table.begin(), table.begin() + kListed, 1);
  const std::vector<int32_t> none(kSequences, 0);
  std::vector<std::vector<float>> logits;
  for (int32_t position = 0; position < count; ++position) {
    std::vector<int32_t> rows(kSequences + 1, position + 1), lengths = none, sample = none;
    rows[0] = 0;
    lengths[0] = position + 1;
    sample[0] = position;
    WriteTensor(session, session.Input(kWholeStep, "tokens"), tokens);
    WriteTensor(session, session.Input(kWholeStep, "blocks"), table);
    for (const char *port : {"top_k", "wanted"})
      WriteTensor(session, session.Input(kWholeStep, port), none);
    for (const char *port : {"temperature", "top_p"})
      WriteTensor(session, session.Input(kWholeStep, port), std::vector<float>(kSequences, 1));
    WriteTensor(session, session.Input(kWholeStep, "seeds"), std::vector<int32_t>(2 * kSequences, 0));
    WriteTensor(session, session.Input(kWholeStep, "rows"), rows);
    WriteTensor(session, session.Input(kWholeStep, "lengths"), lengths);
    WriteTensor(session, session.Input(kWholeStep, "sample"), sample);
    absl::Status status = session.Run(kWholeStep);
    EXPECT_TRUE(status.ok()) << status;
    logits.push_back(ReadTensor<float>(session, session.Output(kWholeStep, "logits")));
    logits.back().resize(logits.back().size() / kSequences); // those of the only sequence
  }
  return logits;
}

/// The caches of a plan, in the order of its buffers.
inline std::vector<TensorRef> cachesOf(Session &session) {
  std::vector<TensorRef> caches;
  for (uint32_t i = 0; i < session.plan().buffers()->size(); ++i)
    if (session.plan().buffers()->Get(i)->name()->str().find("cache.") == 0)
      caches.push_back(session.BufferAt(i));
  return caches;
}

/// Fills caches with 0xff: no result may depend on cells that no step has written.
inline void spoilCaches(Session &session) {
  for (const TensorRef &cache : cachesOf(session))
    WriteTensor(session, cache, std::vector<uint8_t>(cache.bytes, 0xff));
}

/// A row of a cache in int8: the values of one head of one token.
struct Int8Row {
  float scale = 0;
  std::vector<int8_t> elements;
};

/// The rows of a sequence in each cache, by position.
inline std::vector<std::vector<Int8Row>> cachedRows(Session &session, const std::vector<int32_t> &table,
                                                    int32_t length) {
  std::vector<std::vector<Int8Row>> all;
  for (const TensorRef &cache : cachesOf(session)) {
    std::vector<uint8_t> bytes = ReadTensor<uint8_t>(session, cache);
    int64_t heads = cache.shape[2], width = cache.shape[3];
    std::vector<Int8Row> &rows = all.emplace_back();
    for (int64_t position = 0; position < length; ++position)
      for (int64_t head = 0; head < heads; ++head) {
        int64_t token = table[position / kBlockTokens] * kBlockTokens + position % kBlockTokens;
        const uint8_t *from = &bytes[(token * heads + head) * width];
        Int8Row &row = rows.emplace_back();
        std::memcpy(&row.scale, from, kInt8ScaleBytes);
        row.elements.resize(width - kInt8ScaleBytes);
        std::memcpy(row.elements.data(), from + kInt8ScaleBytes, row.elements.size());
      }
  }
  return all;
}

/// The results of one step for a sequence over a cache in int8.
struct InOneStep {
  std::vector<std::vector<float>> logits;   ///< behind each token
  std::vector<std::vector<Int8Row>> caches; ///< as cachedRows() has them
};

struct Sequence {
  std::vector<int32_t> tokens;
  std::vector<std::vector<float>> logits; ///< behind each token
  InOneStep inOneStep;                    ///< over a cache in int8
  std::vector<int32_t> table = std::vector<int32_t>(kListed, 0);
  int32_t length = 0; ///< tokens that the cache holds
};

/// The inputs of a step.
struct StepInputs {
  std::vector<int32_t> tokens, rows = {0}, lengths, blocks, sample;
  std::vector<float> temperature, topP;
  std::vector<int32_t> topK, seeds, wanted;
};

class ServePlan : public ::testing::TestWithParam<Way> {
protected:
  void SetUp() override {
    whole = sessionOf(optionsOf({GetParam().model}, CompileMode::Generate), "");
    Way oneRank = GetParam();
    oneRank.mesh = {};
    session = sessionOf(optionsOf(oneRank, CompileMode::Serve), GetParam().driver);
    ASSERT_TRUE(whole && session);
    if (isInt8()) {
      CompileOptions options = optionsOf({GetParam().model, "int8"}, CompileMode::Serve);
      options.buckets = {kContext};
      wholeSteps = sessionOf(options, "");
      ASSERT_TRUE(wholeSteps);
      spoilCaches(*wholeSteps);
    }
    for (int32_t block = 1; block <= kBlocks; ++block)
      free.push_back(block);
    std::shuffle(free.begin(), free.end(), random);
    spoilCaches(*session);
    ASSERT_EQ(cachesOf(*session).size(), 4);
  }

  Sequence make(size_t length) {
    Sequence sequence;
    for (size_t i = 0; i < length; ++i)
      sequence.tokens.push_back(static_cast<int32_t>(random() % 250));
    expect(sequence);
    return sequence;
  }

  /// Computes the expected logits and caches of a sequence's tokens.
  void expect(Sequence &sequence) {
    sequence.logits = wholeLogits(*whole, sequence.tokens);
    if (!wholeSteps)
      return;
    std::vector<int32_t> table(kListed);
    std::iota(table.begin(), table.end(), 1);
    sequence.inOneStep.logits = logitsOfWholeSteps(*wholeSteps, sequence.tokens);
    sequence.inOneStep.caches = cachedRows(*wholeSteps, table, static_cast<int32_t>(sequence.tokens.size()));
  }

  static bool isInt8() { return GetParam().cacheType == "int8"; }

  /// Gives a sequence the blocks that so many more tokens need.
  void makeRoom(Sequence &sequence, int32_t more) {
    for (int64_t place = 0; place * kBlockTokens < sequence.length + more; ++place)
      if (sequence.table[place] == 0) {
        ASSERT_FALSE(free.empty());
        sequence.table[place] = free.back();
        free.pop_back();
      }
  }

  /// The inputs of a step that computes `counts[i]` more tokens of each sequence. The step has `bucket` tokens.
  StepInputs inputsOf(int64_t bucket, const std::vector<Sequence *> &sequences, const std::vector<int32_t> &counts) {
    StepInputs inputs;
    size_t most = std::min(bucket, kSequences);
    for (size_t i = 0; i < most; ++i) {
      int32_t count = i < sequences.size() ? counts[i] : 0;
      const Sequence *sequence = i < sequences.size() ? sequences[i] : nullptr;
      for (int32_t k = 0; k < count; ++k)
        inputs.tokens.push_back(sequence->tokens[sequence->length + k]);
      inputs.rows.push_back(inputs.rows.back() + count);
      inputs.lengths.push_back(sequence ? sequence->length + count : 0);
      inputs.sample.push_back(count > 0 ? inputs.rows.back() - 1 : 0);
      inputs.temperature.push_back(static_cast<float>(random() % 4) * 0.5F);
      inputs.topP.push_back(random() % 2 == 0 ? 1.0F : 0.8F);
      inputs.topK.push_back(random() % 2 == 0 ? 0 : 9);
      for (int half = 0; half < 2; ++half)
        inputs.seeds.push_back(static_cast<int32_t>(random()));
      inputs.wanted.push_back(static_cast<int32_t>(random() % 22));
      std::vector<int32_t> none(kListed, 0);
      const std::vector<int32_t> &table = sequence ? sequence->table : none;
      inputs.blocks.insert(inputs.blocks.end(), table.begin(), table.end());
    }
    inputs.tokens.resize(bucket, 7); // padding, of whatever tokens
    return inputs;
  }

  static std::string entryOf(int64_t bucket) { return "step_" + std::to_string(bucket); }

  void write(int64_t bucket, const StepInputs &inputs) {
    writeTo(*session, bucket, inputs);
    written = inputs;
  }

  static void writeTo(Session &session, int64_t bucket, const StepInputs &inputs) {
    std::string entry = entryOf(bucket);
    WriteTensor(session, session.Input(entry, "tokens"), inputs.tokens);
    WriteTensor(session, session.Input(entry, "rows"), inputs.rows);
    WriteTensor(session, session.Input(entry, "lengths"), inputs.lengths);
    WriteTensor(session, session.Input(entry, "blocks"), inputs.blocks);
    WriteTensor(session, session.Input(entry, "sample"), inputs.sample);
    WriteTensor(session, session.Input(entry, "temperature"), inputs.temperature);
    WriteTensor(session, session.Input(entry, "top_k"), inputs.topK);
    WriteTensor(session, session.Input(entry, "top_p"), inputs.topP);
    WriteTensor(session, session.Input(entry, "seeds"), inputs.seeds);
    WriteTensor(session, session.Input(entry, "wanted"), inputs.wanted);
  }

  /// Compares tokens with those that the reference draws from the step's own logits, as far as some are wanted.
  void expectTokens(int64_t bucket) {
    std::string entry = entryOf(bucket);
    std::vector<float> logits = ReadTensor<float>(*session, session->Output(entry, "logits"));
    std::vector<int32_t> tokens = ReadTensor<int32_t>(*session, session->Output(entry, "sampled"));
    std::vector<float> logprobs = ReadTensor<float>(*session, session->Output(entry, "logprobs"));
    std::vector<int32_t> likely = ReadTensor<int32_t>(*session, session->Output(entry, "likely"));
    ASSERT_EQ(likely.size(), tokens.size() * 20);
    size_t width = logits.size() / tokens.size();
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (written.wanted[i] == 0) {
        EXPECT_EQ(tokens[i], -1);
        continue;
      }
      absl::Span<const float> own = absl::MakeConstSpan(logits).subspan(i * width, width);
      uint64_t seed =
          static_cast<uint32_t>(written.seeds[2 * i]) | uint64_t{static_cast<uint32_t>(written.seeds[2 * i + 1])} << 32;
      EXPECT_EQ(tokens[i], kernels::reference::SampleToken(own, written.temperature[i],
                                                           {.top_k = written.topK[i], .top_p = written.topP[i]}, seed,
                                                           written.lengths[i]));
      EXPECT_FLOAT_EQ(logprobs[i], static_cast<float>(kernels::reference::LogProbability(own, tokens[i])));
      std::vector<int64_t> expected = kernels::reference::MostLikelyTokens(own, written.wanted[i] - 1);
      expected.resize(20, -1);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), likely.begin() + static_cast<ptrdiff_t>(20 * i)));
    }
  }

  /// Compares the logits behind the last token of each sequence that has some in the step.
  void expectLogits(int64_t bucket, const std::vector<Sequence *> &sequences, const std::vector<int32_t> &counts) {
    std::vector<float> logits = ReadTensor<float>(*session, session->Output(entryOf(bucket), "logits"));
    for (size_t i = 0; i < sequences.size(); ++i) {
      if (counts[i] == 0)
        continue;
      Sequence &sequence = *sequences[i];
      sequence.length += counts[i];
      std::string where = "after token " + std::to_string(sequence.length) + " of sequence " + std::to_string(i) +
                          " in a step of " + std::to_string(bucket);
      size_t count = sequence.logits[0].size();
      absl::Span<const float> got = absl::MakeConstSpan(logits).subspan(i * count, count);
      expectNear(got, sequence.logits[sequence.length - 1], &boundOfWhole, where);
      if (isInt8())
        expectNear(got, sequence.inOneStep.logits[sequence.length - 1],
                   differsFromOneStep(sequence, where) ? &boundOfOtherRows : &boundOfSums, where + ", beside one step");
    }
  }

  /// Logits may differ by as much as `bound` says of the largest of them.
  void expectNear(absl::Span<const float> got, absl::Span<const float> want, float (*bound)(float largest),
                  const std::string &where) const {
    ASSERT_EQ(got.size(), want.size());
    float largest = 0, worst = 0;
    for (size_t k = 0; k < want.size(); ++k) {
      if (static_cast<int64_t>(k) == ignoredLogit)
        continue;
      float difference = std::fabs(got[k] - want[k]);
      ASSERT_TRUE(std::isfinite(difference)) << "logit " << k << ' ' << where;
      largest = std::max(largest, std::fabs(want[k]));
      worst = std::max(worst, difference);
    }
    EXPECT_LE(worst, bound(largest)) << where;
  }

  /// Returns whether some element of the sequence's cache in int8 differs from one step's. Adds test failures where
  /// other orders of sums do not explain that.
  ///
  /// Keys and values of the first layer depend on no cache. With u = 2^-24, one is a sum of fewer than 64 products of
  /// normed inputs, rotated: each way is off by 2^7 u times the sum of the products' magnitudes at most, which let be
  /// 2^5 times the largest element of the head. So two ways differ by 2^-11 of that, as the scale does, and quotients
  /// by 2 * 127 times as much, which is less than 2^-3: an element falls to its neighbour at most. Roundings are as
  /// often up as down, so that 2^7 of them mostly add up to less than 2^4, and quotients differ by 2^-6: one of 2^5
  /// elements is as near to a tie. So it is in the second layer, unless the first one differs.
  bool differsFromOneStep(const Sequence &sequence, const std::string &where) {
    std::vector<std::vector<Int8Row>> caches = cachedRows(*session, sequence.table, sequence.length);
    bool differs = false;
    for (size_t cache = 0; cache < caches.size(); ++cache) {
      int64_t elements = 0, moved = 0, far = 0;
      float offScale = 0;
      for (size_t i = 0; i < caches[cache].size(); ++i) {
        const Int8Row &got = caches[cache][i], &want = sequence.inOneStep.caches[cache][i];
        EXPECT_TRUE(std::isfinite(got.scale)) << where;
        offScale = std::max(offScale, std::fabs(got.scale - want.scale) / want.scale);
        for (size_t d = 0; d < got.elements.size(); ++d) {
          int apart = std::abs(got.elements[d] - want.elements[d]);
          ++elements;
          moved += apart > 0 ? 1 : 0;
          far += apart > 1 ? 1 : 0;
        }
      }
      if (cache < 2 || !differs) {
        EXPECT_LE(offScale, 0x1p-11F) << "of cache " << cache << ' ' << where;
        EXPECT_LE(moved, 1 + elements / 32) << "of " << elements << " elements of cache " << cache << ' ' << where;
        EXPECT_EQ(far, 0) << "elements of cache " << cache << ' ' << where;
      }
      differs = differs || moved > 0;
    }
    return differs;
  }

  /// Where elements of caches are equal, the order of sums is all that differs, and the last bits of scales.
  static float boundOfSums(float) { return 1e-4F; }

  /// In bf16 each key and value of two layers is off by 2^-9 of itself, a score by as much of the sum of its products'
  /// magnitudes, which is some times the score. In int8 each is off by 1/254 of the largest of its head, about 2^-8.
  /// How many times as much logits are off depends on the weights of all layers behind, for which products of norms say
  /// nothing of use: these bounds are chosen, the one of int8 above the 2^-5.8 (1 + largest) that was seen with seed 1.
  /// They show that a cache holds the right values; the close reference of int8 is one step over such a cache.
  static float boundOfWhole(float largest) {
    if (GetParam().cacheType == "f32")
      return boundOfSums(largest);
    return (isInt8() ? 0x1p-4F : 0x1p-5F) * (1 + largest);
  }

  /// Where an element fell to its neighbour, both are roundings of the same sequence still, each within boundOfWhole()
  /// of the values before rounding.
  static float boundOfOtherRows(float largest) { return 2 * boundOfWhole(largest); }

  void step(int64_t bucket, const std::vector<Sequence *> &sequences, const std::vector<int32_t> &counts) {
    for (size_t i = 0; i < sequences.size(); ++i)
      makeRoom(*sequences[i], counts[i]);
    if (HasFatalFailure())
      return;
    write(bucket, inputsOf(bucket, sequences, counts));
    absl::Status status = session->Run(entryOf(bucket));
    ASSERT_TRUE(status.ok()) << status;
    expectLogits(bucket, sequences, counts);
    if (ignoredLogit < 0)
      expectTokens(bucket);
    steps.push_back({bucket, written, ReadTensor<float>(*session, session->Output(entryOf(bucket), "logits"))});
  }

  struct Step {
    int64_t bucket;
    StepInputs inputs;
    std::vector<float> logits;
  };

  StepInputs written;        ///< the inputs of the last step
  std::vector<Step> steps;   ///< that were computed
  int64_t ignoredLogit = -1; ///< nobody looks at this one, and at tokens; -1: none
  std::unique_ptr<Session> whole, session, wholeSteps;
  std::vector<int32_t> free;
  std::mt19937 random{TestSeed()};
};

inline std::string nameOfWay(const ::testing::TestParamInfo<Way> &info) {
  std::string name = info.param.model + "_" + info.param.cacheType + (info.param.target.empty() ? "" : "_target") +
                     (info.param.driver.empty() ? "" : "_" + info.param.driver.substr(0, 8)) +
                     (info.param.mesh.empty() ? "" : "_" + info.param.mesh);
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

} // namespace bowline::serve_plan

#endif // BOWLINE_TEST_EXECUTION_SERVEPLANFIXTURE_H
