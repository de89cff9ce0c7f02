#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/definitions.h"
#include "kernels/cpu/parallel.h"
#include "kernels/registry/signature_check.h"

namespace bowline::kernels {
namespace {

template <typename T>
class FillKernel : public Kernel {
 public:
  FillKernel(T value, int64_t count, int threads) : value_(value), count_(count), threads_(threads) {}

  void Run(absl::Span<void* const> arguments, void*) const override {
    T* out = static_cast<T*>(arguments[0]);
    ParallelFor(threads_, count_, [&](int64_t begin, int64_t end) { std::fill(out + begin, out + end, value_); });
  }

 private:
  T value_;
  int64_t count_;
  int threads_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  const bool integer = signature.arguments.size() == 1 && signature.arguments[0].dtype == DType::kI32;
  BOWLINE_KERNEL_RETURN_IF_ERROR(
      CheckSignature(signature, {{"out", Access::kWrite, integer ? DType::kI32 : DType::kF32}}, {"value"}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double value, signature.Float("value"));
  const int64_t count = signature.arguments[0].ElementCount();
  if (!integer) return std::make_unique<FillKernel<float>>(static_cast<float>(value), count, signature.threads);
  if (!(value >= INT32_MIN && value <= INT32_MAX) || value != std::trunc(value)) {
    return Refuse(signature, absl::StrCat("attribute 'value' is ", value, ", which is not an i32"));
  }
  return std::make_unique<FillKernel<int32_t>>(static_cast<int32_t>(value), count, signature.threads);
}

}  // namespace

KernelDefinition FillDefinition() {
  return {"fill", "every element of out (f32 or i32, any shape) = float attribute value", &Create};
}

}  // namespace bowline::kernels
