#include "runtime/comm/reduce.h"

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/isa/flush_subnormals.h"
#include "types/half.h"

namespace bowline {
namespace {

// Stored is the type in memory, Sum the type of the computation. Unsigned, so that integer sums wrap.
struct F32 {
  using Stored = float;
  using Sum = float;
  static Sum Load(Stored value) { return value; }
  static Stored Store(Sum value) { return value; }
};
struct F64 {
  using Stored = double;
  using Sum = double;
  static Sum Load(Stored value) { return value; }
  static Stored Store(Sum value) { return value; }
};
struct F16 {
  using Stored = uint16_t;
  using Sum = float;
  static Sum Load(Stored value) { return F16ToF32(value); }
  static Stored Store(Sum value) { return F32ToF16(value); }
};
struct Bf16 {
  using Stored = uint16_t;
  using Sum = float;
  static Sum Load(Stored value) { return Bf16ToF32(value); }
  static Stored Store(Sum value) { return F32ToBf16(value); }
};
template <typename Signed, typename Unsigned>
struct Integer {
  using Stored = Signed;
  using Sum = Signed;
  static Sum Load(Stored value) { return value; }
  static Stored Store(Sum value) { return value; }
  static Sum Add(Sum a, Sum b) { return static_cast<Sum>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)); }
};

template <typename Type, hal::ReduceOp op>
typename Type::Sum Combine(typename Type::Sum a, typename Type::Sum b) {
  if constexpr (op == hal::ReduceOp::kMax) {
    return b > a || b != b ? b : a;  // a NaN wins on either side
  } else if constexpr (requires { Type::Add(a, b); }) {
    return Type::Add(a, b);
  } else {
    return a + b;
  }
}

template <typename Type, hal::ReduceOp op>
void ReduceAs(absl::Span<const void* const> from, void* to, size_t count) {
  // The accumulators stay in the L1 cache while the sources stream past.
  constexpr size_t kBlock = 1024;
  typename Type::Sum sums[kBlock];
  auto* target = static_cast<typename Type::Stored*>(to);
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    const auto* first = static_cast<const typename Type::Stored*>(from[0]) + begin;
    for (size_t i = 0; i < size; ++i) sums[i] = Type::Load(first[i]);
    for (size_t rank = 1; rank < from.size(); ++rank) {
      const auto* source = static_cast<const typename Type::Stored*>(from[rank]) + begin;
      for (size_t i = 0; i < size; ++i) sums[i] = Combine<Type, op>(sums[i], Type::Load(source[i]));
    }
    for (size_t i = 0; i < size; ++i) target[begin + i] = Type::Store(sums[i]);
  }
}

template <typename Type>
void ReduceAs(absl::Span<const void* const> from, void* to, size_t count, hal::ReduceOp op) {
  if (op == hal::ReduceOp::kMax) return ReduceAs<Type, hal::ReduceOp::kMax>(from, to, count);
  return ReduceAs<Type, hal::ReduceOp::kSum>(from, to, count);
}

}  // namespace

void Reduce(absl::Span<const void* const> from, void* to, size_t count, kernels::DType dtype, hal::ReduceOp op) {
  const kernels::FlushSubnormals flush;
  switch (dtype) {
    case kernels::DType::kF32:
      return ReduceAs<F32>(from, to, count, op);
    case kernels::DType::kF64:
      return ReduceAs<F64>(from, to, count, op);
    case kernels::DType::kBF16:
      return ReduceAs<Bf16>(from, to, count, op);
    case kernels::DType::kF16:
      return ReduceAs<F16>(from, to, count, op);
    case kernels::DType::kI32:
      return ReduceAs<Integer<int32_t, uint32_t>>(from, to, count, op);
    case kernels::DType::kI64:
      return ReduceAs<Integer<int64_t, uint64_t>>(from, to, count, op);
    default:
      return;  // CanReduce
  }
}

}  // namespace bowline
