#ifndef BOWLINE_KERNELS_CPU_ISA_ISA_CHOICE_H_
#define BOWLINE_KERNELS_CPU_ISA_ISA_CHOICE_H_

// The choice of kernel variants for a processor. Separate from isa.h because hot files include only that one.

#include <set>
#include <string>

#include "kernels/cpu/isa/isa.h"
#include "kernels/registry/cpu_level.h"

namespace bowline::kernels {

// The best instruction set in this build for a processor with these features, named as in cpu_level.h.
Isa BestIsa(const std::set<std::string>& features);

// The best instruction set that every processor of the level has.
Isa IsaOf(CpuLevel level);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_ISA_ISA_CHOICE_H_
