//===- Family.cpp - The list of families
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/Family.h"

using namespace bowline;
using namespace bowline::hf;

// The families that CMakeLists.txt lists.
namespace bowline::hf {
#define BOWLINE_FAMILY(NAME) const Family &family##NAME();
#include "families.inc"
#undef BOWLINE_FAMILY
} // namespace bowline::hf

absl::Span<const Family *const> hf::families() {
  static const Family *const all[] = {
#define BOWLINE_FAMILY(NAME) &family##NAME(),
#include "families.inc"
#undef BOWLINE_FAMILY
  };
  return all;
}
