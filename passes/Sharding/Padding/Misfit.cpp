//===- Misfit.cpp - Messages about sizes that ranks do not divide
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/Padding/Misfit.h"
#include "dialects/Dist/DistOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace bowline;

void bowline::describeMisfit(InFlightDiagnostic &diagnostic, int64_t size, ArrayRef<StringAttr> axes, int64_t ranks) {
  llvm::SmallSetVector<StringRef, 4> names;
  for (StringAttr axis : axes)
    names.insert(dist::wholeAxis(axis));
  diagnostic << " of " << size << " does not divide over the " << ranks << " ranks along ";
  llvm::interleaveComma(names, diagnostic, [&](StringRef name) { diagnostic << '"' << name << '"'; });
}

void bowline::suggestSizes(InFlightDiagnostic &diagnostic, int64_t size, int64_t multiple) {
  int64_t below = size / multiple * multiple;
  diagnostic << "; the nearest valid size" << (below > 0 ? "s are " : " is ");
  if (below > 0)
    diagnostic << below << " and ";
  diagnostic << below + multiple;
}
