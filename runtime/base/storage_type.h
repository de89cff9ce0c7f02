#ifndef BOWLINE_RUNTIME_BASE_STORAGE_TYPE_H_
#define BOWLINE_RUNTIME_BASE_STORAGE_TYPE_H_

// Element types of tensors in files. (What kernels compute with is kernels::DType, a subset.)

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace bowline {

enum class StorageType : uint8_t { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8, kBool };

// Bytes of one element.
size_t SizeOf(StorageType type);

// Names are those of safetensors headers: "F32", "BF16", "BOOL".
absl::string_view NameOf(StorageType type);
absl::optional<StorageType> StorageTypeFromName(absl::string_view name);

// All names, comma-separated, for messages.
absl::string_view SupportedStorageTypes();

// Converts out.size() elements of little-endian `bytes`, at any alignment, to f32: exact for the narrower types, to
// nearest even for f64 and wide integers; a bool is 0 or 1. `bytes` has at least out.size() * SizeOf(type) bytes.
void ConvertToF32(StorageType type, const uint8_t* bytes, absl::Span<float> out);

// Whether Convert takes it: two equal types, or a floating-point one and f32, f16 or bf16.
bool CanConvert(StorageType from, StorageType to);
// All elements of `bytes` to as many of type `to` at `out`: the same bits, or f32 in between, rounded to nearest even.
void Convert(StorageType from, absl::Span<const uint8_t> bytes, StorageType to, uint8_t* out);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_STORAGE_TYPE_H_
