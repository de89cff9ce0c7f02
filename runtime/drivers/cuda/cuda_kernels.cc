#include "runtime/drivers/cuda/cuda_kernels.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/kernel_program.h"
#include "runtime/drivers/cuda/cuda_function.h"
#include "runtime/drivers/cuda/cuda_launchable.h"

namespace bowline {
namespace {

using kernels::cuda::DeviceLaunch;
using kernels::cuda::KernelProgram;
using kernels::cuda::Parameter;

class RegisteredKernel : public CudaLaunchable {
 public:
  RegisteredKernel(std::string name, KernelProgram program) : name_(std::move(name)), program_(std::move(program)) {}

  absl::Status Prepare(CudaCard* card, size_t arguments, const CudaKernelOptions& options) {
    arguments_ = arguments;
    BOWLINE_RETURN_IF_ERROR(PrepareAttention(card, options.attention));
    if (attention_ != nullptr) return absl::OkStatus();
    for (const DeviceLaunch& launch : program_.launches) {
      BOWLINE_ASSIGN_OR_RETURN(const CUfunction found, card->KernelFunction(launch.function));
      BOWLINE_ASSIGN_OR_RETURN(CudaFunction function, CudaFunction::Create(card, found, launch.function));
      BOWLINE_RETURN_IF_ERROR(CheckParameters(launch, function));
      BOWLINE_RETURN_IF_ERROR(function.Prepare(launch.blocks, launch.threads, launch.shared_bytes));
      functions_.push_back(std::move(function));
    }
    for (const kernels::cuda::LibraryProduct& product : program_.products) {
      BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<Gemm> gemm,
                               Gemm::Create(card, product, program_.scratch_bytes, options.gemm));
      products_.push_back(std::move(gemm));
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
    for (size_t i = 0; i < functions_.size(); ++i) {
      const DeviceLaunch& launch = program_.launches[i];
      parameters.Clear();
      for (const Parameter& parameter : launch.parameters) parameters.Add(ValueOf(parameter, arguments, scratch));
      BOWLINE_RETURN_IF_ERROR(
          functions_[i].Launch(stream, launch.blocks, launch.threads, launch.shared_bytes, parameters.Pointers()));
    }
    for (const std::unique_ptr<Gemm>& product : products_) {
      BOWLINE_RETURN_IF_ERROR(product->Submit(stream, arguments, scratch));
    }
    return absl::OkStatus();
  }

 private:
  static uint64_t ValueOf(const Parameter& parameter, absl::Span<const hal::DeviceAddress> arguments,
                          hal::DeviceAddress scratch) {
    switch (parameter.kind) {
      case Parameter::Kind::kArgument:
        return arguments[parameter.index] + parameter.value;
      case Parameter::Kind::kScratch:
        return scratch + parameter.value;
      case Parameter::Kind::kConstant:
        break;
    }
    return parameter.value;
  }

  // By cuDNN, if it can and may; else the launches remain.
  absl::Status PrepareAttention(CudaCard* card, const AttentionOptions& options) {
    const bool is_attention = name_ == "attention_forward" || name_ == "attention_backward";
    if (!is_attention || options.way == AttentionWay::kOwn) return absl::OkStatus();
    absl::StatusOr<std::unique_ptr<Attention>> made =
        program_.attention.has_value()
            ? CreateCudnnAttention(card, *program_.attention, program_.scratch_bytes, options)
            : absl::UnimplementedError(
                  "cuDNN computes attention of bf16, of heads of 8, 16, ... 256 elements and of "
                  "less than 2^24 rows; the gradient of more than one query and key");
    if (made.ok()) {
      attention_ = *std::move(made);
      return absl::OkStatus();
    }
    if (options.way == AttentionWay::kCudnn) {
      return absl::FailedPreconditionError(absl::StrCat("attention=cudnn, but ", made.status().message(),
                                                        "; attention=auto takes the driver's own "
                                                        "kernels where cuDNN cannot be had"));
    }
    if (program_.attention.has_value()) {
      note_ = absl::StrCat("'", name_,
                           "' is computed by the driver's own kernels, not by cuDNN: ", made.status().message());
    }
    return absl::OkStatus();
  }

  // The program and the image are made by one build, so that a difference is a defect of it.
  absl::Status CheckParameters(const DeviceLaunch& launch, const CudaFunction& function) const {
    const std::vector<size_t>& expected = function.parameters();
    const auto defect = [&](const auto&... what) {
      return absl::InternalError(absl::StrCat("kernel '", name_, "': the function '", launch.function, "' ", what...));
    };
    if (expected.size() != launch.parameters.size()) {
      return defect("has ", expected.size(), " parameters, and its program gives ", launch.parameters.size());
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      const Parameter& given = launch.parameters[i];
      if (expected[i] != given.bytes) {
        return defect("has ", expected[i], " bytes for its parameter ", i, ", and its program gives ", given.bytes);
      }
      if (given.kind == Parameter::Kind::kArgument && given.index >= arguments_) {
        return defect("is given argument ", given.index, " of ", arguments_);
      }
    }
    return absl::OkStatus();
  }

  std::string name_;
  KernelProgram program_;
  size_t arguments_ = 0;
  std::vector<CudaFunction> functions_;          // the functions of the launches
  std::vector<std::unique_ptr<Gemm>> products_;  // the products, in order
  std::unique_ptr<Attention> attention_;         // in place of both
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
