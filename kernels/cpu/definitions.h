#ifndef BOWLINE_KERNELS_CPU_DEFINITIONS_H_
#define BOWLINE_KERNELS_CPU_DEFINITIONS_H_

// The CPU kernels, one function per registry entry: those that CMake registers (bowline_register_kernels), each defined
// in its family's folder.

#include "kernels/registry/registry.h"

namespace bowline::kernels {

#define BOWLINE_KERNEL(Name, name) KernelDefinition Name##Definition();
#include "kernels/registry/kernels.inc"  // IWYU pragma: keep
#undef BOWLINE_KERNEL

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_DEFINITIONS_H_
