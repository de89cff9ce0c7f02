#ifndef BOWLINE_KERNELS_CPU_KERNEL_NEEDS_H_
#define BOWLINE_KERNELS_CPU_KERNEL_NEEDS_H_

// What launches of the CPU's kernels need, for any instruction set and without one of the kernels: compilers plan for
// machines that are not theirs, and link no kernel.

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/registry/registry.h"

namespace bowline::kernels {

// Of each kernel that CMake registers (bowline_register_kernels): NameScratch, in its family's folder. Bytes of
// workspace of a kernel that is created where `isa` is the best instruction set. kInvalidArgument for what creating it
// refuses.
#define BOWLINE_KERNEL(Name) absl::StatusOr<size_t> Name##Scratch(const Signature& signature, Isa isa);
#include "kernels/cpu/definitions.inc"  // IWYU pragma: keep
#undef BOWLINE_KERNEL

// The same by the kernel's name, "gather_rows". kNotFound, listing the known names, if there is none.
absl::StatusOr<size_t> CpuKernelScratch(const Signature& signature, Isa isa);

// What the address of an argument is a multiple of, in bytes, with `kernel`, or with generated code where it is empty;
// 0: the size of an element is enough.
int64_t CpuArgumentAlignment(std::string_view kernel, Access access);

// Names of all kernels, in order.
absl::Span<const std::string_view> CpuKernelNames();

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_KERNEL_NEEDS_H_
