//===- LayerTest.cpp - Reference semantics of norms, rope, attention, loss and random numbers
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gtest/gtest.h"

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using namespace bowline::test;

using Index = std::vector<int64_t>;
using Number = long double;
static constexpr int kRounds = 12;

static Number mean(int64_t count, function_ref<Number(int64_t)> value) {
  Number sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += value(i);
  return sum / count;
}

static Index with(Index index, size_t dim, int64_t value) {
  index[dim] = value;
  return index;
}

TEST(Layer, Gelu) {
  Random random;
  SCOPED_TRACE(random.trace());
  HostTensor x = random.reals(random.shape(3), -6, 6);
  for (GeluKind kind : {GeluKind::Erf, GeluKind::Tanh}) {
    OpHarness harness({{x}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      return GeluOp::create(b, x[0].getType(), kind, x[0]);
    });
    expectNear(harness.forward().front(), tensorOf(x.shape, [&](const Index &index) {
                 Number v = at(x, index), root = sqrtl(2 / std::numbers::pi_v<Number>);
                 return kind == GeluKind::Erf ? 0.5L * v * erfcl(-v / std::numbers::sqrt2_v<Number>)
                                              : 0.5L * v * (1 + tanhl(root * (v + 0.044715L * v * v * v)));
               }));
  }
}

TEST(Layer, Softcap) {
  Random random;
  SCOPED_TRACE(random.trace());
  HostTensor x = random.reals(random.shape(3), -100, 100);
  OpHarness harness({{x}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
    return SoftcapOp::create(b, x[0].getType(), x[0], APFloat(30.0));
  });
  expectNear(harness.forward().front(),
             tensorOf(x.shape, [&](const Index &index) { return 30 * tanhl(at(x, index) / 30.0L); }));
}

TEST(Layer, ValidRowsAreThoseBelowTheLastNumber) {
  Random random;
  SCOPED_TRACE(random.trace());
  HostTensor rows = random.reals({5, 2, 3});
  rows.data.back() = std::numeric_limits<double>::quiet_NaN(); // which is not zero times anything
  for (auto [last, valid] : {std::pair<double, int64_t>{3, 3}, {0, 0}, {-7, 0}, {4, 4}}) {
    HostTensor count({2});
    count.data = {9, last};
    OpHarness harness({{rows}, {count, ElementKind::I32}}, [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      return ValidRowsOp::create(b, x[0], x[1]);
    });
    expectNear(harness.forward().front(), tensorOf(rows.shape, [&](const Index &index) -> Number {
                 return index[0] < valid ? at(rows, index) : 0;
               }));
  }
}

TEST(Layer, GroupedDotMultipliesEachRowWithTheMatrixOfItsGroup) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (bool transposed : {false, true}) {
    // Rows 0 and 7 are of no group, the third group has no rows, and the last matrix no group.
    HostTensor rows = random.reals({8, 3}), matrices = random.reals(transposed ? Shape{5, 4, 3} : Shape{5, 3, 4});
    HostTensor offsets({5});
    offsets.data = {1, 3, 4, 4, 7};
    const int64_t groupOf[] = {-1, 0, 0, 1, 3, 3, 3, -1};
    OpHarness harness({{rows}, {matrices}, {offsets, ElementKind::I32}},
                      [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                        return GroupedDotOp::create(b, x[0], x[1], x[2], transposed);
                      });
    expectNear(harness.forward().front(), tensorOf({8, 4}, [&](const Index &index) {
                 Number sum = 0;
                 int64_t row = index[0], column = index[1], group = groupOf[row];
                 for (int64_t i = 0; group >= 0 && i < 3; ++i)
                   sum += static_cast<Number>(at(rows, {row, i})) *
                          (transposed ? at(matrices, {group, column, i}) : at(matrices, {group, i, column}));
                 return sum;
               }));
  }
}

TEST(Layer, GroupedOuterSumsTheRowsOfAGroup) {
  Random random;
  SCOPED_TRACE(random.trace());
  HostTensor lhs = random.reals({8, 3}), rhs = random.reals({8, 2}), offsets({4});
  offsets.data = {1, 3, 3, 7};
  OpHarness harness(
      {{lhs}, {rhs}, {offsets, ElementKind::I32}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
        return GroupedOuterOp::create(b, RankedTensorType::get({4, 3, 2}, b.getF64Type()), x[0], x[1], x[2]);
      });
  expectNear(harness.forward().front(), tensorOf({4, 3, 2}, [&](const Index &index) {
               Number sum = 0;
               for (int64_t row = 0; row < 8; ++row)
                 if (index[0] < 3 && row >= offsets.data[index[0]] && row < offsets.data[index[0] + 1])
                   sum += static_cast<Number>(at(lhs, {row, index[1]})) * at(rhs, {row, index[2]});
               return sum;
             }));
}

TEST(Layer, OffsetsAscendWithinTheRows) {
  HostTensor rows({4, 2}), matrices({3, 2, 2});
  for (const std::vector<double> &wrong : {std::vector<double>{-1, 1, 2, 4}, {0, 3, 2, 4}, {0, 1, 2, 5}}) {
    HostTensor offsets({4});
    offsets.data = wrong;
    OpHarness harness({{rows}, {matrices}, {offsets, ElementKind::I32}},
                      [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                        return GroupedDotOp::create(b, x[0], x[1], x[2], false);
                      });
    std::string message;
    ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
    Tensors results(1, HostTensor(Shape{4, 2}));
    EXPECT_TRUE(failed(cast<Interpretable>(harness.operation()).interpret({rows, matrices, offsets}, results)));
    EXPECT_NE(message.find("do not ascend within the 4 rows"), std::string::npos) << message;
  }
}

/// Rows of int8: one of bytes, as kernels write it, and one that the reference semantics wrote.
TEST(Layer, CachesOfInt8HaveScalesBeforeTheirElements) {
  HostTensor cache({3, 2, 1, 6}), values({1, 1, 2}), rows({2}), lengths({1}), blocks({1, 1}), query({1, 1, 2});
  rows.data = {0, 1};
  lengths.data = {2};
  blocks.data = {2};
  // 0.5 is 0x3f000000; its row is 0.5 * (-3, 127).
  std::vector<double> bytes = {0, 0, 0, 63, 253, 127};
  constexpr ptrdiff_t kRow = 24;
  std::copy(bytes.begin(), bytes.end(), cache.data.begin() + kRow);
  values.data = {300.25, -1e-3};
  auto format = StringAttr::get(&context(), "int8");
  std::vector<Operand> places = {{rows, ElementKind::I32}, {lengths, ElementKind::I32}, {blocks, ElementKind::I32}};
  std::vector<Operand> written = {{cache, ElementKind::U8}, {values}};
  written.insert(written.end(), places.begin(), places.end());
  OpHarness write(written, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
    return CacheWriteOp::create(b, x[0], x[1], x[2], x[3], x[4], format);
  });
  Tensors caches(1, HostTensor(cache.shape));
  ASSERT_TRUE(
      succeeded(cast<Interpretable>(write.operation()).interpret({cache, values, rows, lengths, blocks}, caches)));
  EXPECT_EQ(std::vector<double>(caches[0].data.begin() + kRow, caches[0].data.begin() + kRow + 6), bytes);

  // Both positions weigh the same.
  std::vector<Operand> read = {{query}, {caches[0], ElementKind::U8}, {caches[0], ElementKind::U8}};
  read.insert(read.end(), places.begin(), places.end());
  OpHarness attend(read, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
    return PagedAttentionOp::create(b, x[0], x[1], x[2], x[3], x[4], x[5], APFloat(1.0), 0, format);
  });
  Tensors means(1, HostTensor(query.shape));
  ASSERT_TRUE(succeeded(
      cast<Interpretable>(attend.operation()).interpret({query, caches[0], caches[0], rows, lengths, blocks}, means)));
  EXPECT_NEAR(means[0].data[0], (-1.5 + 300.25) / 2, 1e-9);
  EXPECT_NEAR(means[0].data[1], (63.5 - 1e-3) / 2, 1e-9);
}

TEST(Layer, SequencesLieInTheBlocksOfTheirTables) {
  // Three rows of two sequences; blocks of two positions.
  HostTensor cache({4, 2, 1, 2}), values({3, 1, 2}), rows({3}), lengths({2}), blocks({2, 2});
  struct Case {
    std::vector<double> rows, lengths, blocks;
    const char *message;
  };
  const Case cases[] = {
      {{0, 2, 1}, {2, 1}, {1, 0, 2, 0}, "rows 2 and 1 of sequence 1 do not ascend within the 3 rows"},
      {{0, 2, 4}, {2, 2}, {1, 0, 2, 0}, "rows 2 and 4 of sequence 1 do not ascend within the 3 rows"},
      {{0, 2, 3}, {1, 1}, {1, 0, 2, 0}, "sequence 0 has 2 rows, but a length of 1"},
      {{0, 2, 3}, {2, 5}, {1, 0, 2, 3}, "position 4 of sequence 1 is in no block of the 2 that its table has"},
      {{0, 2, 3}, {3, 1}, {1, 0, 2, 0}, "position 2 of sequence 0 is in block 0; blocks are 1 to 3"},
      {{0, 2, 3}, {3, 1}, {1, 4, 2, 0}, "position 2 of sequence 0 is in block 4; blocks are 1 to 3"}};
  for (const Case &wrong : cases) {
    rows.data = wrong.rows;
    lengths.data = wrong.lengths;
    blocks.data = wrong.blocks;
    OpHarness harness(
        {{cache}, {values}, {rows, ElementKind::I32}, {lengths, ElementKind::I32}, {blocks, ElementKind::I32}},
        [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
          return CacheWriteOp::create(b, x[0], x[1], x[2], x[3], x[4], StringAttr());
        });
    std::string message;
    ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
    Tensors results(1, HostTensor(Shape{4, 2, 1, 2}));
    EXPECT_TRUE(
        failed(cast<Interpretable>(harness.operation()).interpret({cache, values, rows, lengths, blocks}, results)));
    EXPECT_NE(message.find(wrong.message), std::string::npos) << message;
  }
}

TEST(Layer, Norms) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < kRounds; ++round) {
    HostTensor x = random.reals(random.shape(random.integer(1, 3)));
    int64_t width = x.shape.back(), last = x.rank() - 1;
    HostTensor scale = random.reals({width}), bias = random.reals({width});
    double eps = random.real(0.01, 1);
    FloatAttr epsAttr = Builder(&context()).getF64FloatAttr(eps);
    auto power = [&](const Index &index, Number centre) {
      return mean(width, [&](int64_t i) { return powl(at(x, with(index, last, i)) - centre, 2); });
    };
    OpHarness rms({{x}, {scale}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      return RmsNormOp::create(b, x[0], x[1], epsAttr);
    });
    expectNear(rms.forward().front(), tensorOf(x.shape, [&](const Index &index) {
                 return at(x, index) / sqrtl(power(index, 0) + eps) * at(scale, index[last]);
               }));
    OpHarness layer({{x}, {scale}, {bias}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      return LayerNormOp::create(b, x[0], x[1], x[2], epsAttr);
    });
    expectNear(layer.forward().front(), tensorOf(x.shape, [&](const Index &index) {
                 Number centre = mean(width, [&](int64_t i) { return at(x, with(index, last, i)); });
                 Number normalised = (at(x, index) - centre) / sqrtl(power(index, centre) + eps);
                 return normalised * at(scale, index[last]) + at(bias, index[last]);
               }));
  }
}

TEST(Layer, RopeAnglesAreScaled) {
  // Of 64 positions: 10.2 turns of the first frequency, 3.2 of the second, 1.02 and 0.32.
  const long double turns[] = {10.18591636L, 3.22107L, 1.018591636L, 0.322107L};
  auto expected = [&](bool byTurns, int64_t i) {
    long double frequency = powl(100.0L, -i / 4.0L), low = frequency / 8;
    if (!byTurns || turns[i] <= 0.5L)
      return low;
    if (turns[i] >= 4)
      return frequency;
    long double kept = (64 * frequency / (2 * acosl(-1)) - 0.5L) / 3.5L;
    return kept * frequency + (1 - kept) * low;
  };
  HostTensor positions = tensorOf({3}, [](const Index &i) { return 7 * i[0] + 1; });
  for (bool byTurns : {false, true}) {
    OpHarness angles({{positions, ElementKind::I32}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      auto type = RankedTensorType::get({3, 4}, b.getF64Type());
      auto scaling =
          byTurns ? RopeScalingAttr::get(b.getContext(), 8, 64, 0.5, 4) : RopeScalingAttr::get(b.getContext(), 8);
      return RopeAnglesOp::create(b, type, type, x[0], b.getF64FloatAttr(100), scaling);
    });
    Tensors tables = angles.forward();
    auto angle = [&](const Index &i) { return positions.data[i[0]] * expected(byTurns, i[1]); };
    expectNear(tables[0], tensorOf({3, 4}, [&](const Index &i) { return cosl(angle(i)); }));
    expectNear(tables[1], tensorOf({3, 4}, [&](const Index &i) { return sinl(angle(i)); }));
  }
}

TEST(Layer, RopeRotatesComplexNumbers) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < kRounds; ++round) {
    Shape shape = random.shape(4);
    int64_t half = random.integer(1, 4);
    shape[3] = 2 * half;
    double theta = random.real(10, 1e4);
    HostTensor positions = random.integers({shape[1]}, 0, 50), x = random.reals(shape);
    auto angle = [&](int64_t s, int64_t i) { return positions.data[s] * powl(theta, -2.0L * i / (2 * half)); };
    OpHarness angles({{positions, ElementKind::I32}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
      auto type = RankedTensorType::get({shape[1], half}, b.getF64Type());
      return RopeAnglesOp::create(b, type, type, x[0], b.getF64FloatAttr(theta), RopeScalingAttr());
    });
    Tensors tables = angles.forward();
    Shape tableShape{shape[1], half};
    expectNear(tables[0], tensorOf(tableShape, [&](const Index &i) { return cosl(angle(i[0], i[1])); }));
    expectNear(tables[1], tensorOf(tableShape, [&](const Index &i) { return sinl(angle(i[0], i[1])); }));
    for (bool inverse : {false, true}) {
      OpHarness rope({{x}, {tables[0]}, {tables[1]}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
        return RopeOp::create(b, x[0], x[1], x[2], inverse);
      });
      expectNear(rope.forward().front(), tensorOf(shape, [&](const Index &index) {
                   int64_t pair = index[3] % half;
                   std::complex<Number> z(at(x, with(index, 3, pair)), at(x, with(index, 3, pair + half)));
                   z *= std::polar<Number>(1, (inverse ? -1 : 1) * angle(index[1], pair));
                   return index[3] < half ? z.real() : z.imag();
                 }));
    }
  }
}

namespace {
/// A random attention problem and the naive formulas of its probabilities.
struct AttentionCase {
  bool causal;
  int64_t batch, queries, keys, keyHeads, heads, width, window;
  double scale;
  HostTensor query, key, value;

  explicit AttentionCase(Random &random) {
    causal = random.flip();
    batch = random.integer(1, 2), queries = random.size(), width = random.size();
    keyHeads = random.integer(1, 3), heads = keyHeads * random.integer(1, 3);
    keys = causal ? queries + random.integer(0, 3) : random.size();
    window = causal && random.flip() ? random.integer(1, keys + 1) : 0;
    scale = random.real(0.2, 1.5);
    query = random.reals({batch, queries, heads, width});
    key = random.reals({batch, keys, keyHeads, width});
    value = random.reals(key.shape);
  }

  int64_t keyHead(int64_t h) const { return h / (heads / keyHeads); }
  /// exp(scale q.k), or 0 where the key is masked: scores are small enough here.
  Number weight(int64_t b, int64_t s, int64_t h, int64_t t) const {
    if (causal && t > s + keys - queries)
      return 0;
    if (window > 0 && t <= s + keys - queries - window)
      return 0;
    Number score = 0;
    for (int64_t d = 0; d < width; ++d)
      score += static_cast<Number>(at(query, {b, s, h, d})) * at(key, {b, t, keyHead(h), d});
    return expl(scale * score);
  }
  Number total(int64_t b, int64_t s, int64_t h) const {
    Number sum = 0;
    for (int64_t t = 0; t < keys; ++t)
      sum += weight(b, s, h, t);
    return sum;
  }
};
} // namespace

TEST(Layer, Attention) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < 2 * kRounds; ++round) {
    AttentionCase c(random);
    Tensors results =
        OpHarness({{c.query}, {c.key}, {c.value}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
          return AttentionOp::create(b, x[0], x[1], x[2], APFloat(c.scale), c.causal, c.window);
        }).forward();
    expectNear(results[0], tensorOf(c.query.shape, [&](const Index &i) {
                 Number sum = 0;
                 for (int64_t t = 0; t < c.keys; ++t)
                   sum += c.weight(i[0], i[1], i[2], t) * at(c.value, {i[0], t, c.keyHead(i[2]), i[3]});
                 return sum / c.total(i[0], i[1], i[2]);
               }));
    expectNear(results[1], tensorOf({c.batch, c.heads, c.queries},
                                    [&](const Index &i) { return logl(c.total(i[0], i[2], i[1])); }));
  }
}

TEST(Layer, LargeScoresDoNotOverflow) {
  HostTensor x({1, 1, 1, 1}), v({1, 2, 1, 1}), k({1, 2, 1, 1});
  x.data = {1e3};
  k.data = {1e3, 1e3 - 1};
  v.data = {5, 7};
  Tensors results = OpHarness({{x}, {k}, {v}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                      return AttentionOp::create(b, x[0], x[1], x[2], APFloat(1.0), false);
                    }).forward();
  EXPECT_EQ(results[0].data[0], 5);
  EXPECT_EQ(results[1].data[0], 1e6);
}

TEST(Layer, SoftmaxCrossEntropyAndItsGradient) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < kRounds; ++round) {
    HostTensor logits = random.reals(random.shape(random.integer(1, 3)), -5, 5);
    int64_t classes = logits.shape.back(), last = logits.rank() - 1;
    Shape positions(logits.shape.begin(), logits.shape.end() - 1);
    HostTensor labels = random.integers(positions, -2, classes), grads = random.reals(positions);
    auto total = [&](Index position) {
      position.resize(last + 1);
      return classes * mean(classes, [&](int64_t i) { return expl(at(logits, with(position, last, i))); });
    };
    Tensors results =
        OpHarness({{logits}, {labels, ElementKind::I32}}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
          return SoftmaxCrossEntropyOp::create(b, x[0], x[1]);
        }).forward();
    expectNear(results[0], tensorOf(positions, [&](const Index &position) -> Number {
                 int64_t label = static_cast<int64_t>(at(labels, position));
                 if (label == classes) // a class that is not among these
                   return logl(total(position));
                 Index chosen = position;
                 chosen.push_back(label);
                 return label < 0 ? 0 : -logl(expl(at(logits, chosen)) / total(position));
               }));
    expectNear(results[1], tensorOf(positions, [&](const Index &position) { return logl(total(position)); }));

    OpHarness grad({{logits}, {labels, ElementKind::I32}, {results[1]}, {grads}},
                   [&](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                     return SoftmaxCrossEntropyGradOp::create(b, x[0], x[1], x[2], x[3]);
                   });
    expectNear(grad.forward().front(), tensorOf(logits.shape, [&](const Index &index) -> Number {
                 Index position(index.begin(), index.end() - 1);
                 double label = at(labels, position);
                 Number probability = expl(at(logits, index)) / total(position);
                 return label < 0 ? 0 : (probability - (label == index[last])) * at(grads, position);
               }));
  }
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

static HostTensor drawNormal(Shape shape, double stddev, int64_t seed, int64_t stream) {
  return OpHarness({},
                   [&](ImplicitLocOpBuilder &b, ValueRange) -> Operation * {
                     return RandomOp::create(b, RankedTensorType::get(shape, b.getF64Type()), b.getF64FloatAttr(stddev),
                                             b.getI64IntegerAttr(seed), b.getI64IntegerAttr(stream));
                   })
      .forward()
      .front();
}

TEST(Layer, RandomDependsOnElementSeedAndStreamAlone) {
  HostTensor flat = drawNormal({77}, 0.5, 3, 4);
  EXPECT_EQ(drawNormal({7, 11}, 0.5, 3, 4).data, flat.data);
  HostTensor prefix = drawNormal({13}, 0.5, 3, 4);
  EXPECT_TRUE(std::equal(prefix.data.begin(), prefix.data.end(), flat.data.begin()));
  EXPECT_NE(drawNormal({77}, 0.5, 4, 4).data, flat.data);
  EXPECT_NE(drawNormal({77}, 0.5, 3, 5).data, flat.data);
  EXPECT_EQ(drawNormal({2}, 0, 3, 4).data, (std::vector<double>{0, 0}));
}

TEST(Layer, RandomIsZeroOutsideOfTheWhole) {
  HostTensor whole = drawNormal({3, 5}, 0.5, 3, 4);
  HostTensor padded =
      OpHarness({},
                [&](ImplicitLocOpBuilder &b, ValueRange) -> Operation * {
                  return RandomOp::create(b, RankedTensorType::get({4, 7}, b.getF64Type()), b.getF64FloatAttr(0.5),
                                          b.getI64IntegerAttr(3), b.getI64IntegerAttr(4), ValueRange(),
                                          b.getDenseI64ArrayAttr({}), b.getDenseI64ArrayAttr({3, 5}));
                })
          .forward()
          .front();
  for (int64_t row = 0; row < 4; ++row)
    for (int64_t column = 0; column < 7; ++column)
      EXPECT_EQ(padded.data[row * 7 + column], row < 3 && column < 5 ? whole.data[row * 5 + column] : 0.0);
}

TEST(Layer, RandomIsNormal) {
  constexpr int64_t kCount = 20000;
  HostTensor values = drawNormal({kCount}, 2, 1, 1);
  // Moments within six standard errors: the seed is fixed, so this does not fail by chance.
  double sum = 0, squares = 0, inside = 0;
  for (double value : values.data) {
    sum += value;
    squares += value * value;
    inside += std::fabs(value) < 2;
  }
  EXPECT_NEAR(sum / kCount, 0, 6 * 2 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 4, 6 * 4 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(inside / kCount, std::erf(1 / std::sqrt(2.0)), 6 * 0.5 / std::sqrt(kCount));
}
