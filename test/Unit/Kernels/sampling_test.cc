#include <array>
#include <limits>
#include <map>

#include "kernels/cpu/sampling/logits_row.h"
#include "kernels/cpu/sampling/sampling_reference.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Kernels/kernel_testing.h"

namespace bowline::kernels::testing {
namespace {

using Ints32 = std::vector<int32_t>;

// A row with a workspace of its own.
class Row {
 public:
  explicit Row(Floats logits)
      : logits_(std::move(logits)), workspace_(LogitsWorkspaceBytes(static_cast<int64_t>(logits_.size())) / 8) {}
  LogitsRow operator*() { return {logits_, workspace_.data()}; }
  const Floats& logits() const { return logits_; }

  int64_t Sample(double temperature, const TokenLimits& limits, uint64_t seed, uint64_t draw) {
    return (**this).Sample(temperature, limits, seed, draw);
  }
  std::vector<int64_t> MostLikely(int64_t count) {
    std::vector<int64_t> tokens;
    for (const LogitsRow::Candidate& candidate : (**this).MostLikely(count)) tokens.push_back(candidate.token);
    return tokens;
  }

 private:
  Floats logits_;
  std::vector<double> workspace_;
};

// Logits as models have them: a few large ones; every other row has many equal ones.
Floats RandomLogits(std::mt19937_64& random, int64_t count, bool has_ties) {
  std::normal_distribution<float> normal(0, 3);
  Floats logits(count);
  for (float& logit : logits) {
    logit = normal(random);
    if (has_ties) logit = std::floor(logit);
  }
  return logits;
}

constexpr int64_t kVocabularies[] = {1, 2, 31, 64, 511, 512, 513, 1024, 5000, 49152};
constexpr double kTemperatures[] = {0, 0.1, 0.7, 1, 2.5};
constexpr TokenLimits kLimits[] = {{},        {1, 1},      {40, 1},   {0, 0.9},   {0, 0.999}, {0, 0},
                                   {40, 0.5}, {2000, 0.9}, {7, 1e-9}, {50000, 1}, {3, 0},     {50000, 0.95}};

using SamplingTest = IsaTest;
INSTANTIATE_TEST_SUITE_P(Isa, SamplingTest, AllIsas(), IsaName);

TEST_P(SamplingTest, TokensAreThoseOfTheReference) {
  std::mt19937_64 random(1);
  for (const int64_t count : kVocabularies) {
    for (const bool has_ties : {false, true}) {
      Row row(RandomLogits(random, count, has_ties));
      ASSERT_TRUE((*row).is_finite());
      for (const double temperature : kTemperatures) {
        for (const TokenLimits& limits : kLimits) {
          const uint64_t seed = random(), draw = random() % 100000;
          EXPECT_EQ(row.Sample(temperature, limits, seed, draw),
                    reference::SampleToken(row.logits(), temperature, limits, seed, draw))
              << count << " logits, temperature " << temperature << ", top_k " << limits.top_k << ", top_p "
              << limits.top_p << ", ties " << has_ties;
        }
      }
      for (const int64_t likely : {0, 1, 5, 20, 700}) {
        EXPECT_EQ(row.MostLikely(likely), reference::MostLikelyTokens(row.logits(), likely)) << count;
      }
      for (const int64_t token : {int64_t{0}, count / 2, count - 1}) {
        const double expected = reference::LogProbability(row.logits(), token);
        // Each exponential is off by two units in the last place, and a sum of parts by less than the number of them.
        EXPECT_NEAR((*row).LogProbability(token), expected, 1e-13 * (1 + std::abs(expected)));
      }
    }
  }
}

TEST_P(SamplingTest, UniformNumbersNearTheEndsGiveTokensOfSomeProbability) {
  // Many draws of few tokens among many of none: those that sums do not reach are never drawn.
  Floats logits(3000, -1e30F);
  logits[1] = logits[600] = logits[2999] = 0;
  Row row(logits);
  std::map<int64_t, int> counts;
  for (uint64_t draw = 0; draw < 3000; ++draw) ++counts[row.Sample(1, {}, TestSeed(), draw)];
  EXPECT_EQ(counts.size(), 3u);
  // Binomial of 3000 and 1/3: beyond 6 standard deviations of 26.
  for (const int64_t token : {1, 600, 2999}) EXPECT_NEAR(counts[token], 1000, 156) << token;
}

TEST_P(SamplingTest, ExtremesNeitherOverflowNorDivideByZero) {
  Row peak({1, 3, 2, -3e38F}), ends({3e38F, -3e38F}), ties({1, 3, 3, 2});
  EXPECT_EQ(ties.Sample(0, {}, 1, 1), 1);
  EXPECT_EQ(ties.Sample(-1, {}, 1, 1), 1);
  for (uint64_t draw = 0; draw < 100; ++draw) {
    EXPECT_EQ(peak.Sample(1e-300, {}, 1, draw), 1);
    EXPECT_EQ(peak.Sample(5e-324, {}, 1, draw), 1);
    EXPECT_EQ(peak.Sample(5e-324, {2, 0.9}, 1, draw), 1);
    EXPECT_LT(ends.Sample(1e300, {}, 1, draw), 2);
    for (const int64_t top_k : {0, 3}) {
      EXPECT_EQ(peak.Sample(1, {.top_k = top_k, .top_p = 0}, 1, draw), 1);
      EXPECT_EQ(peak.Sample(2, {.top_k = top_k, .top_p = 5e-324}, 1, draw), 1);
    }
  }
}

TEST_P(SamplingTest, PaddingIsNoToken) {
  std::mt19937_64 random(5);
  for (const int64_t count : {3, 100, 700}) {
    Row row(RandomLogits(random, count, false));
    Floats logits = row.logits();
    logits.insert(logits.end(), {kAbsentLogit, kAbsentLogit, -3e38F});
    Row padded(logits);
    for (const double temperature : {0.0, 1.0, 1e9}) {
      for (const TokenLimits& limits : {TokenLimits{}, TokenLimits{0, 0.9999}, TokenLimits{900, 1}}) {
        for (uint64_t draw = 0; draw < 50; ++draw) {
          EXPECT_EQ(padded.Sample(temperature, limits, 1, draw), row.Sample(temperature, limits, 1, draw));
        }
      }
    }
    EXPECT_EQ(padded.MostLikely(count + 2), row.MostLikely(count + 2));
    EXPECT_EQ((*padded).LogProbability(1), (*row).LogProbability(1));
  }
}

TEST_P(SamplingTest, FrequenciesAreThoseOfTheSoftmax) {
  Row row({0.5F, -1, 2, 0, 1.5F});
  constexpr int kDraws = 100'000;
  for (const double temperature : {0.5, 1.0, 3.0}) {
    std::vector<int> counts(row.logits().size());
    const uint64_t seed = TestSeed();
    for (int draw = 0; draw < kDraws; ++draw) ++counts[row.Sample(temperature, {}, seed, draw)];
    double sum = 0;
    for (const float logit : row.logits()) sum += std::exp(logit / temperature);
    double chi_squared = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      const double expected = kDraws * std::exp(row.logits()[i] / temperature) / sum;
      chi_squared += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    // Four degrees of freedom: beyond 50 with a probability of 4e-10.
    EXPECT_LT(chi_squared, 50) << "seed " << seed << ", temperature " << temperature;
  }
}

TEST_P(SamplingTest, WhatIsNotFiniteIsSeenWhereverItIs) {
  for (const int64_t count : {1, 17, 64, 1000}) {
    for (const float wrong : {NAN, INFINITY, -INFINITY}) {
      for (const int64_t place : {int64_t{0}, count / 2, count - 1}) {
        Floats logits(count, 3e38F);
        EXPECT_TRUE((*Row(logits)).is_finite());
        logits[place] = wrong;
        EXPECT_FALSE((*Row(logits)).is_finite()) << count << " " << place << " " << wrong;
      }
    }
  }
}

// --- The kernel -----------------------------------------------------------------------------------------------------

// Arguments of the kernel, with results that nobody has written.
struct Problem {
  Problem(int64_t rows, int64_t vocabulary, int64_t room) : rows(rows), vocabulary(vocabulary), room(room) {}

  Signature Of(int threads) const {
    return {"sample_tokens",
            {},
            {In({rows, vocabulary}), In({rows}), In({rows}, DType::kI32), In({rows}), In({rows, 2}, DType::kI32),
             In({rows}, DType::kI32), In({rows}, DType::kI32), Out({rows}, DType::kI32), Out({rows}),
             Out({rows, room}, DType::kI32), Out({rows, room})},
            threads};
  }
  void Run(int threads) {
    tokens.assign(rows, -7);
    logprobs.assign(rows, NAN);
    likely.assign(rows * room, -7);
    likely_logprobs.assign(rows * room, NAN);
    RunKernel(Of(threads),
              {logits.data(), temperature.data(), top_k.data(), top_p.data(), seeds.data(), positions.data(),
               wanted.data(), tokens.data(), logprobs.data(), likely.data(), likely_logprobs.data()});
  }

  int64_t rows, vocabulary, room;
  Floats logits, temperature, top_p;
  Ints32 top_k, seeds, positions, wanted;
  Ints32 tokens, likely;
  Floats logprobs, likely_logprobs;
};

Problem RandomProblem(std::mt19937_64& random, int64_t rows, int64_t vocabulary, int64_t room) {
  Problem p(rows, vocabulary, room);
  p.logits = RandomLogits(random, rows * vocabulary, random() % 2 == 0);
  for (int64_t row = 0; row < rows; ++row) {
    p.temperature.push_back(static_cast<float>(kTemperatures[random() % 5]));
    p.top_k.push_back(random() % 2 == 0 ? 0 : static_cast<int32_t>(random() % (vocabulary + 1)));
    p.top_p.push_back(random() % 2 == 0 ? 1.0F : static_cast<float>(random() % 1000) * 1e-3F);
    p.seeds.push_back(static_cast<int32_t>(random()));
    p.seeds.push_back(static_cast<int32_t>(random()));
    p.positions.push_back(static_cast<int32_t>(random() % 5000));
    p.wanted.push_back(static_cast<int32_t>(random() % (room + 2)));
  }
  return p;
}

void ExpectNothing(const Problem& p, int64_t row) {
  EXPECT_EQ(p.tokens[row], -1);
  EXPECT_EQ(p.logprobs[row], 0);
  for (int64_t k = 0; k < p.room; ++k) {
    EXPECT_EQ(p.likely[row * p.room + k], -1);
    EXPECT_EQ(p.likely_logprobs[row * p.room + k], 0);
  }
}

// Expects the results of the reference functions, with which the host sampled before there was a kernel.
void ExpectReference(const Problem& p, int64_t row) {
  if (p.wanted[row] == 0) return ExpectNothing(p, row);
  const absl::Span<const float> logits = absl::MakeConstSpan(p.logits).subspan(row * p.vocabulary, p.vocabulary);
  const uint64_t seed =
      static_cast<uint32_t>(p.seeds[2 * row]) | (uint64_t{static_cast<uint32_t>(p.seeds[2 * row + 1])} << 32);
  const int64_t token = reference::SampleToken(logits, p.temperature[row],
                                               {.top_k = p.top_k[row], .top_p = p.top_p[row]}, seed, p.positions[row]);
  EXPECT_EQ(p.tokens[row], token);
  const double logprob = reference::LogProbability(logits, token);
  EXPECT_FLOAT_EQ(p.logprobs[row], static_cast<float>(logprob));
  const std::vector<int64_t> expected = reference::MostLikelyTokens(logits, p.wanted[row] - 1);
  for (int64_t k = 0; k < p.room; ++k) {
    const bool is_listed = k < static_cast<int64_t>(expected.size());
    EXPECT_EQ(p.likely[row * p.room + k], is_listed ? expected[k] : -1);
    const double above = is_listed ? logprob + logits[expected[k]] - logits[token] : 0;
    EXPECT_NEAR(p.likely_logprobs[row * p.room + k], above, 1e-6 * (1 + std::abs(above)));
  }
}

TEST_P(SamplingTest, TheKernelGivesWhatTheReferenceGivesForEveryNumberOfThreads) {
  std::mt19937_64 random(2);
  for (const auto& [rows, vocabulary, room] :
       {std::array<int64_t, 3>{1, 1, 1}, {3, 7, 20}, {64, 300, 20}, {5, 1025, 3}, {9, 20000, 20}}) {
    Problem p = RandomProblem(random, rows, vocabulary, room);
    p.Run(1);
    for (int64_t row = 0; row < rows; ++row) {
      SCOPED_TRACE(::testing::Message() << "row " << row << " of " << vocabulary << " logits");
      ExpectReference(p, row);
    }
    for (const int threads : {2, 3, 4}) {
      Problem other = p;
      other.Run(threads);
      EXPECT_EQ(other.tokens, p.tokens);
      EXPECT_EQ(other.likely, p.likely);
      EXPECT_TRUE(SameBits(other.logprobs, p.logprobs) && SameBits(other.likely_logprobs, p.likely_logprobs));
    }
  }
}

TEST_P(SamplingTest, RowsAreApart) {
  std::mt19937_64 random(3);
  Problem p = RandomProblem(random, 4, 600, 2);
  p.wanted = {3, 0, 1, 2};
  p.logits[2 * 600 + 599] = std::numeric_limits<float>::infinity();
  // Not read: no token is wanted there.
  p.logits[600] = std::numeric_limits<float>::quiet_NaN();
  p.Run(2);
  ExpectReference(p, 0);
  ExpectNothing(p, 1);
  ExpectNothing(p, 2);
  ExpectReference(p, 3);
}

TEST_P(SamplingTest, ValuesOutOfRangeCountAsTheNearestThatAreNot) {
  std::mt19937_64 random(4);
  Problem p = RandomProblem(random, 2, 600, 2), nearest = p;
  p.temperature = {-3, NAN};
  nearest.temperature = {0, 0};
  p.top_k = {-5, 1 << 30};
  nearest.top_k = {0, 600};
  p.top_p = {7, -1};
  nearest.top_p = {1, 0};
  p.wanted = {9, -4};
  nearest.wanted = {3, 0};
  p.Run(1);
  nearest.Run(1);
  EXPECT_EQ(p.tokens, nearest.tokens);
  EXPECT_EQ(p.likely, nearest.likely);
}

TEST(SampleTokens, RefusesWrongSignatures) {
  const Signature right = Problem(3, 50, 4).Of(1);
  ASSERT_TRUE(CreateKernel(right).ok());
  constexpr const char* kNames[] = {"logits", "temperature", "top_k",    "top_p",  "seeds",          "positions",
                                    "wanted", "tokens",      "logprobs", "likely", "likely_logprobs"};
  for (size_t i = 1; i < 11; ++i) {
    Signature bad = right;
    bad.arguments[i].shape[0] = 4;
    ExpectRefused(bad, std::string("'") + kNames[i] + "'");
    bad = right;
    bad.arguments[i].dtype = DType::kBF16;
    ExpectRefused(bad, kNames[i]);
  }
  Signature bad = right;
  bad.arguments[4].shape[1] = 3;
  ExpectRefused(bad, "two words for each row");
  bad = right;
  bad.arguments[10].shape[1] = 3;
  ExpectRefused(bad, "'likely_logprobs'");
  bad = right;
  bad.arguments[0].shape[1] = int64_t{1} << 31;
  ExpectRefused(bad, "more than 2^31 - 1 logits");
  bad = right;
  bad.attributes = {Int("likely", 4)};
  ExpectRefused(bad, "likely");
}

}  // namespace
}  // namespace bowline::kernels::testing
