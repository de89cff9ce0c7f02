#include "kernels/cpu/random/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/bf16.h"
#include "kernels/cpu/definitions.h"
#include "kernels/cpu/float_type.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/registry/philox.h"
#include "kernels/registry/signature_check.h"

namespace bowline::kernels {
namespace {

// The place of a shard in the global tensor. The global tensor may be sharded along some dimensions, and an operand
// says for each of them which shard this is.
struct ShardShape {
  std::vector<int64_t> shape, global_shape, offsets;
  std::vector<int> operands;  // by dimension: the operand that says which shard this is, or -1
  bool padded = false;        // elements may lie beyond the end of the global tensor

  // The index along dimension `d` at which the shard begins.
  int64_t Start(absl::Span<void* const> places, size_t d) const {
    return operands[d] < 0 ? offsets[d] : *static_cast<const int32_t*>(places[operands[d]]) * shape[d];
  }

  // The global index of the first element of local row `row`, and how many of the row lie in the global tensor: these
  // follow the first.
  std::pair<uint64_t, int64_t> Row(absl::Span<void* const> places, int64_t row) const {
    const int64_t last = Start(places, shape.size() - 1);
    const int64_t count = std::clamp<int64_t>(global_shape.back() - last, 0, shape.back());
    uint64_t index = last, stride = global_shape.back();
    for (int64_t d = static_cast<int64_t>(shape.size()) - 2; d >= 0; --d) {
      const int64_t at = Start(places, d) + row % shape[d];
      if (at >= global_shape[d]) return {0, 0};
      index += stride * static_cast<uint64_t>(at);
      stride *= static_cast<uint64_t>(global_shape[d]);
      row /= shape[d];
    }
    return {index, count};
  }
};

absl::Status ParseCuts(const Signature& signature, absl::Span<const int64_t> cut_dims, ShardShape& s) {
  int64_t previous = -1;
  int count = 0;
  for (const int64_t d : cut_dims) {
    if (d <= previous || d >= static_cast<int64_t>(s.shape.size())) {
      return Refuse(signature,
                    absl::StrCat("attribute 'cut_dims' must name dimensions of argument 'out' in increasing ",
                                 "order, but has ", d));
    }
    previous = d;
    if (s.offsets[d] != 0 || (!s.padded && s.global_shape[d] % s.shape[d] != 0)) {
      return Refuse(signature, absl::StrCat("dimension ", d, ": parts of extent ", s.shape[d], " from offset ",
                                            s.offsets[d], " do not make up the global extent ", s.global_shape[d]));
    }
    s.operands[d] = count++;
  }
  return absl::OkStatus();
}

absl::StatusOr<ShardShape> ParseShard(const Signature& signature, absl::Span<const int64_t> cut_dims) {
  ShardShape s;
  s.shape = signature.arguments.back().shape;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(s.global_shape, signature.Ints("global_shape"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(s.offsets, signature.Ints("offsets"));
  if (s.global_shape.size() != s.shape.size() || s.offsets.size() != s.shape.size()) {
    return Refuse(signature, "attributes 'global_shape' and 'offsets' must have the rank of argument 'out'");
  }
  if (signature.Find("padded") != nullptr) {
    BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t padded, signature.Int("padded"));
    s.padded = padded != 0;
  }
  s.operands.assign(s.shape.size(), -1);
  __int128 elements = 1;
  for (size_t d = 0; d < s.shape.size(); ++d) {
    const int64_t needed = s.padded ? 1 : s.shape[d];
    if (s.offsets[d] < 0 || s.global_shape[d] < needed || s.offsets[d] > s.global_shape[d] - needed) {
      return Refuse(signature, absl::StrCat("dimension ", d, ": offset ", s.offsets[d], " plus extent ", s.shape[d],
                                            " of the shard must lie within the global extent ", s.global_shape[d]));
    }
    elements *= s.global_shape[d];
    if (elements > INT64_MAX) return Refuse(signature, "'global_shape' has more than 2^63 elements");
  }
  BOWLINE_KERNEL_RETURN_IF_ERROR(ParseCuts(signature, cut_dims, s));
  if (s.shape.empty()) s = {{1}, {1}, {0}, {-1}, false};
  return s;
}

// The operands that say which part this is, one for each of 'cut_dims', then the result.
absl::StatusOr<ShardShape> CheckShard(const Signature& signature, DType element,
                                      std::initializer_list<std::string_view> attributes) {
  std::vector<int64_t> cut_dims;
  if (signature.Find("cut_dims") != nullptr) {
    BOWLINE_KERNEL_ASSIGN_OR_RETURN(cut_dims, signature.Ints("cut_dims"));
  }
  std::vector<ArgumentRule> rules(cut_dims.size(), {"place", Access::kRead, DType::kI32, 0});
  rules.push_back({"out", Access::kWrite, element});
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature, rules, attributes));
  return ParseShard(signature, cut_dims);
}

DType ResultType(const Signature& signature) {
  return signature.arguments.empty() ? DType::kF32 : FloatTypeOf(signature, signature.arguments.size() - 1);
}

// out = bias + gain * value(global index).
template <typename T>
class RandomKernel : public Kernel {
 public:
  RandomKernel(ShardShape shard, PhiloxKey key, RandomFill fill, const RandomScaling& scaling, int threads)
      : shard_(std::move(shard)), key_(key), fill_(fill), scaling_(scaling), loop_(threads) {
    rows_ = 1;
    for (size_t d = 0; d + 1 < shard_.shape.size(); ++d) rows_ *= shard_.shape[d];
  }

  void Run(absl::Span<void* const> arguments, void*) const override {
    T* out = static_cast<T*>(arguments.back());
    const int64_t columns = shard_.shape.back();
    // Rows may be few or short: cut the elements, whatever row they are in.
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
  ParallelLoop loop_;
  int64_t rows_;
};

absl::StatusOr<PhiloxKey> ParseKey(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t seed, signature.Int("seed"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t key, signature.Int("key"));
  return MixKey(static_cast<uint64_t>(seed), static_cast<uint64_t>(key));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateNormal(const Signature& signature) {
  const DType element = ResultType(signature);
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(
      ShardShape shard, CheckShard(signature, element,
                                   {"seed", "key", "mean", "stddev", "global_shape", "offsets", "cut_dims", "padded"}));
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
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(
      ShardShape shard,
      CheckShard(signature, DType::kF32, {"seed", "key", "lo", "hi", "global_shape", "offsets", "cut_dims"}));
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
      "seed, key, global_shape, offsets; floats mean, stddev; ints cut_dims, if given: dimensions cut into parts of "
      "out's extents, with one i32 before out for each, which part it is; int padded, if 1: elements beyond "
      "global_shape are zero",
      &CreateNormal};
}

KernelDefinition RandomUniformDefinition() {
  return {"random_uniform",
          "out uniform in [lo, hi) by global element index (registry/philox.h), f32; ints seed, key, global_shape, "
          "offsets; floats lo, hi; ints cut_dims, if given: dimensions cut into parts of out's extents, with one i32 "
          "before out for each, which part it is",
          &CreateUniform};
}

}  // namespace bowline::kernels
