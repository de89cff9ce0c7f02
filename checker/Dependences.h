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

/// Maps a written argument of a kernel to the arguments on which its value depends; has no key for an argument that
/// depends on all arguments read. The plan states this for generated code. For registered kernels it is known only for
/// sums of one product operand that a library computes (kernels/registry/product_epilogue.h).
using Dependences = std::map<uint32_t, std::vector<uint32_t>>;
Dependences dependencesOf(const fbs::Kernel &kernel);

} // namespace bowline

#endif // BOWLINE_CHECKER_DEPENDENCES_H
