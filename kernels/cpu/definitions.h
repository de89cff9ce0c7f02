#ifndef BOWLINE_KERNELS_CPU_DEFINITIONS_H_
#define BOWLINE_KERNELS_CPU_DEFINITIONS_H_

// Declares NameDefinition, which returns the kernel's definition, for each CPU kernel that CMake registers with
// bowline_register_kernels. Each is defined in the folder of its kernel family.

#include "kernels/registry/registry.h"

namespace bowline::kernels {

#define BOWLINE_KERNEL(Name, name) KernelDefinition Name##Definition();
#include "kernels/registry/kernels.inc"  // IWYU pragma: keep
#undef BOWLINE_KERNEL

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_DEFINITIONS_H_
