#include "runtime/base/storage_type.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "runtime/base/half.h"

namespace bowline {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and are used in place");

struct TypeInfo {
  StorageType type;
  absl::string_view name;
  size_t size;
};

constexpr TypeInfo kTypes[] = {
    {StorageType::kF64, "F64", 8},   {StorageType::kF32, "F32", 4}, {StorageType::kF16, "F16", 2},
    {StorageType::kBF16, "BF16", 2}, {StorageType::kI64, "I64", 8}, {StorageType::kI32, "I32", 4},
    {StorageType::kI16, "I16", 2},   {StorageType::kI8, "I8", 1},   {StorageType::kU64, "U64", 8},
    {StorageType::kU32, "U32", 4},   {StorageType::kU16, "U16", 2}, {StorageType::kU8, "U8", 1},
    {StorageType::kBool, "BOOL", 1},
};

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

}  // namespace

size_t SizeOf(StorageType type) { return kTypes[static_cast<size_t>(type)].size; }

absl::string_view NameOf(StorageType type) { return kTypes[static_cast<size_t>(type)].name; }

absl::optional<StorageType> StorageTypeFromName(absl::string_view name) {
  for (const TypeInfo& info : kTypes) {
    if (info.name == name) return info.type;
  }
  return absl::nullopt;
}

absl::string_view SupportedStorageTypes() { return "F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL"; }

void ConvertToF32(StorageType type, const uint8_t* bytes, absl::Span<float> out) {
  switch (type) {
    case StorageType::kF64:
      return ConvertElements<double>(bytes, out, NarrowToF32);
    case StorageType::kF32:
      if (!out.empty()) std::memcpy(out.data(), bytes, out.size() * sizeof(float));
      return;
    case StorageType::kF16:
      return ConvertElements<uint16_t>(bytes, out, F16ToF32);
    case StorageType::kBF16:
      return ConvertElements<uint16_t>(bytes, out, Bf16ToF32);
    case StorageType::kI64:
      return CastElements<int64_t>(bytes, out);
    case StorageType::kI32:
      return CastElements<int32_t>(bytes, out);
    case StorageType::kI16:
      return CastElements<int16_t>(bytes, out);
    case StorageType::kI8:
      return CastElements<int8_t>(bytes, out);
    case StorageType::kU64:
      return CastElements<uint64_t>(bytes, out);
    case StorageType::kU32:
      return CastElements<uint32_t>(bytes, out);
    case StorageType::kU16:
      return CastElements<uint16_t>(bytes, out);
    case StorageType::kU8:
      return CastElements<uint8_t>(bytes, out);
    case StorageType::kBool:
      return ConvertElements<uint8_t>(bytes, out, [](uint8_t element) { return element != 0 ? 1.0f : 0.0f; });
  }
}

bool CanConvert(StorageType from, StorageType to) {
  const auto is_float = [](StorageType type) {
    return type == StorageType::kF64 || type == StorageType::kF32 || type == StorageType::kF16 ||
           type == StorageType::kBF16;
  };
  return from == to || (is_float(from) && is_float(to) && to != StorageType::kF64);
}

void Convert(StorageType from, absl::Span<const uint8_t> bytes, StorageType to, uint8_t* out) {
  if (from == to) {
    if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
    return;
  }
  float values[1024];
  for (size_t count = bytes.size() / SizeOf(from); count > 0;) {
    const size_t some = std::min(count, std::size(values));
    ConvertToF32(from, bytes.data(), absl::MakeSpan(values, some));
    for (size_t i = 0; i < some; ++i, out += SizeOf(to)) {
      const uint16_t half = to == StorageType::kBF16 ? F32ToBf16(values[i]) : F32ToF16(values[i]);
      if (to == StorageType::kF32) {
        std::memcpy(out, &values[i], sizeof(float));
      } else {
        std::memcpy(out, &half, sizeof(half));
      }
    }
    bytes.remove_prefix(some * SizeOf(from));
    count -= some;
  }
}

}  // namespace bowline
