#include "runtime/drivers/cuda/card/cuda_launch.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

using kernels::cuda::DeviceLaunch;
using kernels::cuda::Parameter;

// The program and the image are made by one build, so that a difference is a defect of it.
absl::Status CheckParameters(const std::string& kernel, const DeviceLaunch& launch, const CudaFunction& function,
                             size_t arguments) {
  const std::vector<size_t>& expected = function.parameters();
  const auto defect = [&](const auto&... what) {
    return absl::InternalError(absl::StrCat("kernel '", kernel, "': the function '", launch.function, "' ", what...));
  };
  if (expected.size() != launch.parameters.size()) {
    return defect("has ", expected.size(), " parameters, and its program gives ", launch.parameters.size());
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const Parameter& given = launch.parameters[i];
    if (expected[i] != given.bytes) {
      return defect("has ", expected[i], " bytes for its parameter ", i, ", and its program gives ", given.bytes);
    }
    if (given.kind == Parameter::Kind::kArgument && given.index >= arguments) {
      return defect("is given argument ", given.index, " of ", arguments);
    }
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t ValueOf(const Parameter& parameter, absl::Span<const hal::DeviceAddress> arguments,
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

absl::StatusOr<CudaLaunch> CudaLaunch::Create(CudaCard* card, const std::string& kernel, const DeviceLaunch& launch,
                                              size_t arguments) {
  BOWLINE_ASSIGN_OR_RETURN(const CUfunction found, card->KernelFunction(launch.function));
  BOWLINE_ASSIGN_OR_RETURN(CudaFunction function, CudaFunction::Create(card, found, launch.function));
  BOWLINE_RETURN_IF_ERROR(CheckParameters(kernel, launch, function, arguments));
  BOWLINE_RETURN_IF_ERROR(function.Prepare(launch.blocks, launch.threads, launch.shared_bytes));
  return CudaLaunch(std::move(function), launch);
}

absl::Status CudaLaunch::Submit(CUstream stream, absl::Span<const hal::DeviceAddress> arguments,
                                hal::DeviceAddress scratch, LaunchParameters& parameters) const {
  parameters.Clear();
  for (const Parameter& parameter : launch_.parameters) parameters.Add(ValueOf(parameter, arguments, scratch));
  return function_.Launch(stream, launch_.blocks, launch_.threads, launch_.shared_bytes, parameters.Pointers());
}

}  // namespace bowline
