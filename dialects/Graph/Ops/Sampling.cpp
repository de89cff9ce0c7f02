//===- Sampling.cpp - sample_tokens
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
#include "kernels/registry/philox.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;

LogicalResult SampleTokensOp::verify() {
  RankedTensorType logits = tensorType(getLogits()), likely = tensorType(getLikely());
  if (logits.getRank() != 2)
    return emitOpError("logits must have two dimensions, got ") << logits;
  int64_t rows = logits.getDimSize(0);
  for (Value value : {Value(getTemperature()), Value(getTopK()), Value(getTopP()), Value(getPositions()),
                      Value(getWanted()), Value(getTokens()), Value(getLogprobs())})
    if (tensorType(value).getShape() != ArrayRef<int64_t>{rows})
      return emitOpError("needs one element for each of the ") << rows << " rows of logits, got " << value.getType();
  if (tensorType(getSeeds()).getShape() != ArrayRef<int64_t>{rows, 2})
    return emitOpError("seeds must be two words for each of the ")
           << rows << " rows of logits, got " << getSeeds().getType();
  if (likely.getRank() != 2 || likely.getDimSize(0) != rows ||
      tensorType(getLikelyLogprobs()).getShape() != likely.getShape())
    return emitOpError("likely tokens and their logprobs must have two dimensions, equal ones, the first of ")
           << rows << ", got " << likely << " and " << getLikelyLogprobs().getType();
  for (Value value : {Value(getTemperature()), Value(getTopP()), Value(getLogprobs()), Value(getLikelyLogprobs())})
    if (getElementTypeOrSelf(value) != logits.getElementType())
      return emitOpError("temperature, top_p and logprobs must have the logits' element type, got ") << value.getType();
  return success();
}

namespace {
/// The logits of a row, in the order in which limits take them.
class FallingLogits {
public:
  explicit FallingLogits(ArrayRef<double> logits) : logits(logits), order(logits.size()) {
    std::iota(order.begin(), order.end(), 0);
    llvm::stable_sort(order, [&](int64_t a, int64_t b) { return logits[a] > logits[b]; });
  }

  ArrayRef<int64_t> indices() const { return order; }

  /// The token of probability softmax(logits / temperature) within the limits that the uniform number falls on.
  int64_t sample(double temperature, int64_t topK, double topP, double uniform) const {
    if (!(temperature > 0))
      return order.front();
    SmallVector<int64_t> within(order.begin(), order.begin() + (topK > 0 ? std::min<int64_t>(topK, order.size())
                                                                         : static_cast<int64_t>(order.size())));
    if (!(topP >= 1))
      within.resize(countReaching(within, temperature, topP));
    llvm::sort(within);
    double target = uniform * sumOf(within, temperature), reached = 0;
    for (int64_t token : within) {
      reached += weight(token, temperature);
      if (reached > target)
        return token;
    }
    return within.back();
  }

private:
  double weight(int64_t token, double temperature) const {
    return std::exp((logits[token] - logits[order.front()]) / temperature);
  }

  double sumOf(ArrayRef<int64_t> tokens, double temperature) const {
    double sum = 0;
    for (int64_t token : tokens)
      sum += weight(token, temperature);
    return sum;
  }

  /// How many of the first tokens have a share of the probability together; one at least.
  int64_t countReaching(ArrayRef<int64_t> tokens, double temperature, double share) const {
    double target = share * sumOf(tokens, temperature), reached = weight(tokens.front(), temperature);
    size_t count = 1;
    while (count < tokens.size() && reached < target)
      reached += weight(tokens[count++], temperature);
    return static_cast<int64_t>(count);
  }

  ArrayRef<double> logits;
  SmallVector<int64_t> order;
};
} // namespace

/// log(softmax(logits)[token]).
static double logProbability(ArrayRef<double> logits, int64_t token, const Arithmetic &a) {
  double maximum = logits.front(), sum = 0;
  for (double logit : logits)
    maximum = a.maximum(maximum, logit);
  for (double logit : logits)
    sum = a.add(sum, a.exp(a.subtract(logit, maximum)));
  return a.subtract(a.subtract(logits[token], maximum), a.log(sum));
}

/// The number of logits of tokens, from the first on.
static int64_t countTokens(ArrayRef<double> logits, ArrayRef<int64_t> falling, double absent) {
  const auto *end = llvm::partition_point(falling, [&](int64_t token) { return logits[token] > absent; });
  return end - falling.begin();
}

static uint64_t wordOf(double value) { return static_cast<uint32_t>(static_cast<int64_t>(value)); }

LogicalResult SampleTokensOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                        const Arithmetic &arithmetic) {
  // Numbers without an order are ordered by the numbers that stand for them: whichever token that gives, equal logits
  // give the same.
  const HostTensor &temperature = operands[1], &topK = operands[2], &topP = operands[3], &seeds = operands[4],
                   &positions = operands[5], &wanted = operands[6];
  int64_t rows = operands[0].shape[0], vocabulary = operands[0].shape[1], room = results[2].shape[1];
  llvm::fill(results[0].data, -1.0);
  llvm::fill(results[1].data, 0.0);
  llvm::fill(results[2].data, -1.0);
  llvm::fill(results[3].data, 0.0);
  // Infinite in an arithmetic that has no such number.
  double absent = arithmetic.number(absentLogit(tensorType(getLogits()).getElementType()));
  auto isNumber = [&](double logit) { return std::isfinite(logit) || logit == absent; };
  for (int64_t row = 0; row < rows; ++row) {
    ArrayRef<double> logits(&operands[0].data[row * vocabulary], vocabulary);
    if (wanted.data[row] <= 0 || !llvm::all_of(logits, isNumber))
      continue;
    FallingLogits falling(logits);
    uint64_t seed = wordOf(seeds.data[2 * row]) | wordOf(seeds.data[2 * row + 1]) << 32;
    double uniform = SamplingUniform(seed, static_cast<uint64_t>(static_cast<int64_t>(positions.data[row])));
    int64_t token =
        falling.sample(temperature.data[row], static_cast<int64_t>(topK.data[row]), topP.data[row], uniform);
    double logprob = logProbability(logits, token, arithmetic);
    results[0].data[row] = static_cast<double>(token);
    results[1].data[row] = logprob;
    int64_t tokens = countTokens(logits, falling.indices(), absent),
            count = std::min({static_cast<int64_t>(wanted.data[row]) - 1, room, tokens});
    for (auto [place, other] : llvm::enumerate(falling.indices().take_front(count))) {
      results[2].data[row * room + place] = static_cast<double>(other);
      results[3].data[row * room + place] = arithmetic.add(logprob, arithmetic.subtract(logits[other], logits[token]));
    }
  }
  return success();
}

bool SampleTokensOp::hasNeutralPadding() { return true; }
bool SampleTokensOp::padsWholeDims() { return true; }

void SampleTokensOp::requireNeutralPadding(PaddingContext &context) {
  if (context.dimOfOperand(0) == 1)
    context.require(0, absentLogit(tensorType(getLogits()).getElementType()));
}

FactorRule SampleTokensOp::factorRule() {
  using Kind = FactorRule::Kind;
  FactorRule rule;
  RankedTensorType logits = tensorType(getLogits());
  int64_t rows = rule.add(logits.getDimSize(0)), vocabulary = rule.add(logits.getDimSize(1), Kind::Blocked);
  int64_t words = rule.add(2, Kind::Blocked);
  int64_t likely = rule.add(tensorType(getLikely()).getDimSize(1), Kind::Blocked);
  FactorRule::TensorFactors each = {{rows}}, listed = {{rows}, {likely}};
  rule.operands = {{{rows}, {vocabulary}}, each, each, each, {{rows}, {words}}, each, each};
  rule.results = {each, each, listed, listed};
  return rule;
}

/// The exponentials of temperatures, and of logprobs.
double SampleTokensOp::flops() { return 4.0 * static_cast<double>(tensorType(getLogits()).getNumElements()); }

StringRef SampleTokensOp::kernelName() { return "sample_tokens"; }

DictionaryAttr SampleTokensOp::kernelConfig(bool) { return KernelConfig(getContext()).get(); }

LogicalResult SampleTokensOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use, ValueRange operands,
                                              SmallVectorImpl<Value> &results) {
  SmallVector<Type> types(use.results.begin(), use.results.end());
  auto op = SampleTokensOp::create(builder, types, operands);
  llvm::append_range(results, op->getResults());
  return success();
}
