//===- ValidRowsOf.cpp - which rows a kernel leaves out -------------------===//

#include "checker/ValidRowsOf.h"

using namespace bowline;

static bool leavesRowsOut(const fbs::Kernel &kernel) {
  for (uint32_t i = 0; i < SizeOf(kernel.attributes()); ++i)
    if (TextOf(kernel.attributes()->Get(i)->name()) ==
        absl::string_view(kernels::kLeavesRowsOut.data(), kernels::kLeavesRowsOut.size()))
      return true;
  return false;
}

std::optional<kernels::ValidRows> bowline::validRowsOf(const fbs::Kernel &kernel) {
  if (const fbs::ValidRows *rows = kernel.valid_rows())
    return kernels::ValidRows{rows->count(), {rows->arguments()->begin(), rows->arguments()->end()}};
  if (kernel.origin() != fbs::KernelOrigin::Registered)
    return std::nullopt;
  const kernels::ValidRows *known = kernels::FindValidRows(kernel.name()->string_view(), leavesRowsOut(kernel));
  return known ? std::optional(*known) : std::nullopt;
}
