#include "kernels/cpu/random/random.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/signatures/random_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

// out = bias + gain * value(global index).
template <typename T>
class RandomKernel : public Kernel {
 public:
  RandomKernel(RandomSpec spec, RandomFill fill, int threads)
      : shard_(std::move(spec.shard)), key_(spec.key), fill_(fill), scaling_(spec.scaling), loop_(threads) {
    rows_ = 1;
    for (size_t d = 0; d + 1 < shard_.shape.size(); ++d) rows_ *= shard_.shape[d];
  }

  void Run(absl::Span<void* const> arguments, void*) const override {
    T* out = static_cast<T*>(arguments.back());
    const int64_t columns = shard_.shape.back();
    // Rows may be few or short, so threads share the elements, whatever row these are in.
    loop_.Run(rows_ * columns, 2.0, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t row = begin / columns;
        const int64_t stop = std::min(end, (row + 1) * columns);
        const auto [first, inside] = shard_.Row(arguments, row);
        const int64_t column = begin - row * columns;
        const int64_t filled = std::clamp<int64_t>(inside - column, 0, stop - begin);
        if (filled > 0) FillRun(first + static_cast<uint64_t>(column), filled, out + begin);
        std::fill(out + begin + filled, out + stop, T{});
        begin = stop;
      }
    });
  }

 private:
  void FillRun(uint64_t first, int64_t count, float* out) const {
    fill_(key_[0], key_[1], scaling_, first, count, out);
  }
  template <typename Half>
  void FillRun(uint64_t first, int64_t count, Half* out) const {
    constexpr int64_t kPart = 1024;
    float part[kPart];
    for (int64_t done = 0; done < count; done += kPart) {
      const int64_t size = std::min(kPart, count - done);
      FillRun(first + static_cast<uint64_t>(done), size, part);
      for (int64_t i = 0; i < size; ++i) out[done + i] = Narrow<Half>(part[i]);
    }
  }

  ShardShape shard_;
  PhiloxKey key_;
  RandomFill fill_;
  RandomScaling scaling_;
  ParallelLoop loop_;
  int64_t rows_;
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateNormal(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(RandomSpec spec, ParseRandomNormal(signature));
  const RandomFill fill = BOWLINE_SELECT_ISA(kRandom).normal;
  return VisitFloatType(spec.element, [&](auto zero) -> std::unique_ptr<Kernel> {
    return std::make_unique<RandomKernel<decltype(zero)>>(std::move(spec), fill, signature.threads);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateUniform(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(RandomSpec spec, ParseRandomUniform(signature));
  return std::make_unique<RandomKernel<float>>(std::move(spec), BOWLINE_SELECT_ISA(kRandom).uniform, signature.threads);
}

}  // namespace

KernelDefinition RandomNormalDefinition() {
  return {"random_normal",
          "out = mean + stddev * N(0, 1) by global element index (registry/philox.h), f32, or those rounded to "
          "16 bits; ints "
          "seed, key, global_shape, offsets; floats mean, stddev; ints sharded_dims, if given: dimensions along which "
          "out is one shard of several, with one i32 before out for each that says which; int padded, if 1: elements "
          "beyond "
          "global_shape are zero",
          &CreateNormal};
}

KernelDefinition RandomUniformDefinition() {
  return {"random_uniform",
          "out uniform in [lo, hi) by global element index (registry/philox.h), f32; ints seed, key, global_shape, "
          "offsets; floats lo, hi; ints sharded_dims, if given: dimensions along which out is one shard of several, "
          "with one i32 before out for each that says which",
          &CreateUniform};
}

}  // namespace bowline::kernels
