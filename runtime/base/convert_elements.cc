#include "runtime/base/convert_elements.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>

#include "types/half.h"

namespace bowline {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and are used in place");

template <typename T, typename Convert>
void ConvertElements(const uint8_t* bytes, absl::Span<float> out, Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    T element;
    std::memcpy(&element, bytes + i * sizeof(T), sizeof(T));
    out[i] = convert(element);
  }
}

template <typename T>
void CastElements(const uint8_t* bytes, absl::Span<float> out) {
  ConvertElements<T>(bytes, out, [](T element) { return static_cast<float>(element); });
}

// An f64 beyond the range of f32 becomes infinity; the bare cast would be undefined.
float NarrowToF32(double value) {
  constexpr double kOverflow = 0x1.ffffffp127;  // the midpoint between the largest f32 and 2^128
  if (value >= kOverflow) return std::bit_cast<float>(0x7f800000u);
  if (value <= -kOverflow) return std::bit_cast<float>(0xff800000u);
  return static_cast<float>(value);
}

// Writes a value as one element.
using Narrower = void (*)(float value, uint8_t* out);

template <auto convert>
void NarrowTo(float value, uint8_t* out) {
  const auto element = convert(value);
  std::memcpy(out, &element, sizeof(element));
}

float Same(float value) { return value; }

// Returns the function that writes an f32 as an element of the type; null where values are not narrowed to it.
Narrower NarrowerOf(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return NarrowTo<Same>;
    case ElementType::kBF16:
      return NarrowTo<F32ToBf16>;
    case ElementType::kF16:
      return NarrowTo<F32ToF16>;
    default:
      return nullptr;
  }
}

}  // namespace

void ConvertToF32(ElementType type, const uint8_t* bytes, absl::Span<float> out) {
  switch (type) {
    case ElementType::kF64:
      return ConvertElements<double>(bytes, out, NarrowToF32);
    case ElementType::kF32:
      if (!out.empty()) std::memcpy(out.data(), bytes, out.size() * sizeof(float));
      return;
    case ElementType::kF16:
      return ConvertElements<uint16_t>(bytes, out, F16ToF32);
    case ElementType::kBF16:
      return ConvertElements<uint16_t>(bytes, out, Bf16ToF32);
    case ElementType::kI64:
      return CastElements<int64_t>(bytes, out);
    case ElementType::kI32:
      return CastElements<int32_t>(bytes, out);
    case ElementType::kI16:
      return CastElements<int16_t>(bytes, out);
    case ElementType::kI8:
      return CastElements<int8_t>(bytes, out);
    case ElementType::kU64:
      return CastElements<uint64_t>(bytes, out);
    case ElementType::kU32:
      return CastElements<uint32_t>(bytes, out);
    case ElementType::kU16:
      return CastElements<uint16_t>(bytes, out);
    case ElementType::kU8:
      return CastElements<uint8_t>(bytes, out);
    case ElementType::kBool:
      return ConvertElements<uint8_t>(bytes, out, [](uint8_t element) { return element != 0 ? 1.0f : 0.0f; });
    case ElementType::kQ8_0:
    case ElementType::kQ4_0:
    case ElementType::kQ4_1:
    case ElementType::kQ5_0:
    case ElementType::kQ5_1:
    case ElementType::kQ2_K:
    case ElementType::kQ3_K:
    case ElementType::kQ4_K:
    case ElementType::kQ5_K:
    case ElementType::kQ6_K:
      break;  // no such file has blocks
  }
  std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
}

bool CanConvert(ElementType from, ElementType to) { return from == to || (IsFloat(from) && NarrowerOf(to) != nullptr); }

void Convert(ElementType from, absl::Span<const uint8_t> bytes, ElementType to, uint8_t* out) {
  if (from == to) {
    if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
    return;
  }
  const Narrower narrow = NarrowerOf(to);
  float values[1024];
  for (size_t count = bytes.size() / SizeOf(from); count > 0;) {
    const size_t some = std::min(count, std::size(values));
    ConvertToF32(from, bytes.data(), absl::MakeSpan(values, some));
    for (size_t i = 0; i < some; ++i, out += SizeOf(to)) {
      narrow(values[i], out);
    }
    bytes.remove_prefix(some * SizeOf(from));
    count -= some;
  }
}

}  // namespace bowline
