#include "kernels/signatures/random_signature.h"

#include <cmath>
#include <initializer_list>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/registry/kernel_traits.h"
#include "kernels/signatures/float_type.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

absl::Status ParseShardedDims(const Signature& signature, absl::Span<const int64_t> sharded_dims, ShardShape& s) {
  int64_t previous = -1;
  int count = 0;
  for (const int64_t d : sharded_dims) {
    if (d <= previous || d >= static_cast<int64_t>(s.shape.size())) {
      return Refuse(signature,
                    absl::StrCat("attribute 'sharded_dims' must name dimensions of argument 'out' in increasing ",
                                 "order, but has ", d));
    }
    previous = d;
    if (s.offsets[d] != 0 || (!s.padded && s.global_shape[d] % s.shape[d] != 0)) {
      return Refuse(signature, absl::StrCat("dimension ", d, ": shards of extent ", s.shape[d], " from offset ",
                                            s.offsets[d], " do not make up the global extent ", s.global_shape[d]));
    }
    s.operands[d] = count++;
  }
  return absl::OkStatus();
}

absl::StatusOr<ShardShape> ParseShard(const Signature& signature, absl::Span<const int64_t> sharded_dims) {
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
  BOWLINE_KERNEL_RETURN_IF_ERROR(ParseShardedDims(signature, sharded_dims, s));
  if (s.shape.empty()) s = {{1}, {1}, {0}, {-1}, false};
  return s;
}

// The operands that say which shard this is, one for each of 'sharded_dims', then the result.
absl::StatusOr<ShardShape> CheckShard(const Signature& signature, DType element,
                                      std::initializer_list<std::string_view> attributes) {
  std::vector<int64_t> sharded_dims;
  if (signature.Find("sharded_dims") != nullptr) {
    BOWLINE_KERNEL_ASSIGN_OR_RETURN(sharded_dims, signature.Ints("sharded_dims"));
  }
  std::vector<ArgumentRule> rules(sharded_dims.size(), {"place", Access::kRead, DType::kI32, 0});
  rules.push_back({"out", Access::kWrite, element});
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature, rules, attributes));
  return ParseShard(signature, sharded_dims);
}

DType ResultType(const Signature& signature) {
  return signature.arguments.empty() ? DType::kF32 : FloatTypeOf(signature, signature.arguments.size() - 1);
}

absl::StatusOr<PhiloxKey> ParseKey(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t seed, signature.Int("seed"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t key, signature.Int("key"));
  return MixKey(static_cast<uint64_t>(seed), static_cast<uint64_t>(key));
}

}  // namespace

absl::StatusOr<RandomSpec> ParseRandomNormal(const Signature& signature) {
  const DType element = ResultType(signature);
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(ShardShape shard, CheckShard(signature, element,
                                                               {"seed", "key", "mean", "stddev", "global_shape",
                                                                "offsets", "sharded_dims", "padded"}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const PhiloxKey key, ParseKey(signature));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double mean, FiniteFloat(signature, "mean"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double stddev, FiniteFloat(signature, "stddev"));
  if (stddev < 0) return Refuse(signature, "attribute 'stddev' must not be negative");
  return RandomSpec{std::move(shard), key, {mean, stddev, INFINITY, std::numeric_limits<float>::max()}, element};
}

absl::StatusOr<RandomSpec> ParseRandomUniform(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(
      ShardShape shard,
      CheckShard(signature, DType::kF32, {"seed", "key", "lo", "hi", "global_shape", "offsets", "sharded_dims"}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const PhiloxKey key, ParseKey(signature));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double lo, FiniteFloat(signature, "lo"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double hi, FiniteFloat(signature, "hi"));
  if (!(static_cast<float>(lo) < static_cast<float>(hi)) || !std::isfinite(static_cast<float>(hi)) ||
      !std::isfinite(static_cast<float>(lo))) {
    return Refuse(signature, absl::StrCat("'lo' = ", lo, " must be less than 'hi' = ", hi, ", both within f32"));
  }
  const float limit = static_cast<float>(hi);
  return RandomSpec{std::move(shard), key, {lo, hi - lo, limit, std::nextafter(limit, -INFINITY)}, DType::kF32};
}

KernelTraits RandomNormalTraits() { return {}; }
KernelTraits RandomUniformTraits() { return {}; }

}  // namespace bowline::kernels
