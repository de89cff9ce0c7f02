#ifndef BOWLINE_KERNELS_CPU_PARALLEL_SIGNALS_BLOCKED_H_
#define BOWLINE_KERNELS_CPU_PARALLEL_SIGNALS_BLOCKED_H_

#include <pthread.h>

#include <csignal>

namespace bowline::kernels {

// Blocks all signals of the calling thread during its lifetime, so that threads started meanwhile receive no signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PARALLEL_SIGNALS_BLOCKED_H_
