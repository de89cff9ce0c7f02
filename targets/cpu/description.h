#ifndef BOWLINE_TARGETS_CPU_DESCRIPTION_H_
#define BOWLINE_TARGETS_CPU_DESCRIPTION_H_

#include "targets/target.h"

namespace bowline::targets::cpu {

// Describes x86-64 CPUs that run the threads of one process. Other targets that use CPU kernels copy and modify it.
const Target& Description();

}  // namespace bowline::targets::cpu

#endif  // BOWLINE_TARGETS_CPU_DESCRIPTION_H_
