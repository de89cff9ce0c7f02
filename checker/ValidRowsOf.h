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

/// The count of valid rows of a kernel, and the arguments of which it uses no row behind that: from the plan
/// for generated code, from the registry for a registered kernel. None where it uses all rows. A registered kernel of
/// other arguments, which is refused when it is bound, may lack those that are named.
std::optional<kernels::ValidRows> validRowsOf(const fbs::Kernel &kernel);

} // namespace bowline

#endif // BOWLINE_CHECKER_VALIDROWSOF_H
