#include "runtime/train/tensors/non_finite.h"

#include <algorithm>
#include <cstring>

namespace bowline {
namespace {

// A number whose exponent has all bits is infinite or NaN (IEEE 754, section 3.4; bf16 is the upper half of f32).
template <typename Word>
std::optional<size_t> FirstWithExponent(absl::Span<const uint8_t> bytes, Word exponent) {
  constexpr size_t kBlock = 4096;
  const size_t count = bytes.size() / sizeof(Word);
  const auto word = [&](size_t i) {
    Word value;
    std::memcpy(&value, bytes.data() + i * sizeof(Word), sizeof(Word));
    return value;
  };
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, count);
    // Without a branch, so that compilers vectorize it.
    Word found = 0;
    for (size_t i = begin; i < end; ++i) found |= static_cast<Word>((word(i) & exponent) == exponent);
    if (found == 0) continue;
    for (size_t i = begin; i < end; ++i) {
      if ((word(i) & exponent) == exponent) return i;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<size_t> FirstNonFinite(ElementType type, absl::Span<const uint8_t> bytes) {
  switch (type) {
    case ElementType::kF32:
      return FirstWithExponent<uint32_t>(bytes, 0x7f800000);
    case ElementType::kF64:
      return FirstWithExponent<uint64_t>(bytes, 0x7ff0000000000000);
    case ElementType::kBF16:
      return FirstWithExponent<uint16_t>(bytes, 0x7f80);
    case ElementType::kF16:
      return FirstWithExponent<uint16_t>(bytes, 0x7c00);
    default:
      return std::nullopt;
  }
}

}  // namespace bowline
