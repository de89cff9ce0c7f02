#include <cmath>
#include <vector>

#include "runtime/plan/verifier_parts.h"

namespace bowline::verifier {
namespace {

absl::Status VerifyAttributes(absl::string_view place, const fbs::Kernel& kernel) {
  NameSet names("attribute name");
  for (uint32_t i = 0; i < SizeOf(kernel.attributes()); ++i) {
    const fbs::Attribute& attribute = *kernel.attributes()->Get(i);
    BOWLINE_RETURN_IF_ERROR(names.Insert(place, attribute.name()));
    BOWLINE_RETURN_IF_ERROR(VerifyAligned(place, "integers of an attribute", attribute.ints()));
    BOWLINE_RETURN_IF_ERROR(VerifyAligned(place, "numbers of an attribute", attribute.floats()));
    const int values = (SizeOf(attribute.ints()) > 0) + (SizeOf(attribute.floats()) > 0) +
                       (attribute.text() != nullptr && attribute.text()->size() > 0);
    if (values > 1) {
      return Broken(place, ": attribute ", Quoted(attribute.name()), " has more than one of ints, floats and text");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyArguments(absl::string_view place, const fbs::Kernel& kernel) {
  for (uint32_t i = 0; i < SizeOf(kernel.arguments()); ++i) {
    const fbs::Argument& argument = *kernel.arguments()->Get(i);
    const std::string argument_place = absl::StrCat(place, ": argument ", i);
    if (argument.access() < fbs::Access::MIN || argument.access() > fbs::Access::MAX) {
      return Broken(argument_place, ": unknown access ", static_cast<int>(argument.access()));
    }
    BOWLINE_RETURN_IF_ERROR(VerifyType(argument_place, argument.dtype(), argument.shape()));
    BOWLINE_RETURN_IF_ERROR(VerifyAlignment(argument_place, static_cast<uint32_t>(AlignmentOf(argument))));
    if (AlignmentOf(argument) < ElementSize(argument.dtype())) {
      return Broken(argument_place, ": alignment ", argument.alignment(), " is less than the ",
                    ElementSize(argument.dtype()), " bytes of an element");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyInPlace(absl::string_view place, const fbs::Kernel& kernel) {
  const uint32_t count = SizeOf(kernel.arguments());
  for (uint32_t i = 0; i < SizeOf(kernel.in_place()); ++i) {
    const fbs::InPlace& pair = *kernel.in_place()->Get(i);
    const std::string pair_place = absl::StrCat(place, ": in_place pair ", i);
    BOWLINE_RETURN_IF_ERROR(VerifyIndex(pair_place, "output argument", pair.output(), count));
    BOWLINE_RETURN_IF_ERROR(VerifyIndex(pair_place, "input argument", pair.input(), count));
    const fbs::Argument& output = *kernel.arguments()->Get(pair.output());
    const fbs::Argument& input = *kernel.arguments()->Get(pair.input());
    if (output.access() != fbs::Access::Write) {
      return Broken(pair_place, ": argument ", pair.output(), " is not written only");
    }
    if (input.access() != fbs::Access::Read) {
      return Broken(pair_place, ": argument ", pair.input(), " is not read only");
    }
    if (DenseBytes(output.dtype(), output.shape()) != DenseBytes(input.dtype(), input.shape())) {
      return Broken(pair_place, ": arguments ", pair.output(), " and ", pair.input(), " differ in size");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyGrid(absl::string_view place, const fbs::Kernel& kernel) {
  constexpr uint64_t kMaxBlocks = (uint64_t{1} << 31) - 1, kMaxThreads = 1024;
  const fbs::Grid& grid = *kernel.grid();
  if (kernel.parallel_extent() != 0) return Broken(place, ": it has both a grid and a parallel_extent");
  const auto verify = [&](absl::string_view what, const flatbuffers::Vector<uint32_t>* extents, uint64_t most) {
    if (SizeOf(extents) > 3) return Broken(place, ": its grid has more than three extents of ", what);
    uint64_t count = 1;
    for (uint32_t d = 0; d < SizeOf(extents); ++d) {
      if (extents->Get(d) < 1 || extents->Get(d) > most) {
        return Broken(place, ": its grid has ", extents->Get(d), " ", what, " along an axis; it must be 1 to ", most);
      }
      count *= extents->Get(d);
      if (count > most) return Broken(place, ": its grid has more than ", most, " ", what);
    }
    return absl::OkStatus();
  };
  BOWLINE_RETURN_IF_ERROR(VerifyAligned(place, "constants", grid.constants()));
  BOWLINE_RETURN_IF_ERROR(verify("blocks", grid.blocks(), kMaxBlocks));
  return verify("threads", grid.threads(), kMaxThreads);
}

absl::Status VerifyKernel(const fbs::Plan& plan, uint32_t index) {
  const fbs::Kernel& kernel = *plan.kernels()->Get(index);
  const std::string place = absl::StrCat("kernel ", index, " ", Quoted(kernel.name()));
  if (kernel.name()->size() == 0) return Broken(place, ": the name is empty");
  if (kernel.origin() > fbs::KernelOrigin::MAX) {
    return Broken(place, ": unknown origin ", static_cast<int>(kernel.origin()));
  }
  if (kernel.origin() == fbs::KernelOrigin::Generated) {
    BOWLINE_RETURN_IF_ERROR(VerifyIndex(place, "image", kernel.image(), SizeOf(plan.images())));
    if (kernel.grid() != nullptr) {
      BOWLINE_RETURN_IF_ERROR(VerifyGrid(place, kernel));
    } else if (kernel.parallel_extent() < 1 || kernel.parallel_extent() > static_cast<uint64_t>(INT64_MAX)) {
      return Broken(place, ": parallel_extent ", kernel.parallel_extent(), " must be 1 to 2^63 - 1");
    }
    // dlsym takes a C string.
    if (kernel.name()->str().find('\0') != std::string::npos) return Broken(place, ": the symbol contains a NUL");
  } else if (kernel.grid() != nullptr) {
    return Broken(place, ": it has a grid, but only a generated kernel may");
  }
  if (kernel.epilogue() != nullptr && kernel.epilogue()->size() > 0) {
    if (kernel.origin() != fbs::KernelOrigin::Registered) {
      return Broken(place, ": it has an epilogue, but only a registered kernel may");
    }
    BOWLINE_RETURN_IF_ERROR(VerifyIndex(place, "image", kernel.image(), SizeOf(plan.images())));
    if (kernel.epilogue()->str().find('\0') != std::string::npos) {
      return Broken(place, ": the symbol of its epilogue contains a NUL");
    }
  }
  for (const double cost : {kernel.flops(), kernel.bytes_moved()}) {
    if (!std::isfinite(cost) || cost < 0) return Broken(place, ": cost ", cost, " must be finite and not negative");
  }
  BOWLINE_RETURN_IF_ERROR(VerifyAttributes(place, kernel));
  BOWLINE_RETURN_IF_ERROR(VerifyArguments(place, kernel));
  return VerifyInPlace(place, kernel);
}

}  // namespace

absl::Status VerifyKernels(const fbs::Plan& plan) {
  for (uint32_t i = 0; i < SizeOf(plan.images()); ++i) {
    const fbs::Image& image = *plan.images()->Get(i);
    if (image.format()->size() == 0) return Broken("image ", i, ": the format is empty");
    if (TextOf(image.format()) == kNoImageFormat) {
      if (image.data()->size() > 0) return Broken("image ", i, ": it has data, but its format says that there is none");
    } else if (image.data()->size() == 0) {
      return Broken("image ", i, ": there is no data");
    }
  }
  for (uint32_t i = 0; i < plan.kernels()->size(); ++i) BOWLINE_RETURN_IF_ERROR(VerifyKernel(plan, i));
  return absl::OkStatus();
}

}  // namespace bowline::verifier

namespace bowline {

absl::Status RequireCode(const fbs::Plan& plan) {
  if (HasCode(plan)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the plan has no machine code, as it was compiled with --no-codegen: it can be checked and simulated, but not "
      "run; compile the model again without that flag");
}

}  // namespace bowline
