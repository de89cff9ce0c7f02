#include "runtime/drivers/cuda/cuda_executable.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/cuda/card/cuda_function.h"
#include "runtime/drivers/cuda/card/cuda_launchable.h"
#include "runtime/drivers/cuda/cuda_target.h"

namespace bowline {
namespace {

class GridKernel : public CudaLaunchable {
 public:
  explicit GridKernel(CudaFunction function) : function_(std::move(function)) {}

  const std::string& name() const override { return function_.name(); }

  absl::Status CheckGeometry(const hal::Geometry& geometry) const override {
    const auto* grid = std::get_if<hal::Grid>(&geometry);
    if (grid == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the function '", name(), "' is launched by a grid: code for a card knows no extent"));
    }
    if (grid->constants.size() > function_.parameters().size()) {
      return absl::InvalidArgumentError(absl::StrCat("the function '", name(), "' has ", function_.parameters().size(),
                                                     " parameters, and is launched with ", grid->constants.size(),
                                                     " constants"));
    }
    return function_.Prepare(grid->blocks, grid->threads, grid->shared_bytes);
  }

  absl::Status Submit(CUstream stream, const hal::Geometry& geometry, absl::Span<const hal::DeviceAddress> arguments,
                      hal::DeviceAddress, LaunchParameters& parameters) const override {
    const auto& grid = std::get<hal::Grid>(geometry);
    if (arguments.size() + grid.constants.size() != function_.parameters().size()) {
      return absl::InvalidArgumentError(absl::StrCat("the function has ", function_.parameters().size(),
                                                     " parameters, and is launched with ", arguments.size(),
                                                     " arguments and ", grid.constants.size(), " constants"));
    }
    parameters.Clear();
    for (const hal::DeviceAddress argument : arguments) parameters.Add(argument);
    for (const uint64_t constant : grid.constants) parameters.Add(constant);
    return function_.Launch(stream, grid.blocks, grid.threads, grid.shared_bytes, parameters.Pointers());
  }

 private:
  CudaFunction function_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<hal::Executable>> CudaExecutable::Load(CudaCard* card, absl::string_view format,
                                                                      absl::Span<const uint8_t> image) {
  if (!KnowsFormat(format)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cuda driver cannot load images of format '", format, "', only 'cubin' and 'ptx'"));
  }
  if (format == "cubin") BOWLINE_RETURN_IF_ERROR(CheckCubin(image));
  // Text ends with a zero.
  std::string bytes(reinterpret_cast<const char*>(image.data()), image.size());
  BOWLINE_RETURN_IF_ERROR(card->MakeCurrent());
  BOWLINE_ASSIGN_OR_RETURN(const CUmodule module,
                           LoadModule(card->api(), bytes.c_str(), absl::StrCat("the image of format '", format, "'")));
  return std::unique_ptr<hal::Executable>(new CudaExecutable(card, module));
}

CudaExecutable::~CudaExecutable() {
  if (card_->MakeCurrent().ok()) card_->api().cuModuleUnload(module_);
}

absl::StatusOr<std::unique_ptr<hal::Launchable>> CudaExecutable::Resolve(const std::string& symbol, hal::Work) const {
  BOWLINE_RETURN_IF_ERROR(card_->MakeCurrent());
  BOWLINE_ASSIGN_OR_RETURN(const CUfunction found, FindFunction(card_->api(), module_, symbol));
  BOWLINE_ASSIGN_OR_RETURN(CudaFunction function, CudaFunction::Create(card_, found, symbol));
  for (const size_t bytes : function.parameters()) {
    if (bytes <= sizeof(uint64_t)) continue;
    return absl::InvalidArgumentError(absl::StrCat("the function '", symbol, "' has a parameter of ", bytes,
                                                   " bytes; those of a plan have at most 8"));
  }
  return std::make_unique<GridKernel>(std::move(function));
}

absl::StatusOr<const void*> CudaExecutable::ResolveFunction(const std::string& symbol) const {
  return absl::UnimplementedError(absl::StrCat("'", symbol,
                                               "' cannot be an epilogue: kernels of a card call no code of a plan; "
                                               "compile with --disable-step fuse-epilogues"));
}

}  // namespace bowline
