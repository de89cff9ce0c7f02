#include "kernels/signatures/product_signature.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

constexpr size_t kOwnOperands = 2;

absl::StatusOr<const ProductEpilogue*> EpilogueOf(const Signature& signature, const Attribute& attribute) {
  if (const ProductEpilogue* found = FindProductEpilogue(attribute.text); found != nullptr) return found;
  return Refuse(
      signature,
      absl::StrCat("attribute 'epilogue' is '", absl::Utf8SafeCEscape(attribute.text), "'; it must be one of ",
                   absl::StrJoin(kProductEpilogues, ", ",
                                 [](std::string* out, const ProductEpilogue& known) { out->append(known.name); })));
}

struct Argument {
  std::string_view name;
  Access access;
  std::vector<int64_t> extents;  // of dimensions that may be divided further
};

// The arguments behind A and B.
std::vector<Argument> ArgumentsOf(const ProductEpilogue& epilogue, int64_t m, int64_t n) {
  std::vector<Argument> arguments;
  if (epilogue.bias) arguments.push_back({"bias", Access::kRead, {n}});
  if (epilogue.gradient) arguments.push_back({"input", Access::kRead, {m, n}});
  arguments.push_back({"C", Access::kWrite, {m, n}});
  if (epilogue.keeps) arguments.push_back({"kept", Access::kWrite, {m, n}});
  if (epilogue.sums != 0) arguments.push_back({"sums", Access::kWrite, {epilogue.sums == 'a' ? m : n}});
  return arguments;
}

std::string NamesOf(const std::vector<Argument>& arguments) {
  return absl::StrCat("A, B, ", absl::StrJoin(arguments, ", ", [](std::string* out, const Argument& argument) {
                        out->append(argument.name);
                      }));
}

absl::Status CheckArguments(const Signature& signature, const std::vector<Argument>& expected, DType type) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const Argument& argument = expected[i];
    const TensorSpec& spec = signature.arguments[kOwnOperands + i];
    const auto refuse = [&](const auto&... why) {
      return Refuse(signature, absl::StrCat("argument '", Text(argument.name), "' ", why...));
    };
    if (spec.access != argument.access) {
      return refuse("must be ", argument.access == Access::kRead ? "read" : "written", " and nothing else");
    }
    if (spec.dtype != type) return refuse("is ", NameOf(spec.dtype), "; it must have the type of C, ", NameOf(type));
    BOWLINE_KERNEL_RETURN_IF_ERROR(CheckExtents(signature, argument.name, spec));
    int64_t elements = 1;
    for (const int64_t extent : argument.extents) elements *= extent;
    if (spec.ElementCount() != elements) {
      return refuse("has shape [", absl::StrJoin(spec.shape, ", "), "]; it must have the ", elements, " elements of [",
                    absl::StrJoin(argument.extents, ", "), "]");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProductShape> ParseProduct(const Signature& signature) {
  const Attribute* attribute = signature.Find(kEpilogue);
  ProductShape shape;
  if (attribute == nullptr) {
    BOWLINE_KERNEL_ASSIGN_OR_RETURN(shape.product, ParseMatmul(signature));
    return shape;
  }
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(shape.epilogue, EpilogueOf(signature, *attribute));
  if (signature.has_epilogue) return Refuse(signature, "has an epilogue that is generated and one of a library");
  for (const std::string_view name : {"c_strides", "accumulate", "b_packed"}) {
    if (signature.Find(name) != nullptr) {
      return Refuse(signature, absl::StrCat("has attribute '", Text(name), "', and none with an 'epilogue' has it"));
    }
  }
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t batch, signature.Int("batch"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t m, signature.Int("m"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t n, signature.Int("n"));
  if (batch != 1) return Refuse(signature, absl::StrCat("batch is ", batch, "; with an 'epilogue' it must be 1"));

  const std::vector<Argument> arguments = ArgumentsOf(*shape.epilogue, m, n);
  if (signature.arguments.size() != kOwnOperands + arguments.size()) {
    return Refuse(signature, absl::StrCat("has ", signature.arguments.size(), " arguments; with the epilogue '",
                                          Text(shape.epilogue->name), "' it takes ", kOwnOperands + arguments.size(),
                                          ": ", NamesOf(arguments)));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const int index = static_cast<int>(kOwnOperands + i);
    const std::string_view name = arguments[i].name;
    (name == "C" ? shape.result : arguments[i].extents.size() == 1 ? shape.vector : shape.matrix) = index;
  }
  // Without the epilogue, the kernel is a product into a dense C.
  Signature own = signature;
  std::erase_if(own.attributes, [](const Attribute& known) { return known.name == kEpilogue; });
  own.attributes.push_back({"c_strides", {0, n, 1}, {}, {}});
  own.arguments = {signature.arguments[0], signature.arguments[1], signature.arguments[shape.result]};
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(shape.product, ParseMatmul(own));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckArguments(signature, arguments, shape.product.result));
  return shape;
}

}  // namespace bowline::kernels
