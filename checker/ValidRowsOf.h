//===- ValidRowsOf.h - which rows a kernel leaves out -----------*- C++ -*-===//
//
// Private to checker and the tools.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_VALIDROWSOF_H
#define BOWLINE_CHECKER_VALIDROWSOF_H

#include "kernels/registry/valid_rows.h"
#include "runtime/plan/view/plan_view.h"

#include <optional>

namespace bowline {

/// Returns which argument of a kernel holds the count of valid rows, and the arguments of which it accesses no row
/// behind that count; nothing where it uses all rows. The plan states this for generated code, the registry for
/// registered kernels. A malformed registered kernel, which is refused when it is bound, may lack the named arguments.
std::optional<kernels::ValidRows> validRowsOf(const fbs::Kernel &kernel);

} // namespace bowline

#endif // BOWLINE_CHECKER_VALIDROWSOF_H
