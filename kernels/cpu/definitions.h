#ifndef BOWLINE_KERNELS_CPU_DEFINITIONS_H_
#define BOWLINE_KERNELS_CPU_DEFINITIONS_H_

// The CPU kernels, one function per registry entry. A new kernel is declared here, defined in its family's folder and
// listed in registry/registry.cc.

#include "kernels/registry/registry.h"

namespace bowline::kernels {

KernelDefinition AttentionBackwardDefinition();
KernelDefinition AttentionForwardDefinition();
KernelDefinition FillDefinition();
KernelDefinition GatherRowsDefinition();
KernelDefinition MatmulDefinition();
KernelDefinition PackMatrixDefinition();
KernelDefinition RandomNormalDefinition();
KernelDefinition RandomUniformDefinition();
KernelDefinition RopeAnglesDefinition();
KernelDefinition ScatterAddRowsDefinition();

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_DEFINITIONS_H_
