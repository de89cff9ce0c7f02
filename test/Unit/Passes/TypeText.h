//===- TypeText.h - Types and lists of dimensions as programs have them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_PASSES_TYPETEXT_H
#define BOWLINE_TEST_UNIT_PASSES_TYPETEXT_H

#include "test/Unit/Interp/OpHarness.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline::test {

/// "tensor<2x3xf32>", of the dimensions of `shape` and then `last`.
inline std::string tensorText(Shape shape, const std::string &element, std::initializer_list<int64_t> last = {}) {
  shape.insert(shape.end(), last);
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

/// "[1, 2]", of the numbers from `begin` up to `end`.
inline std::string dimsText(int64_t begin, int64_t end) {
  auto numbers = llvm::seq(begin, end);
  return llvm::formatv("[{0:$[, ]}]", llvm::make_range(numbers.begin(), numbers.end()));
}

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_PASSES_TYPETEXT_H
