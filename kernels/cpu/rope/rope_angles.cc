#include <cmath>
#include <utility>

#include "kernels/cpu/bf16.h"
#include "kernels/cpu/definitions.h"
#include "kernels/cpu/float_type.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/registry/signature_check.h"

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
  std::vector<double> frequencies_;  // theta^(-2i/D)
  int64_t positions_;
  ParallelLoop loop_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  const DType element = FloatTypeOf(signature, 1);
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature,
                                                {{"positions", Access::kRead, DType::kI32, 1},
                                                 {"cos", Access::kWrite, element, 2},
                                                 {"sin", Access::kWrite, element, 2}},
                                                {"theta"}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double theta, FiniteFloat(signature, "theta"));
  if (theta <= 0) return Refuse(signature, "attribute 'theta' must be positive");
  const int64_t positions = signature.arguments[0].shape[0], half = signature.arguments[1].shape[1];
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(signature, 1, "cos", {positions, half}, "[positions, head_dim / 2]"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(signature, 2, "sin", {positions, half}, "the shape of 'cos'"));
  std::vector<double> frequencies(half);
  for (int64_t i = 0; i < half; ++i) frequencies[i] = std::pow(theta, -static_cast<double>(i) / half);
  if (element == DType::kBF16) {
    return std::make_unique<RopeAngles<Bf16>>(std::move(frequencies), positions, signature.threads);
  }
  return std::make_unique<RopeAngles<float>>(std::move(frequencies), positions, signature.threads);
}

}  // namespace

KernelDefinition RopeAnglesDefinition() {
  return {
      "rope_angles",
      "cos, sin [S, D/2], both f32 or both bf16, of positions[s] * theta^(-2i/D), computed in f64, positions [S] i32; "
      "float theta",
      &Create};
}

}  // namespace bowline::kernels
