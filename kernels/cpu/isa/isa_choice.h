#ifndef BOWLINE_KERNELS_CPU_ISA_ISA_CHOICE_H_
#define BOWLINE_KERNELS_CPU_ISA_ISA_CHOICE_H_

// Which variants of kernels a processor runs. Apart from isa.h, which hot files include.

#include <set>
#include <string>

#include "kernels/cpu/isa/isa.h"
#include "kernels/registry/cpu_level.h"

namespace bowline::kernels {

// The best set that this build contains for a processor with the features, by the names of cpu_level.h.
Isa BestIsa(const std::set<std::string>& features);

// The set that a processor of the level has, and no better one.
Isa IsaOf(CpuLevel level);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_ISA_ISA_CHOICE_H_
