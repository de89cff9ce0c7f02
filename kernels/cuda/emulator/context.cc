#include "kernels/cuda/emulator/context.h"

#if defined(__x86_64__)

extern "C" void bowline_emulator_switch(void** from, void* to);
asm(R"(
  .text
  .type bowline_emulator_switch, @function
bowline_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size bowline_emulator_switch, . - bowline_emulator_switch
)");

void bowline::emulator::Context::Switch(Context& from, Context& to) {
  bowline_emulator_switch(&from.stack_, to.stack_);
}

#endif
