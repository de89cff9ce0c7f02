//===- Dependences.h - the arguments that results of kernels depend on -----*- C++ -*-===//
//
// Private to checker.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_DEPENDENCES_H
#define BOWLINE_CHECKER_DEPENDENCES_H

#include "runtime/plan/plan_generated.h"

#include <map>
#include <vector>

namespace bowline {

/// For each argument that a kernel writes and that does not depend on all that it reads: those on which it depends.
/// Generated code says so in the plan. Of registered kernels it is known of sums that a library makes of one operand of
/// a product (kernels/registry/product_epilogue.h).
using Dependences = std::map<uint32_t, std::vector<uint32_t>>;
Dependences dependencesOf(const fbs::Kernel &kernel);

} // namespace bowline

#endif // BOWLINE_CHECKER_DEPENDENCES_H
