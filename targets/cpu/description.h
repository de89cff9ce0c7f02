#ifndef BOWLINE_TARGETS_CPU_DESCRIPTION_H_
#define BOWLINE_TARGETS_CPU_DESCRIPTION_H_

#include "targets/target.h"

namespace bowline::targets::cpu {

// x86-64, the threads of one process. Devices with code and kernels of CPUs describe themselves as changes of it.
const Target& Description();

}  // namespace bowline::targets::cpu

#endif  // BOWLINE_TARGETS_CPU_DESCRIPTION_H_
