#ifndef BOWLINE_TYPES_ELEMENT_TYPE_H_
#define BOWLINE_TYPES_ELEMENT_TYPE_H_

// The types of tensor elements in programs, plans, kernels and files. One table has their sizes and names. This header
// uses only the standard library, so that kernels, runtime, dialects and compiler can include it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bowline {

// The first ten have the values of bowline.fbs.DType. Others never stand in a plan.
enum class ElementType : uint8_t {
  kF32 = 0,
  kF64,
  kBF16,
  kF16,
  kI64,
  kI32,
  kU16,
  kI8,
  kU8,
  kBool,
  // The following are in files alone.
  kI16,
  kU32,
  kU64,
  // Blocks of small integers with common scales, as GGUF has them.
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};

enum class ElementKind : uint8_t { kFloat, kSigned, kUnsigned, kBool, kQuantized };

struct ElementTypeInfo {
  ElementType type;
  ElementKind kind;
  std::string_view name;         // in messages and options, and, but for case, in bowline.fbs.DType: "bf16"
  std::string_view mlir;         // the builtin type: "bf16", "ui16"; empty: there is none
  std::string_view safetensors;  // in headers: "BF16", "BOOL"; empty: such files have no such type
  std::string_view npy;          // in headers: "<f2"; empty: NumPy has no such type
  int gguf;                      // GGUF's number of the type, whose name there is `name` in capitals; -1: it has none
  int block_elements;            // consecutive elements that are stored together; 1: each by itself
  int block_bytes;
};

inline constexpr ElementTypeInfo kElementTypes[] = {
    {ElementType::kF32, ElementKind::kFloat, "f32", "f32", "F32", "<f4", 0, 1, 4},
    {ElementType::kF64, ElementKind::kFloat, "f64", "f64", "F64", "<f8", 28, 1, 8},
    {ElementType::kBF16, ElementKind::kFloat, "bf16", "bf16", "BF16", "", 30, 1, 2},
    {ElementType::kF16, ElementKind::kFloat, "f16", "f16", "F16", "<f2", 1, 1, 2},
    {ElementType::kI64, ElementKind::kSigned, "i64", "i64", "I64", "<i8", 27, 1, 8},
    {ElementType::kI32, ElementKind::kSigned, "i32", "i32", "I32", "<i4", 26, 1, 4},
    {ElementType::kU16, ElementKind::kUnsigned, "u16", "ui16", "U16", "<u2", -1, 1, 2},
    {ElementType::kI8, ElementKind::kSigned, "i8", "i8", "I8", "|i1", 24, 1, 1},
    {ElementType::kU8, ElementKind::kUnsigned, "u8", "ui8", "U8", "|u1", -1, 1, 1},
    {ElementType::kBool, ElementKind::kBool, "bool", "i1", "BOOL", "|b1", -1, 1, 1},
    {ElementType::kI16, ElementKind::kSigned, "i16", "", "I16", "<i2", 25, 1, 2},
    {ElementType::kU32, ElementKind::kUnsigned, "u32", "", "U32", "<u4", -1, 1, 4},
    {ElementType::kU64, ElementKind::kUnsigned, "u64", "", "U64", "<u8", -1, 1, 8},
    {ElementType::kQ8_0, ElementKind::kQuantized, "q8_0", "", "", "", 8, 32, 34},
    {ElementType::kQ4_0, ElementKind::kQuantized, "q4_0", "", "", "", 2, 32, 18},
    {ElementType::kQ4_1, ElementKind::kQuantized, "q4_1", "", "", "", 3, 32, 20},
    {ElementType::kQ5_0, ElementKind::kQuantized, "q5_0", "", "", "", 6, 32, 22},
    {ElementType::kQ5_1, ElementKind::kQuantized, "q5_1", "", "", "", 7, 32, 24},
    {ElementType::kQ2_K, ElementKind::kQuantized, "q2_k", "", "", "", 10, 256, 84},
    {ElementType::kQ3_K, ElementKind::kQuantized, "q3_k", "", "", "", 11, 256, 110},
    {ElementType::kQ4_K, ElementKind::kQuantized, "q4_k", "", "", "", 12, 256, 144},
    {ElementType::kQ5_K, ElementKind::kQuantized, "q5_k", "", "", "", 13, 256, 176},
    {ElementType::kQ6_K, ElementKind::kQuantized, "q6_k", "", "", "", 14, 256, 210},
};
inline constexpr int kElementTypeCount = sizeof(kElementTypes) / sizeof(kElementTypes[0]);
inline constexpr ElementType kLastInPlans = ElementType::kBool;

namespace internal {
constexpr bool RowsAreInOrder() {
  for (int i = 0; i < kElementTypeCount; ++i) {
    if (kElementTypes[i].type != static_cast<ElementType>(i)) return false;
  }
  return true;
}
}  // namespace internal
static_assert(internal::RowsAreInOrder(), "a row's place is its type's value");

// Returns false for a number that is no type. A file may hold such a number.
constexpr bool IsElementType(ElementType type) { return static_cast<int>(type) < kElementTypeCount; }

// `type` is one.
constexpr const ElementTypeInfo& InfoOf(ElementType type) { return kElementTypes[static_cast<int>(type)]; }

// Returns the bytes of an element that is stored by itself; 0 for types of blocks, and for values that are no type.
constexpr size_t SizeOf(ElementType type) {
  return IsElementType(type) && InfoOf(type).block_elements == 1 ? static_cast<size_t>(InfoOf(type).block_bytes) : 0;
}

// Returns the bytes of so many consecutive elements; nothing if they are no whole number of blocks, or if `type` is no
// type. The caller knows that the result is below 2^64.
constexpr std::optional<uint64_t> BytesOf(ElementType type, uint64_t elements) {
  if (!IsElementType(type)) return std::nullopt;
  const auto in_block = static_cast<uint64_t>(InfoOf(type).block_elements);
  if (elements % in_block != 0) return std::nullopt;
  return elements / in_block * static_cast<uint64_t>(InfoOf(type).block_bytes);
}

constexpr bool IsFloat(ElementType type) { return IsElementType(type) && InfoOf(type).kind == ElementKind::kFloat; }
constexpr bool IsInteger(ElementType type) {
  return IsElementType(type) &&
         (InfoOf(type).kind == ElementKind::kSigned || InfoOf(type).kind == ElementKind::kUnsigned);
}

// Returns whether collectives can sum it and take its maximum. Floating-point types of 16 bits are summed in f32.
constexpr bool CanReduce(ElementType type) {
  return IsFloat(type) || type == ElementType::kI32 || type == ElementType::kI64;
}

// "f32"; "type 77" of a number that is none.
std::string NameOf(ElementType type);

// "f32, f64, bf16": the names of all types for which `property` holds, for messages.
std::string NamesOf(bool (*property)(ElementType));

// The type with that name; absent: there is none.
std::optional<ElementType> ElementTypeFromName(std::string_view name);
std::optional<ElementType> ElementTypeFromMlir(std::string_view name);
std::optional<ElementType> ElementTypeFromSafetensors(std::string_view name);
std::optional<ElementType> ElementTypeFromNpy(std::string_view descr);
std::optional<ElementType> ElementTypeFromGguf(int number);

// "F32, F64, BF16": the names that headers of safetensors may have, for messages.
std::string SafetensorsTypeNames();

}  // namespace bowline

#endif  // BOWLINE_TYPES_ELEMENT_TYPE_H_
