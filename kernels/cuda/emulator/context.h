#ifndef BOWLINE_KERNELS_CUDA_EMULATOR_CONTEXT_H_
#define BOWLINE_KERNELS_CUDA_EMULATOR_CONTEXT_H_

// The state of a fiber that waits, from which it goes on. On x86-64 a switch makes none of the system calls of
// ucontext.h, which take most of the time of a switch.

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace bowline::emulator {

#if defined(__x86_64__)

class Context {
 public:
  // `run` begins on the stack when a thread switches to this context, and never returns.
  void Prepare(char* stack, size_t bytes, void (*run)()) {
    auto top = (reinterpret_cast<uintptr_t>(stack) + bytes) / 16 * 16 - 16;
    auto* words = reinterpret_cast<uint64_t*>(top);
    words[0] = reinterpret_cast<uint64_t>(run);  // a call leaves 8 bytes below a multiple of 16
    words[1] = 0;
    stack_ = words - 6;  // the six registers that a call preserves
    for (int i = 0; i < 6; ++i) static_cast<uint64_t*>(stack_)[i] = 0;
  }
  static void Switch(Context& from, Context& to);

 private:
  void* stack_ = nullptr;
};

#else

class Context {
 public:
  void Prepare(char* stack, size_t bytes, void (*run)()) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack;
    context_.uc_stack.ss_size = bytes;
    context_.uc_link = nullptr;
    makecontext(&context_, run, 0);
  }
  static void Switch(Context& from, Context& to) { swapcontext(&from.context_, &to.context_); }

 private:
  ucontext_t context_;
};

#endif

}  // namespace bowline::emulator

#endif  // BOWLINE_KERNELS_CUDA_EMULATOR_CONTEXT_H_
