#include "runtime/plan/meaning/kernel_digests.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "runtime/plan/meaning/digest_tags.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {

void AddAttributes(const fbs::Kernel& kernel, DigestBuilder& builder) {
  std::map<absl::string_view, const fbs::Attribute*> by_name;
  for (uint32_t i = 0; i < SizeOf(kernel.attributes()); ++i) {
    const fbs::Attribute* attribute = kernel.attributes()->Get(i);
    by_name.emplace(TextOf(attribute->name()), attribute);
  }
  builder.Add(by_name.size());
  for (const auto& [name, attribute] : by_name) {
    builder.Add(name).Add(TextOf(attribute->text()));
    builder.Add(SizeOf(attribute->ints()));
    for (uint32_t i = 0; i < SizeOf(attribute->ints()); ++i) {
      builder.Add(static_cast<uint64_t>(attribute->ints()->Get(i)));
    }
    builder.Add(SizeOf(attribute->floats()));
    for (uint32_t i = 0; i < SizeOf(attribute->floats()); ++i) {
      const double number = attribute->floats()->Get(i);
      uint64_t bits;
      std::memcpy(&bits, &number, sizeof bits);
      builder.Add(bits);
    }
  }
}

namespace {

void AddGrid(const fbs::Grid& grid, DigestBuilder& builder) {
  const auto add = [&](const auto* numbers) {
    builder.Add(SizeOf(numbers));
    for (uint32_t i = 0; i < SizeOf(numbers); ++i) builder.Add(static_cast<uint64_t>(numbers->Get(i)));
  };
  add(grid.blocks());
  add(grid.threads());
  builder.Add(grid.shared_bytes());
  add(grid.constants());
}

// Of a kernel whose last argument is its workspace.
uint64_t ScratchBytes(const fbs::Kernel& kernel) {
  const fbs::Argument& scratch = *kernel.arguments()->Get(SizeOf(kernel.arguments()) - 1);
  return *DenseBytes(scratch.dtype(), scratch.shape());
}

}  // namespace

void AddGeometry(const fbs::Kernel& kernel, DigestBuilder& builder) {
  builder.Add(static_cast<uint64_t>(kernel.geometry_type()));
  VisitGeometry(kernel,
                GeometryVisitor{[](std::monostate) {}, [&](const fbs::ByRange& range) { builder.Add(range.extent()); },
                                [&](const fbs::Grid& grid) { AddGrid(grid, builder); }});
}

KernelDigests::KernelDigests(const fbs::Plan& plan, WorkMeter& meter)
    : plan_(plan), meter_(meter), kernels_(plan.kernels()->size()), images_(SizeOf(plan.images())) {}

const Digest& KernelDigests::ImageDigest(uint32_t index) {
  absl::optional<Digest>& known = images_[index];
  if (!known.has_value()) {
    const fbs::Image& image = *plan_.images()->Get(index);
    DigestBuilder builder(kImageTag);
    for (const fbs::Code* code : *image.codes()) {
      builder.Add(TextOf(code->format())).Add(TextOf(code->target()));
      builder.Add(DigestOfData({code->data()->data(), code->data()->size()}, meter_));
    }
    known = builder.Finish();
  }
  return *known;
}

const Digest& KernelDigests::Of(const fbs::Launch& launch) {
  absl::optional<Digest>& known = kernels_[launch.kernel()].digest;
  if (known.has_value()) return *known;  // all launches of a kernel have a workspace, or none
  const fbs::Kernel& kernel = *plan_.kernels()->Get(launch.kernel());
  const absl::string_view epilogue = TextOf(kernel.epilogue());
  const bool generated = kernel.origin() == fbs::KernelOrigin::Generated;
  DigestBuilder builder(kKernelTag);
  builder.Add(static_cast<uint64_t>(kernel.origin())).Add(TextOf(kernel.name())).Add(epilogue);
  if (generated || !epilogue.empty()) builder.Add(ImageDigest(kernel.image()));
  if (generated) AddGeometry(kernel, builder);
  if (const fbs::ValidRows* rows = kernel.valid_rows()) {
    builder.Add(rows->count()).Add(SizeOf(rows->arguments()));
    for (const uint32_t argument : *rows->arguments()) builder.Add(argument);
  }
  AddAttributes(kernel, builder);
  const uint32_t arguments = SizeOf(kernel.arguments()) - HasScratchOperand(plan_, launch);
  builder.Add(arguments).Add(arguments < SizeOf(kernel.arguments()) ? ScratchBytes(kernel) : 0);
  for (uint32_t i = 0; i < arguments; ++i) {
    const fbs::Argument& argument = *kernel.arguments()->Get(i);
    builder.Add(static_cast<uint64_t>(argument.access())).Add(static_cast<uint64_t>(argument.dtype()));
    builder.Add(SizeOf(argument.shape()));
    for (uint32_t d = 0; d < SizeOf(argument.shape()); ++d) {
      builder.Add(static_cast<uint64_t>(argument.shape()->Get(d)));
    }
  }
  known = builder.Finish();
  return *known;
}

const std::vector<KernelDigests::Pair>& KernelDigests::InPlace(uint32_t index) {
  absl::optional<std::vector<Pair>>& known = kernels_[index].in_place;
  if (!known.has_value()) {
    known.emplace();
    const auto* pairs = plan_.kernels()->Get(index)->in_place();
    for (uint32_t i = 0; i < SizeOf(pairs); ++i) known->emplace_back(pairs->Get(i)->output(), pairs->Get(i)->input());
    std::sort(known->begin(), known->end());
    known->erase(std::unique(known->begin(), known->end()), known->end());
  }
  return *known;
}

bool KernelDigests::MayShare(uint32_t kernel, uint32_t output, uint32_t input) {
  const std::vector<Pair>& pairs = InPlace(kernel);
  return std::binary_search(pairs.begin(), pairs.end(), Pair(output, input));
}

const absl::optional<Digest>& KernelDigests::Promises(const fbs::Launch& launch) {
  Known& known = kernels_[launch.kernel()];
  if (known.has_promises) return known.promises;
  known.has_promises = true;
  const std::vector<Pair>& pairs = InPlace(launch.kernel());
  if (pairs.empty()) return known.promises;
  DigestBuilder builder(kPromiseTag);
  builder.Add(Of(launch)).Add(pairs.size());
  for (const Pair& pair : pairs) builder.Add(pair.first).Add(pair.second);
  known.promises = builder.Finish();
  return known.promises;
}

}  // namespace bowline
