//===- SamplingCases.cpp - sample_tokens on random shapes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Execution/OpCases.h"

#include "llvm/Support/FormatVariadic.h"

using namespace bowline;
using namespace bowline::test;
using llvm::formatv;

static void addSampleTokens(Random &random, std::vector<Case> &cases) {
  int64_t rows = random.integer(1, 9), words = random.pick({1, 2, 17, 300, 1025}), likely = random.pick({1, 5, 20});
  auto high = static_cast<double>(words), most = static_cast<double>(likely + 1);
  // Temperatures below 0 count as 0.
  std::vector<Argument> arguments = {{{rows, words}, "f32", -6, 6},
                                     {{rows}, "f32", -0.5, 2},
                                     {{rows}, "i32", -2, high},
                                     {{rows}, "f32", 0, 1.5},
                                     {{rows, 2}, "i32", INT32_MIN, INT32_MAX},
                                     {{rows}, "i32", 0, 5000},
                                     {{rows}, "i32", 0, most}};
  std::string types, token = tensorType({rows}, "i32"), number = tensorType({rows}),
                     tokens = tensorType({rows, likely}, "i32"), numbers = tensorType({rows, likely});
  for (const Argument &argument : arguments)
    types += (types.empty() ? "" : ", ") + argument.type();
  // Computed in f64, rounded once.
  cases.push_back(
      {"sample_tokens",
       arguments,
       {token, number, tokens, numbers},
       formatv("%r0, %r1, %r2, %r3 = graph.sample_tokens %0 temperature %1 top_k %2 top_p %3 seeds %4 at %5 "
               "wanted %6 : ({0}) -> ({1}, {2}, {3}, {4})",
               types, token, number, tokens, numbers),
       {0x1p-23, 0x1p-23}});
}

std::vector<Case> test::samplingCases(Random &random) {
  std::vector<Case> cases;
  for (int round = 0; round < 12; ++round)
    addSampleTokens(random, cases);
  return cases;
}
