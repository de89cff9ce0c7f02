#ifndef BOWLINE_KERNELS_SIGNATURES_SIGNATURE_CHECK_H_
#define BOWLINE_KERNELS_SIGNATURES_SIGNATURE_CHECK_H_

// The checks with which every kernel's Create begins. All errors are kInvalidArgument and name the kernel and the
// argument or attribute.

#include <initializer_list>
#include <string_view>

#include "absl/strings/string_view.h"
#include "kernels/registry/registry.h"

#define BOWLINE_KERNEL_RETURN_IF_ERROR(expression)            \
  do {                                                        \
    if (absl::Status status_ = (expression); !status_.ok()) { \
      return status_;                                         \
    }                                                         \
  } while (false)

#define BOWLINE_KERNEL_ASSIGN_OR_RETURN(declaration, expression) \
  BOWLINE_KERNEL_ASSIGN_OR_RETURN_(declaration, expression, __LINE__)
#define BOWLINE_KERNEL_ASSIGN_OR_RETURN_(declaration, expression, line) \
  BOWLINE_KERNEL_ASSIGN_OR_RETURN_LINE_(declaration, expression, line)
#define BOWLINE_KERNEL_ASSIGN_OR_RETURN_LINE_(declaration, expression, line) \
  auto status_or_##line = (expression);                                      \
  if (!status_or_##line.ok()) return status_or_##line.status();              \
  declaration = *std::move(status_or_##line)

namespace bowline::kernels {

// `text` as absl::StrCat takes it: where Abseil was built as C++14, its string_view is not std's.
inline absl::string_view Text(std::string_view text) { return {text.data(), text.size()}; }

struct ArgumentRule {
  std::string_view name;
  Access access;
  DType dtype;
  int rank = -1;  // -1: any
};

// "kernel 'name': " before the pieces.
absl::Status Refuse(const Signature& signature, std::string_view message);

// Every extent at least 1 and the byte count below 2^47.
absl::Status CheckExtents(const Signature& signature, std::string_view name, const TensorSpec& spec);

// Number, access, dtype and rank of the arguments; every extent at least 1 and every byte count below 2^47, so that
// later products of extents cannot overflow; no attribute outside `attributes` and none twice; 1 <= threads <= 4096.
absl::Status CheckSignature(const Signature& signature, absl::Span<const ArgumentRule> arguments,
                            std::initializer_list<std::string_view> attributes);

// The first attribute of the signature that is not among `known`, or null. A device whose kernels are apart from those
// of `kernels/cpu` asks: an attribute that a signature gained since then would be read off it, but not computed.
const Attribute* AttributeOutside(const Signature& signature, absl::Span<const std::string_view> known);

// The argument's shape must be exactly `expected`, which the message explains as `meaning`, e.g. "[batch, seq]".
absl::Status CheckShape(const Signature& signature, size_t index, std::string_view name,
                        absl::Span<const int64_t> expected, std::string_view meaning);

// Returns whether the signature has kLeavesRowsOut, which must be 1.
absl::StatusOr<bool> LeavesRowsOut(const Signature& signature);

// A required attribute that must be a finite number.
absl::StatusOr<double> FiniteFloat(const Signature& signature, std::string_view name);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_SIGNATURE_CHECK_H_
