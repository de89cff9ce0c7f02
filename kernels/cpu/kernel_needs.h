#ifndef BOWLINE_KERNELS_CPU_KERNEL_NEEDS_H_
#define BOWLINE_KERNELS_CPU_KERNEL_NEEDS_H_

// The workspace and alignment that the CPU's kernels need, for any instruction set. This library links no kernel, since
// a compiler may plan for another machine than its own.

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/registry/registry.h"

namespace bowline::kernels {

// Declares NameScratch for each kernel that CMake registers (bowline_register_kernels); it is defined in the folder of
// the kernel's family. It returns the bytes of workspace of a kernel that is created where `isa` is the best
// instruction set, and kInvalidArgument for a signature that creating the kernel refuses.
#define BOWLINE_KERNEL(Name, name) absl::StatusOr<size_t> Name##Scratch(const Signature& signature, Isa isa);
#include "kernels/registry/kernels.inc"  // IWYU pragma: keep
#undef BOWLINE_KERNEL

// Calls NameScratch of the kernel that the signature names, such as "gather_rows". Returns kNotFound if there is none.
absl::StatusOr<size_t> CpuKernelScratch(const Signature& signature, Isa isa);

// The alignment in bytes that `kernel`, or generated code if `kernel` is empty, requires of an argument with `access`;
// 0 means the size of an element.
int64_t CpuArgumentAlignment(std::string_view kernel, Access access);

// The names of all kernels, sorted.
absl::Span<const std::string_view> CpuKernelNames();

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_KERNEL_NEEDS_H_
