#include "kernels/signatures/signature_check.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/registry/valid_rows.h"

namespace bowline::kernels {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 47;  // the user half of an x86-64 address space
constexpr int kMaxThreads = 4096;

std::string_view NameOfAccess(Access access) {
  switch (access) {
    case Access::kRead:
      return "read";
    case Access::kWrite:
      return "written";
    case Access::kReadWrite:
      return "read and written";
  }
  return "an unknown access";
}

constexpr auto AppendText = [](std::string* out, std::string_view text) { out->append(text); };

}  // namespace

absl::Status Refuse(const Signature& signature, std::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat("kernel '", absl::Utf8SafeCEscape(signature.kernel), "': ", Text(message)));
}

absl::Status CheckExtents(const Signature& signature, std::string_view name, const TensorSpec& spec) {
  int64_t bytes = static_cast<int64_t>(SizeOf(spec.dtype));
  for (int64_t extent : spec.shape) {
    if (extent < 1 || extent > kMaxBytes / bytes) {
      return Refuse(signature, absl::StrCat("argument '", Text(name), "' has shape [", absl::StrJoin(spec.shape, ", "),
                                            "]; every extent must be at least 1 and the size below 2^47 bytes"));
    }
    bytes *= extent;
  }
  return absl::OkStatus();
}

absl::Status CheckSignature(const Signature& signature, absl::Span<const ArgumentRule> arguments,
                            std::initializer_list<std::string_view> attributes) {
  if (signature.threads < 1 || signature.threads > kMaxThreads) {
    return Refuse(signature, absl::StrCat("threads is ", signature.threads, "; give 1 to ", kMaxThreads));
  }
  if (signature.arguments.size() != arguments.size()) {
    return Refuse(signature, absl::StrCat("has ", signature.arguments.size(), " arguments; it takes ", arguments.size(),
                                          ": ", absl::StrJoin(arguments, ", ", [](std::string* out, const auto& rule) {
                                            out->append(rule.name);
                                          })));
  }
  const TensorSpec* spec = signature.arguments.data();
  for (const ArgumentRule& rule : arguments) {
    if (spec->dtype != rule.dtype) {
      return Refuse(signature, absl::StrCat("argument '", Text(rule.name), "' is ", NameOf(spec->dtype), "; only ",
                                            NameOf(rule.dtype), " is supported"));
    }
    if (spec->access != rule.access) {
      return Refuse(signature,
                    absl::StrCat("argument '", Text(rule.name), "' is declared ", Text(NameOfAccess(spec->access)),
                                 " but is ", Text(NameOfAccess(rule.access))));
    }
    if (rule.rank >= 0 && spec->shape.size() != static_cast<size_t>(rule.rank)) {
      return Refuse(signature, absl::StrCat("argument '", Text(rule.name), "' has rank ", spec->shape.size(), "; rank ",
                                            rule.rank, " is needed"));
    }
    BOWLINE_KERNEL_RETURN_IF_ERROR(CheckExtents(signature, rule.name, *spec));
    ++spec;
  }
  if (const Attribute* unknown = AttributeOutside(signature, attributes); unknown != nullptr) {
    return Refuse(signature, absl::StrCat("has no attribute '", absl::Utf8SafeCEscape(unknown->name), "'; it has ",
                                          attributes.size() == 0 ? std::string("none")
                                                                 : absl::StrJoin(attributes, ", ", AppendText)));
  }
  std::set<std::string_view> seen;
  for (const Attribute& attribute : signature.attributes) {
    if (!seen.insert(attribute.name).second) {
      return Refuse(signature, absl::StrCat("attribute '", attribute.name, "' is given twice"));
    }
  }
  return absl::OkStatus();
}

const Attribute* AttributeOutside(const Signature& signature, absl::Span<const std::string_view> known) {
  for (const Attribute& attribute : signature.attributes) {
    if (std::find(known.begin(), known.end(), attribute.name) == known.end()) return &attribute;
  }
  return nullptr;
}

absl::Status CheckShape(const Signature& signature, size_t index, std::string_view name,
                        absl::Span<const int64_t> expected, std::string_view meaning) {
  const std::vector<int64_t>& shape = signature.arguments[index].shape;
  if (absl::Span<const int64_t>(shape) == expected) return absl::OkStatus();
  return Refuse(signature, absl::StrCat("argument '", Text(name), "' has shape [", absl::StrJoin(shape, ", "),
                                        "]; it must be ", Text(meaning), " = [", absl::StrJoin(expected, ", "), "]"));
}

absl::StatusOr<bool> LeavesRowsOut(const Signature& signature) {
  for (const Attribute& attribute : signature.attributes) {
    if (attribute.name != kLeavesRowsOut) continue;
    if (attribute.ints == std::vector<int64_t>{1}) return true;
    return Refuse(signature, absl::StrCat("attribute '", Text(kLeavesRowsOut), "' must be 1, or left out"));
  }
  return false;
}

absl::StatusOr<double> FiniteFloat(const Signature& signature, std::string_view name) {
  absl::StatusOr<double> value = signature.Float(name);
  if (value.ok() && !std::isfinite(*value)) {
    return Refuse(signature, absl::StrCat("attribute '", Text(name), "' must be finite"));
  }
  return value;
}

}  // namespace bowline::kernels
