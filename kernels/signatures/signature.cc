#include "absl/strings/str_cat.h"
#include "kernels/registry/registry.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

absl::Status AttributeError(const Signature& signature, std::string_view name, std::string_view needed) {
  const bool missing = signature.Find(name) == nullptr;
  return absl::InvalidArgumentError(absl::StrCat("kernel '", signature.kernel, "': attribute '", Text(name),
                                                 missing ? "' is missing; it must be " : "' must be ", Text(needed)));
}

}  // namespace

int64_t TensorSpec::ElementCount() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

size_t TensorSpec::ByteCount() const { return static_cast<size_t>(ElementCount()) * SizeOf(dtype); }

const Attribute* Signature::Find(std::string_view name) const {
  for (const Attribute& attribute : attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

absl::StatusOr<int64_t> Signature::Int(std::string_view name) const {
  const Attribute* attribute = Find(name);
  if (attribute == nullptr || attribute->ints.size() != 1) return AttributeError(*this, name, "one integer");
  return attribute->ints[0];
}

absl::StatusOr<double> Signature::Float(std::string_view name) const {
  const Attribute* attribute = Find(name);
  if (attribute == nullptr || attribute->floats.size() != 1) return AttributeError(*this, name, "one number");
  return attribute->floats[0];
}

absl::StatusOr<std::vector<int64_t>> Signature::Ints(std::string_view name) const {
  const Attribute* attribute = Find(name);
  if (attribute == nullptr || !attribute->floats.empty() || !attribute->text.empty()) {
    return AttributeError(*this, name, "a list of integers");
  }
  return attribute->ints;
}

}  // namespace bowline::kernels
