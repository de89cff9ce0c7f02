#include "kernels/cpu/random/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/bf16.h"
#include "kernels/cpu/definitions.h"
#include "kernels/cpu/float_type.h"
#include "kernels/cpu/parallel.h"
#include "kernels/registry/philox.h"
#include "kernels/registry/signature_check.h"

namespace bowline::kernels {
namespace {

// Where the elements of a shard lie in the global tensor, with leading extents that are whole merged into rows.
struct ShardShape {
  std::vector<int64_t> shape, global_shape, offsets;

  // Global element index of the first element of local row `row`; the rest of the row follows it.
  uint64_t RowStart(int64_t row) const {
    uint64_t index = offsets.back(), stride = global_shape.back();
    for (int64_t d = static_cast<int64_t>(shape.size()) - 2; d >= 0; --d) {
      index += stride * static_cast<uint64_t>(offsets[d] + row % shape[d]);
      stride *= static_cast<uint64_t>(global_shape[d]);
      row /= shape[d];
    }
    return index;
  }
};

absl::StatusOr<ShardShape> ParseShard(const Signature& signature) {
  ShardShape s;
  s.shape = signature.arguments[0].shape;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(s.global_shape, signature.Ints("global_shape"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(s.offsets, signature.Ints("offsets"));
  if (s.global_shape.size() != s.shape.size() || s.offsets.size() != s.shape.size()) {
    return Refuse(signature, "attributes 'global_shape' and 'offsets' must have the rank of argument 'out'");
  }
  __int128 elements = 1;
  for (size_t d = 0; d < s.shape.size(); ++d) {
    if (s.offsets[d] < 0 || s.global_shape[d] < s.shape[d] || s.offsets[d] > s.global_shape[d] - s.shape[d]) {
      return Refuse(signature, absl::StrCat("dimension ", d, ": offset ", s.offsets[d], " plus extent ", s.shape[d],
                                            " of the shard must lie within the global extent ", s.global_shape[d]));
    }
    elements *= s.global_shape[d];
    if (elements > INT64_MAX) return Refuse(signature, "'global_shape' has more than 2^63 elements");
  }
  if (s.shape.empty()) s = {{1}, {1}, {0}};
  return s;
}

// out = bias + gain * value(global index).
template <typename T>
class RandomKernel : public Kernel {
 public:
  RandomKernel(ShardShape shard, PhiloxKey key, RandomFill fill, const RandomScaling& scaling, int threads)
      : shard_(std::move(shard)), key_(key), fill_(fill), scaling_(scaling), threads_(threads) {
    rows_ = 1;
    for (size_t d = 0; d + 1 < shard_.shape.size(); ++d) rows_ *= shard_.shape[d];
  }

  void Run(absl::Span<void* const> arguments, void*) const override {
    T* out = static_cast<T*>(arguments[0]);
    const int64_t columns = shard_.shape.back();
    // Rows may be few or short: cut the elements, whatever row they are in.
    ParallelFor(threads_, rows_ * columns, 2.0, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t row = begin / columns;
        const int64_t stop = std::min(end, (row + 1) * columns);
        FillRun(shard_.RowStart(row) + static_cast<uint64_t>(begin - row * columns), stop - begin, out + begin);
        begin = stop;
      }
    });
  }

 private:
  void FillRun(uint64_t first, int64_t count, float* out) const {
    fill_(key_[0], key_[1], scaling_, first, count, out);
  }
  void FillRun(uint64_t first, int64_t count, Bf16* out) const {
    constexpr int64_t kPart = 1024;
    float part[kPart];
    for (int64_t done = 0; done < count; done += kPart) {
      const int64_t size = std::min(kPart, count - done);
      FillRun(first + static_cast<uint64_t>(done), size, part);
      for (int64_t i = 0; i < size; ++i) out[done + i] = Narrow<Bf16>(part[i]);
    }
  }

  ShardShape shard_;
  PhiloxKey key_;
  RandomFill fill_;
  RandomScaling scaling_;
  int threads_;
  int64_t rows_;
};

absl::StatusOr<PhiloxKey> ParseKey(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t seed, signature.Int("seed"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t key, signature.Int("key"));
  return MixKey(static_cast<uint64_t>(seed), static_cast<uint64_t>(key));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateNormal(const Signature& signature) {
  const DType element = FloatTypeOf(signature, 0);
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature, {{"out", Access::kWrite, element}},
                                                {"seed", "key", "mean", "stddev", "global_shape", "offsets"}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(ShardShape shard, ParseShard(signature));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const PhiloxKey key, ParseKey(signature));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double mean, FiniteFloat(signature, "mean"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double stddev, FiniteFloat(signature, "stddev"));
  if (stddev < 0) return Refuse(signature, "attribute 'stddev' must not be negative");
  const RandomFill fill = BOWLINE_SELECT_ISA(kRandom).normal;
  const RandomScaling scaling = {mean, stddev, INFINITY, std::numeric_limits<float>::max()};
  if (element == DType::kBF16) {
    return std::make_unique<RandomKernel<Bf16>>(std::move(shard), key, fill, scaling, signature.threads);
  }
  return std::make_unique<RandomKernel<float>>(std::move(shard), key, fill, scaling, signature.threads);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateUniform(const Signature& signature) {
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature, {{"out", Access::kWrite, DType::kF32}},
                                                {"seed", "key", "lo", "hi", "global_shape", "offsets"}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(ShardShape shard, ParseShard(signature));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const PhiloxKey key, ParseKey(signature));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double lo, FiniteFloat(signature, "lo"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double hi, FiniteFloat(signature, "hi"));
  if (!(static_cast<float>(lo) < static_cast<float>(hi)) || !std::isfinite(static_cast<float>(hi)) ||
      !std::isfinite(static_cast<float>(lo))) {
    return Refuse(signature, absl::StrCat("'lo' = ", lo, " must be less than 'hi' = ", hi, ", both within f32"));
  }
  const float limit = static_cast<float>(hi);
  const RandomScaling scaling = {lo, hi - lo, limit, std::nextafter(limit, -INFINITY)};
  return std::make_unique<RandomKernel<float>>(std::move(shard), key, BOWLINE_SELECT_ISA(kRandom).uniform, scaling,
                                               signature.threads);
}

}  // namespace

KernelDefinition RandomNormalDefinition() {
  return {
      "random_normal",
      "out = mean + stddev * N(0, 1) by global element index (registry/philox.h), f32, or bf16 as those rounded; ints "
      "seed, key, global_shape, offsets; floats mean, stddev",
      &CreateNormal};
}

KernelDefinition RandomUniformDefinition() {
  return {"random_uniform",
          "out uniform in [lo, hi) by global element index (registry/philox.h), f32; ints seed, key, global_shape, "
          "offsets; floats lo, hi",
          &CreateUniform};
}

}  // namespace bowline::kernels
