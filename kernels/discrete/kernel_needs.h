#ifndef BOWLINE_KERNELS_DISCRETE_KERNEL_NEEDS_H_
#define BOWLINE_KERNELS_DISCRETE_KERNEL_NEEDS_H_

// Kernels of the registry that the discrete device has of its own, launched by grid (runtime/drivers/discrete): `fill`,
// and `scatter_add_rows`, in which a thread sums up a column of the table, token by token.

#include <cstddef>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/registry/registry.h"

namespace bowline::kernels::discrete {

// Returns the bytes of workspace; nothing if the device has no kernel of its own with this name. Returns
// kInvalidArgument for a signature that the kernel of a CPU refuses too.
absl::StatusOr<std::optional<size_t>> OwnScratch(const Signature& signature);

}  // namespace bowline::kernels::discrete

#endif  // BOWLINE_KERNELS_DISCRETE_KERNEL_NEEDS_H_
