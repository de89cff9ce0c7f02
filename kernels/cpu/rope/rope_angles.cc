#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/signatures/signature_check.h"
#include "kernels/signatures/simple_signatures.h"

namespace bowline::kernels {
namespace {

template <typename T>
class RopeAngles : public Kernel {
 public:
  RopeAngles(std::vector<double> frequencies, int64_t positions, int threads)
      : frequencies_(std::move(frequencies)), positions_(positions), loop_(threads) {}

  void Run(absl::Span<void* const> arguments, void*) const override {
    const int32_t* positions = static_cast<const int32_t*>(arguments[0]);
    T* cosines = static_cast<T*>(arguments[1]);
    T* sines = static_cast<T*>(arguments[2]);
    const int64_t half = static_cast<int64_t>(frequencies_.size());
    loop_.Run(positions_, 30.0 * static_cast<double>(half), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        for (int64_t i = 0; i < half; ++i) {
          const double angle = positions[p] * frequencies_[i];
          cosines[p * half + i] = Narrow<T>(static_cast<float>(std::cos(angle)));
          sines[p * half + i] = Narrow<T>(static_cast<float>(std::sin(angle)));
        }
      }
    });
  }

 private:
  std::vector<double> frequencies_;  // theta^(-2i/D), scaled
  int64_t positions_;
  ParallelLoop loop_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const RopeAnglesShape shape, ParseRopeAngles(signature));
  const int64_t half = shape.half, positions = shape.positions;
  std::vector<double> frequencies(half);
  for (int64_t i = 0; i < half; ++i) {
    const double frequency = std::pow(shape.theta, -static_cast<double>(i) / half);
    const double kept = std::clamp(frequency * shape.slope - shape.offset, 0.0, 1.0);
    frequencies[i] = frequency * (kept + (1 - kept) * shape.rate);
  }
  return VisitFloatType(shape.element, [&](auto zero) -> std::unique_ptr<Kernel> {
    return std::make_unique<RopeAngles<decltype(zero)>>(std::move(frequencies), positions, signature.threads);
  });
}

}  // namespace

KernelDefinition RopeAnglesDefinition() {
  return {"rope_angles",
          "cos, sin [S, D/2], of one floating-point type, of positions[s] * theta^(-2i/D), computed in f64, positions "
          "[S] i32; float theta; if given, float factor divides the frequencies theta^(-2i/D), and int "
          "original_positions, float low_turns and high_turns say which of them: all that turn at most low_turns times "
          "within so many positions, none that turns high_turns times, and in between a part in proportion",
          &Create};
}

}  // namespace bowline::kernels
