#include "kernels/cuda/programs.h"

#include <functional>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/signatures/signature_check.h"
#include "types/computed_types.h"

namespace bowline::kernels::cuda {

absl::StatusOr<KernelProgram> ProgramOf(const Signature& signature) {
  static const auto* kernels = new std::map<std::string, CudaKernel, std::less<>>{
#define BOWLINE_CUDA_KERNEL(Name, name) {name, Name##Cuda()},
#include "kernels/cuda/kernels.inc"
#undef BOWLINE_CUDA_KERNEL
  };
  const auto found = kernels->find(signature.kernel);
  if (found != kernels->end()) {
    if (const Attribute* other = AttributeOutside(signature, found->second.attributes); other != nullptr) {
      return Refuse(signature, absl::StrCat("CUDA devices do not compute attribute '", other->name,
                                            "'; compile for another --target, or leave out the option that needs it"));
    }
    for (const TensorSpec& argument : signature.arguments) {
      if (IsComputedIn(argument.dtype) && argument.dtype != DType::kF32 && argument.dtype != DType::kBF16) {
        return Refuse(signature, absl::StrCat("is not computed in ", NameOf(argument.dtype),
                                              " by CUDA devices; compile with --dtype bf16 or f32"));
      }
    }
    return found->second.program(signature);
  }
  return absl::NotFoundError(absl::StrCat(
      "a CUDA device has no kernel '", signature.kernel, "'; it has ",
      absl::StrJoin(*kernels, ", ", [](std::string* out, const auto& kernel) { out->append(kernel.first); })));
}

}  // namespace bowline::kernels::cuda
