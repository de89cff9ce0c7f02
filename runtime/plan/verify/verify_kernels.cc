#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/sha256.h"
#include "runtime/plan/meaning/code_contract.h"
#include "runtime/plan/verify/verifier_parts.h"

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
      return Broken(pair_place, ": argument ", pair.output(), " must have access Write");
    }
    if (input.access() != fbs::Access::Read) {
      return Broken(pair_place, ": argument ", pair.input(), " must have access Read");
    }
    if (DenseBytes(output.dtype(), output.shape()) != DenseBytes(input.dtype(), input.shape())) {
      return Broken(pair_place, ": arguments ", pair.output(), " and ", pair.input(), " differ in size");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyGrid(absl::string_view place, const fbs::Grid& grid) {
  constexpr uint64_t kMaxBlocks = (uint64_t{1} << 31) - 1, kMaxThreads = 1024;
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

absl::Status VerifyRange(absl::string_view place, const fbs::ByRange& range) {
  if (range.extent() >= 1 && range.extent() <= static_cast<uint64_t>(INT64_MAX)) return absl::OkStatus();
  return Broken(place, ": the extent of its launches ", range.extent(), " must be 1 to 2^63 - 1");
}

absl::Status VerifyGeometry(absl::string_view place, const fbs::Kernel& kernel) {
  if (kernel.geometry_type() > fbs::Geometry::MAX) {
    return Broken(place, ": unknown geometry ", static_cast<int>(kernel.geometry_type()));
  }
  const bool absent = kernel.geometry_type() == fbs::Geometry::NONE || kernel.geometry() == nullptr;
  if (kernel.origin() != fbs::KernelOrigin::Generated) {
    if (absent) return absl::OkStatus();
    return Broken(place, ": it says how it is launched, but a registered kernel knows that itself");
  }
  return VisitGeometry(
      kernel, GeometryVisitor{[&](std::monostate) { return Broken(place, ": the geometry of its launches is absent"); },
                              [&](const fbs::ByRange& range) { return VerifyRange(place, range); },
                              [&](const fbs::Grid& grid) { return VerifyGrid(place, grid); }});
}

// Generated code reads the count in any case and clamps it; only that it is one is left to prove.
absl::Status VerifyValidRows(absl::string_view place, const fbs::Kernel& kernel) {
  const fbs::ValidRows* rows = kernel.valid_rows();
  if (rows == nullptr) return absl::OkStatus();
  if (kernel.origin() != fbs::KernelOrigin::Generated) {
    return Broken(place, ": it says which rows it leaves out, but of a registered kernel the registry knows that");
  }
  BOWLINE_RETURN_IF_ERROR(
      VerifyIndex(absl::StrCat(place, ": count of rows"), "argument", rows->count(), SizeOf(kernel.arguments())));
  const fbs::Argument& count = *kernel.arguments()->Get(rows->count());
  if (count.access() != fbs::Access::Read || count.dtype() != fbs::DType::I32 || SizeOf(count.shape()) != 1) {
    return Broken(place, ": its count of rows, argument ", rows->count(), ", is not read as i32 of one dimension");
  }
  std::set<uint32_t> named = {rows->count()};
  for (uint32_t i = 0; i < SizeOf(rows->arguments()); ++i) {
    const uint32_t index = rows->arguments()->Get(i);
    const std::string row_place = absl::StrCat(place, ": argument ", index, " with rows");
    BOWLINE_RETURN_IF_ERROR(VerifyIndex(row_place, "argument", index, SizeOf(kernel.arguments())));
    if (!named.insert(index).second) return Broken(row_place, " is named twice, or is the count");
    const auto* shape = kernel.arguments()->Get(index)->shape();
    const auto* first = kernel.arguments()->Get(rows->arguments()->Get(0))->shape();
    if (SizeOf(shape) == 0 || shape->Get(0) != first->Get(0)) {
      return Broken(row_place, " has another first dimension than others, which are the rows");
    }
  }
  for (uint32_t i = 0; i < SizeOf(kernel.arguments()); ++i) {
    if (kernel.arguments()->Get(i)->access() == fbs::Access::Read || named.count(i) > 0) continue;
    return Broken(place, ": argument ", i, " is written and not among those with rows");
  }
  return absl::OkStatus();
}

absl::Status VerifyDependences(absl::string_view place, const fbs::Kernel& kernel) {
  if (SizeOf(kernel.dependences()) > 0 && !CallsGeneratedCode(kernel)) {
    return Broken(place, ": it has dependences of its results, which only generated code may have");
  }
  const auto accesses = [&](uint32_t argument, bool (*mode)(fbs::Access)) {
    return argument < SizeOf(kernel.arguments()) && mode(kernel.arguments()->Get(argument)->access());
  };
  std::set<uint32_t> outputs;
  for (uint32_t i = 0; i < SizeOf(kernel.dependences()); ++i) {
    const fbs::Dependence& dependence = *kernel.dependences()->Get(i);
    const std::string dependence_place = absl::StrCat(place, ": dependence ", i);
    if (!accesses(dependence.output(), &Writes)) {
      return Broken(dependence_place, ": argument ", dependence.output(), " is not written");
    }
    if (!outputs.insert(dependence.output()).second) {
      return Broken(dependence_place, ": argument ", dependence.output(), " has another one");
    }
    for (uint32_t k = 0; k < SizeOf(dependence.inputs()); ++k) {
      if (!accesses(dependence.inputs()->Get(k), &Reads)) {
        return Broken(dependence_place, ": argument ", dependence.inputs()->Get(k), " is not read");
      }
    }
  }
  return absl::OkStatus();
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
    // dlsym takes a C string.
    if (kernel.name()->str().find('\0') != std::string::npos) return Broken(place, ": the symbol contains a NUL");
  }
  BOWLINE_RETURN_IF_ERROR(VerifyGeometry(place, kernel));
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
  BOWLINE_RETURN_IF_ERROR(VerifyInPlace(place, kernel));
  BOWLINE_RETURN_IF_ERROR(VerifyValidRows(place, kernel));
  BOWLINE_RETURN_IF_ERROR(VerifyDependences(place, kernel));
  return absl::OkStatus();
}

absl::Status VerifyCode(const std::string& place, const fbs::Code& code) {
  if (code.format()->size() == 0) return Broken(place, ": the format is empty");
  if (TextOf(code.format()) == kNoImageFormat) {
    if (code.data()->size() > 0) return Broken(place, ": it has data, but its format says that there is none");
  } else if (code.data()->size() == 0) {
    return Broken(place, ": there is no data");
  }
  BOWLINE_RETURN_IF_ERROR(VerifyAligned(place, "contracts", code.contracts()));
  if (code.hash() == nullptr) {
    if (SizeOf(code.contracts()) == 0) return absl::OkStatus();
    return Broken(place, ": it has contracts without a hash that covers them");
  }
  std::vector<fbs::ValueDigest> contracts;
  for (uint32_t i = 0; i < SizeOf(code.contracts()); ++i) contracts.push_back(*code.contracts()->Get(i));
  const Sha256Digest digest = CodeHash({code.data()->data(), code.data()->size()}, contracts);
  if (std::equal(digest.begin(), digest.end(), code.hash()->bytes()->begin())) return absl::OkStatus();
  return Broken(place, ": the hash is not that of the data and the contracts");
}

absl::Status VerifyImage(const fbs::Plan& plan, uint32_t index) {
  const fbs::Image& image = *plan.images()->Get(index);
  if (SizeOf(image.codes()) == 0) return Broken("image ", index, ": there is no code");
  std::set<std::pair<absl::string_view, absl::string_view>> known;
  for (uint32_t i = 0; i < image.codes()->size(); ++i) {
    const fbs::Code& code = *image.codes()->Get(i);
    const std::string place = absl::StrCat("image ", index, ": code ", i);
    BOWLINE_RETURN_IF_ERROR(VerifyCode(place, code));
    if (!known.emplace(TextOf(code.format()), TextOf(code.target())).second) {
      return Broken(place, ": format ", Quoted(code.format()), " for ",
                    TextOf(code.target()).empty() ? "the plan's target" : Quoted(code.target()), " is there twice");
    }
    if (TextOf(code.format()) == kNoImageFormat && image.codes()->size() > 1) {
      return Broken(place, ": its format says that there is no code, but the image has others");
    }
  }
  return absl::OkStatus();
}

// Codes with contracts were made for the kernels that call them.
class ContractVerifier {
 public:
  explicit ContractVerifier(const fbs::Plan& plan) : plan_(plan), contracts_(SizeOf(plan.images())) {
    for (size_t image = 0; image < contracts_.size(); ++image) {
      for (const fbs::Code* code : *plan.images()->Get(static_cast<uint32_t>(image))->codes()) {
        std::set<Digest>& known = contracts_[image].emplace_back();
        for (uint32_t i = 0; i < SizeOf(code->contracts()); ++i) {
          known.insert({code->contracts()->Get(i)->low(), code->contracts()->Get(i)->high()});
        }
      }
    }
  }

  absl::Status Verify(uint32_t index) const {
    const fbs::Kernel& kernel = *plan_.kernels()->Get(index);
    if (!CallsGeneratedCode(kernel)) return absl::OkStatus();
    const Digest contract = ContractOf(kernel);
    for (const std::set<Digest>& known : contracts_[kernel.image()]) {
      if (known.empty() || known.count(contract) > 0) continue;
      return Broken("kernel ", index, " ", Quoted(kernel.name()), ": the code of image ", kernel.image(),
                    " was not made for it: its symbol, its launches, its arguments or its in-place pairs were changed "
                    "after the code was generated; compile the model again");
    }
    return absl::OkStatus();
  }

 private:
  const fbs::Plan& plan_;
  std::vector<std::vector<std::set<Digest>>> contracts_;  // by image, then code
};

}  // namespace

absl::Status VerifyKernels(const fbs::Plan& plan) {
  for (uint32_t i = 0; i < SizeOf(plan.images()); ++i) BOWLINE_RETURN_IF_ERROR(VerifyImage(plan, i));
  for (uint32_t i = 0; i < plan.kernels()->size(); ++i) BOWLINE_RETURN_IF_ERROR(VerifyKernel(plan, i));
  const ContractVerifier contracts(plan);
  for (uint32_t i = 0; i < plan.kernels()->size(); ++i) BOWLINE_RETURN_IF_ERROR(contracts.Verify(i));
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
