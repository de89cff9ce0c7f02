//===- KernelSignature.h - registered kernels as the registry sees them ----*- C++ -*-===//

#ifndef BOWLINE_CHECKER_KERNELSIGNATURE_H
#define BOWLINE_CHECKER_KERNELSIGNATURE_H

#include "kernels/registry/registry.h"
#include "runtime/plan/plan_generated.h"

#include <vector>

namespace bowline {

/// Returns for each kernel of a verified plan whether its launches pass workspace as their last operand.
std::vector<bool> findKernelsWithScratch(const fbs::Plan &plan);

/// Returns the signature of a registered kernel. With `hasScratch` the last argument is workspace: it is removed, and
/// its size becomes the signature's limit of scratch. The address of an epilogue is null.
kernels::Signature signatureOf(const fbs::Plan &plan, const fbs::Kernel &kernel, bool hasScratch);

} // namespace bowline

#endif // BOWLINE_CHECKER_KERNELSIGNATURE_H
