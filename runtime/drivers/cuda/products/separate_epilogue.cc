#include "runtime/drivers/cuda/products/separate_epilogue.h"

namespace bowline {

using kernels::cuda::EpilogueProgram;
using kernels::cuda::EpilogueStep;

absl::StatusOr<std::unique_ptr<SeparateEpilogue>> SeparateEpilogue::Create(CudaCard* card, const std::string& kernel,
                                                                           const kernels::cuda::LibraryProduct& product,
                                                                           size_t arguments, size_t scratch_bytes,
                                                                           const GemmOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(const EpilogueProgram program,
                           kernels::cuda::ProgramWithoutLibraryEpilogue(product, scratch_bytes));
  std::unique_ptr<SeparateEpilogue> made(new SeparateEpilogue());
  for (const EpilogueStep& step : program.steps) {
    std::unique_ptr<Gemm>& gemm = made->products_[{step.product.m, step.product.n}];
    if (gemm == nullptr) {
      BOWLINE_ASSIGN_OR_RETURN(gemm, Gemm::Create(card, step.product, program.workspace_bytes, options));
    }
    BOWLINE_ASSIGN_OR_RETURN(CudaLaunch launch, CudaLaunch::Create(card, kernel, step.launch, arguments));
    made->steps_.push_back({gemm.get(), step.addresses, std::move(launch)});
  }
  return made;
}

absl::Status SeparateEpilogue::Submit(CUstream stream, absl::Span<const hal::DeviceAddress> arguments,
                                      hal::DeviceAddress scratch, LaunchParameters& parameters) const {
  for (const Step& step : steps_) {
    std::array<hal::DeviceAddress, 3> addresses = {};
    for (size_t i = 0; i < addresses.size(); ++i) addresses[i] = ValueOf(step.addresses[i], arguments, scratch);
    BOWLINE_RETURN_IF_ERROR(step.product->Submit(stream, addresses, scratch));
    BOWLINE_RETURN_IF_ERROR(step.launch.Submit(stream, arguments, scratch, parameters));
  }
  return absl::OkStatus();
}

}  // namespace bowline
