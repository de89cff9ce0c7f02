#include "kernels/cpu/kernel_needs.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/scatter_scratch.h"
#include "kernels/registry/data_check.h"
#include "kernels/signatures/check_signature.h"
#include "kernels/signatures/embedding_signature.h"
#include "kernels/signatures/random_signature.h"
#include "kernels/signatures/signature_check.h"
#include "kernels/signatures/simple_signatures.h"

namespace bowline::kernels {
namespace {

struct Needs {
  std::string_view name;
  absl::StatusOr<size_t> (*scratch)(const Signature& signature, Isa isa);
};

const std::vector<Needs>& AllNeeds() {
  static const std::vector<Needs> all = [] {
    std::vector<Needs> needs = {
#define BOWLINE_KERNEL(Name, name) {name, &Name##Scratch},
#include "kernels/registry/kernels.inc"
#undef BOWLINE_KERNEL
    };
    std::sort(needs.begin(), needs.end(), [](const Needs& a, const Needs& b) { return a.name < b.name; });
    return needs;
  }();
  return all;
}

// The workspace of a kernel that needs none: 0, or the error that parsing its signature returned.
template <typename Shape>
absl::StatusOr<size_t> None(const absl::StatusOr<Shape>& shape) {
  if (!shape.ok()) return shape.status();
  return 0;
}

}  // namespace

absl::Span<const std::string_view> CpuKernelNames() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Needs& needs : AllNeeds()) all.push_back(needs.name);
    return all;
  }();
  return names;
}

absl::StatusOr<size_t> CpuKernelScratch(const Signature& signature, Isa isa) {
  for (const Needs& needs : AllNeeds()) {
    if (needs.name == signature.kernel) return needs.scratch(signature, isa);
  }
  return absl::NotFoundError(absl::StrCat(
      "there is no kernel '", signature.kernel, "'; this build has ",
      absl::StrJoin(AllNeeds(), ", ", [](std::string* out, const Needs& needs) { out->append(needs.name); })));
}

int64_t CpuArgumentAlignment(std::string_view kernel, Access access) {
  constexpr int64_t kCacheLine = 64;
  if (IsDataCheck(kernel)) return 0;  // which writes two words
  // Code reads elements wherever they lie, and may write whole cache lines past the caches.
  if (access != Access::kRead) return kCacheLine;
  // Attention reads two elements of bf16 as one word.
  return kernel == "attention_forward" || kernel == "attention_backward" ? kCacheLine : 0;
}

absl::StatusOr<size_t> FillScratch(const Signature& signature, Isa) { return None(ParseFill(signature)); }
absl::StatusOr<size_t> RopeAnglesScratch(const Signature& signature, Isa) { return None(ParseRopeAngles(signature)); }
absl::StatusOr<size_t> RandomNormalScratch(const Signature& signature, Isa) {
  return None(ParseRandomNormal(signature));
}
absl::StatusOr<size_t> RandomUniformScratch(const Signature& signature, Isa) {
  return None(ParseRandomUniform(signature));
}
absl::StatusOr<size_t> GatherRowsScratch(const Signature& signature, Isa) { return None(ParseGatherRows(signature)); }
absl::StatusOr<size_t> CheckIdsScratch(const Signature& signature, Isa) { return None(ParseCheckIds(signature)); }
absl::StatusOr<size_t> CheckOffsetsScratch(const Signature& signature, Isa) {
  return None(ParseCheckOffsets(signature));
}

absl::StatusOr<size_t> ScatterAddRowsScratch(const Signature& signature, Isa) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const EmbeddingShape shape, ParseScatterAddRows(signature));
  return ScatterScratchBytes(shape);
}

}  // namespace bowline::kernels
