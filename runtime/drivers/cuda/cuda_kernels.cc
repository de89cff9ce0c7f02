#include "runtime/drivers/cuda/cuda_kernels.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/kernel_program.h"
#include "runtime/drivers/cuda/card/cuda_launch.h"
#include "runtime/drivers/cuda/card/cuda_launchable.h"
#include "runtime/drivers/cuda/products/separate_epilogue.h"

namespace bowline {
namespace {

using kernels::cuda::DeviceLaunch;
using kernels::cuda::KernelProgram;
using kernels::cuda::LibraryProduct;

std::string TypesText(const LibraryProduct& product) {
  return product.operands == product.result ? std::string(NameOf(product.operands))
                                            : absl::StrCat(NameOf(product.operands), " into ", NameOf(product.result));
}

std::string ProductText(const LibraryProduct& product) {
  const std::string epilogue =
      product.epilogue == nullptr
          ? ""
          : absl::StrCat(" with the epilogue '", std::string(product.epilogue->name), "', which --disable-step ",
                         std::string(kernels::StepOf(*product.epilogue)), " compiles without");
  return absl::StrCat("a product of ", product.batch, " times [", product.m, ", ", product.k, "] and [", product.k,
                      ", ", product.n, "] in ", TypesText(product), epilogue);
}

class RegisteredKernel : public CudaLaunchable {
 public:
  RegisteredKernel(std::string name, KernelProgram program) : name_(std::move(name)), program_(std::move(program)) {}

  absl::Status Prepare(CudaCard* card, size_t arguments, const CudaKernelOptions& options) {
    arguments_ = arguments;
    if (options.attention.by_cudnn) BOWLINE_RETURN_IF_ERROR(PrepareCudnn(card, options.attention));
    if (attention_ != nullptr) return absl::OkStatus();
    for (const DeviceLaunch& launch : program_.launches) {
      BOWLINE_ASSIGN_OR_RETURN(CudaLaunch made, CudaLaunch::Create(card, name_, launch, arguments));
      launches_.push_back(std::move(made));
    }
    for (const LibraryProduct& product : program_.products) {
      BOWLINE_RETURN_IF_ERROR(Annotate(PrepareProduct(card, product, options), ProductText(product)));
    }
    return absl::OkStatus();
  }

  const std::string& name() const override { return name_; }
  size_t ScratchBytes() const override { return program_.scratch_bytes; }
  std::string Note() const override { return note_; }
  absl::Status CheckGeometry(const hal::Geometry& geometry) const override {
    if (std::holds_alternative<std::monostate>(geometry)) return absl::OkStatus();
    return absl::InvalidArgumentError("a kernel of the registry divides its work itself and takes no geometry");
  }

  absl::Status Submit(CUstream stream, const hal::Geometry&, absl::Span<const hal::DeviceAddress> arguments,
                      hal::DeviceAddress scratch, LaunchParameters& parameters) const override {
    if (arguments.size() != arguments_) {
      return absl::InvalidArgumentError(
          absl::StrCat("the kernel has ", arguments_, " arguments and is launched with ", arguments.size()));
    }
    if (attention_ != nullptr) return attention_->Submit(stream, arguments, scratch);
    for (const CudaLaunch& launch : launches_) {
      BOWLINE_RETURN_IF_ERROR(launch.Submit(stream, arguments, scratch, parameters));
    }
    for (const std::unique_ptr<Gemm>& product : products_) {
      BOWLINE_RETURN_IF_ERROR(product->Submit(stream, arguments, scratch));
    }
    for (const std::unique_ptr<SeparateEpilogue>& product : separate_) {
      BOWLINE_RETURN_IF_ERROR(product->Submit(stream, arguments, scratch, parameters));
    }
    return absl::OkStatus();
  }

 private:
  // Fails if cuDNN cannot compute the attention of the program: there is no fallback.
  absl::Status PrepareCudnn(CudaCard* card, const AttentionOptions& options) {
    if (!program_.is_attention) return absl::OkStatus();
    absl::StatusOr<std::unique_ptr<Attention>> made =
        program_.attention.has_value()
            ? CreateCudnnAttention(card, *program_.attention, program_.scratch_bytes, options)
            : absl::UnimplementedError(
                  "cuDNN computes attention of bf16, of heads of 8, 16, ... 256 elements and of "
                  "less than 2^24 rows; the gradient of more than one query and key");
    if (!made.ok()) {
      return absl::FailedPreconditionError(absl::StrCat("attention=cudnn, but ", made.status().message(),
                                                        "; attention=auto takes the driver's own kernels"));
    }
    attention_ = *std::move(made);
    return absl::OkStatus();
  }

  // With its epilogue by the library, or the product alone where the library has no algorithm for both.
  absl::Status PrepareProduct(CudaCard* card, const LibraryProduct& product, const CudaKernelOptions& options) {
    if (product.epilogue == nullptr || !options.own_epilogues) {
      absl::StatusOr<std::unique_ptr<Gemm>> gemm = Gemm::Create(card, product, program_.scratch_bytes, options.gemm);
      if (product.epilogue == nullptr || !absl::IsUnimplemented(gemm.status())) {
        BOWLINE_RETURN_IF_ERROR(gemm.status());
        products_.push_back(*std::move(gemm));
        return absl::OkStatus();
      }
      note_ =
          absl::StrCat("the epilogue '", std::string(product.epilogue->name), "' of a product in ", TypesText(product),
                       " is computed by a function of the driver's own, after the product: ", gemm.status().message());
    }
    BOWLINE_ASSIGN_OR_RETURN(
        std::unique_ptr<SeparateEpilogue> separate,
        SeparateEpilogue::Create(card, name_, product, arguments_, program_.scratch_bytes, options.gemm));
    separate_.push_back(std::move(separate));
    return absl::OkStatus();
  }

  std::string name_;
  KernelProgram program_;
  size_t arguments_ = 0;
  std::vector<CudaLaunch> launches_;
  std::vector<std::unique_ptr<Gemm>> products_;
  std::vector<std::unique_ptr<SeparateEpilogue>> separate_;
  std::unique_ptr<Attention> attention_;  // in place of all of these
  std::string note_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateCudaKernel(CudaCard* card, const kernels::Signature& signature,
                                                                  const CudaKernelOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(KernelProgram program, kernels::cuda::ProgramOf(signature));
  if (!program.products.empty() && signature.arguments.size() < 3) {
    return absl::InternalError(absl::StrCat("kernel '", signature.kernel, "': a product of less than 3 arguments"));
  }
  BOWLINE_RETURN_IF_ERROR(card->MakeCurrent());
  auto kernel = std::make_unique<RegisteredKernel>(signature.kernel, std::move(program));
  BOWLINE_RETURN_IF_ERROR(Annotate(kernel->Prepare(card, signature.arguments.size(), options),
                                   absl::StrCat("kernel '", signature.kernel, "'")));
  return kernel;
}

}  // namespace bowline
