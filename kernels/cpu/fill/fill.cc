#include <algorithm>
#include <cstring>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/fill/stream.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/signatures/signature_check.h"
#include "kernels/signatures/simple_signatures.h"

namespace bowline::kernels {
namespace {

template <typename T>
class FillKernel : public Kernel {
 public:
  FillKernel(T value, int64_t count, int threads)
      : value_(value),
        count_(count),
        loop_(threads),
        stream_(static_cast<size_t>(count) * sizeof(T) >= kStreamBytes ? &BOWLINE_SELECT_ISA(kStream) : nullptr) {
    for (size_t i = 0; i < sizeof(word_); i += sizeof(T)) std::memcpy(word_ + i, &value, sizeof(T));
  }

  void Run(absl::Span<void* const> arguments, void*) const override {
    T* out = static_cast<T*>(arguments[0]);
    loop_.Run(count_, 0.05 * sizeof(T), [&](int64_t begin, int64_t end) {
      if (stream_ != nullptr) begin = StreamLines(out, begin, end);
      std::fill(out + begin, out + end, value_);
    });
  }

 private:
  // Returns where whole lines ended.
  int64_t StreamLines(T* out, int64_t begin, int64_t end) const {
    constexpr int64_t kPerLine = kStreamLine / sizeof(T);
    for (; begin < end && reinterpret_cast<uintptr_t>(out + begin) % kStreamLine != 0; ++begin) out[begin] = value_;
    const int64_t whole = (end - begin) / kPerLine * kPerLine;
    uint32_t word;
    std::memcpy(&word, word_, sizeof(word));
    stream_->fill(out + begin, static_cast<size_t>(whole) * sizeof(T), word);
    return begin + whole;
  }

  T value_;
  char word_[sizeof(uint32_t)];  // the value as often as it fits
  int64_t count_;
  ParallelLoop loop_;
  const StreamTable* stream_;  // null: not streamed
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const FillShape shape, ParseFill(signature));
  const int threads = signature.threads;
  if (shape.element == DType::kI32) {
    return std::make_unique<FillKernel<int32_t>>(static_cast<int32_t>(shape.value), shape.count, threads);
  }
  const float value = static_cast<float>(shape.value);
  return VisitFloatType(shape.element, [&](auto zero) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    return std::make_unique<FillKernel<T>>(Narrow<T>(value), shape.count, threads);
  });
}

}  // namespace

KernelDefinition FillDefinition() {
  return {"fill", "every element of out (floating-point or i32, any shape) = float attribute value", &Create};
}

}  // namespace bowline::kernels
