#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/bf16.h"
#include "kernels/cpu/definitions.h"
#include "kernels/cpu/float_type.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/stream.h"
#include "kernels/registry/signature_check.h"

namespace bowline::kernels {
namespace {

template <typename T>
class FillKernel : public Kernel {
 public:
  FillKernel(T value, int64_t count, int threads)
      : value_(value), count_(count), streams_(count * sizeof(T) >= kStreamBytes), threads_(threads) {}

  void Run(absl::Span<void* const> arguments, void*) const override {
    T* out = static_cast<T*>(arguments[0]);
    ParallelFor(threads_, count_, [&](int64_t begin, int64_t end) {
      if (streams_) begin = StreamVectors(out, begin, end);
      std::fill(out + begin, out + end, value_);
    });
  }

 private:
  // Returns where whole vectors ended.
  int64_t StreamVectors(T* out, int64_t begin, int64_t end) const {
    constexpr int64_t kPerVector = sizeof(StreamVec) / sizeof(T);
    StreamVec vector;
    for (int64_t i = 0; i < kPerVector; ++i) std::memcpy(reinterpret_cast<T*>(&vector) + i, &value_, sizeof(T));
    for (; begin < end && !CanStream(out + begin); ++begin) out[begin] = value_;
    for (; begin + kPerVector <= end; begin += kPerVector) Stream(out + begin, vector);
    FinishStreaming();
    return begin;
  }

  T value_;
  int64_t count_;
  bool streams_;
  int threads_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  const bool integer = signature.arguments.size() == 1 && signature.arguments[0].dtype == DType::kI32;
  const DType dtype = integer ? DType::kI32 : FloatTypeOf(signature, 0);
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature, {{"out", Access::kWrite, dtype}}, {"value"}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double value, signature.Float("value"));
  const int64_t count = signature.arguments[0].ElementCount();
  const int threads = signature.threads;
  if (dtype == DType::kF32) return std::make_unique<FillKernel<float>>(static_cast<float>(value), count, threads);
  if (dtype == DType::kBF16) {
    return std::make_unique<FillKernel<Bf16>>(Narrow<Bf16>(static_cast<float>(value)), count, threads);
  }
  if (!(value >= INT32_MIN && value <= INT32_MAX) || value != std::trunc(value)) {
    return Refuse(signature, absl::StrCat("attribute 'value' is ", value, ", which is not an i32"));
  }
  return std::make_unique<FillKernel<int32_t>>(static_cast<int32_t>(value), count, threads);
}

}  // namespace

KernelDefinition FillDefinition() {
  return {"fill", "every element of out (f32, bf16 or i32, any shape) = float attribute value", &Create};
}

}  // namespace bowline::kernels
