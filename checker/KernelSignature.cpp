//===- KernelSignature.cpp - registered kernels as the registry sees them -===//

#include "checker/KernelSignature.h"

#include "runtime/plan/view/plan_view.h"

namespace bowline {

static kernels::TensorSpec specOf(const fbs::Argument &argument) {
  kernels::TensorSpec spec;
  spec.access = static_cast<kernels::Access>(argument.access());
  spec.dtype = ElementTypeOf(argument.dtype());
  if (argument.shape())
    spec.shape.assign(argument.shape()->begin(), argument.shape()->end());
  return spec;
}

static kernels::Attribute attributeOf(const fbs::Attribute &attribute) {
  kernels::Attribute result;
  result.name = attribute.name()->str();
  if (attribute.ints())
    result.ints.assign(attribute.ints()->begin(), attribute.ints()->end());
  if (attribute.floats())
    result.floats.assign(attribute.floats()->begin(), attribute.floats()->end());
  if (attribute.text())
    result.text = attribute.text()->str();
  return result;
}

std::vector<bool> findKernelsWithScratch(const fbs::Plan &plan) {
  std::vector<bool> hasScratch(plan.kernels()->size(), false);
  for (const fbs::Program *program : *plan.programs()) {
    for (uint32_t s = 0; s < SizeOf(program->segments()); ++s) {
      const fbs::Segment &segment = *program->segments()->Get(s);
      for (uint32_t c = 0; c < SizeOf(segment.commands()); ++c)
        if (const fbs::Launch *launch = segment.commands()->Get(c)->body_as_Launch())
          if (HasScratchOperand(plan, *launch))
            hasScratch[launch->kernel()] = true;
    }
  }
  return hasScratch;
}

kernels::Signature signatureOf(const fbs::Plan &plan, const fbs::Kernel &kernel, bool hasScratch) {
  kernels::Signature signature;
  signature.kernel = kernel.name()->str();
  signature.threads = static_cast<int>(plan.target()->threads());
  signature.has_epilogue = !TextOf(kernel.epilogue()).empty();
  for (uint32_t i = 0; i < SizeOf(kernel.attributes()); ++i)
    signature.attributes.push_back(attributeOf(*kernel.attributes()->Get(i)));
  for (uint32_t i = 0; i < SizeOf(kernel.arguments()); ++i)
    signature.arguments.push_back(specOf(*kernel.arguments()->Get(i)));
  signature.scratch_limit = 0;
  if (hasScratch) {
    signature.scratch_limit = signature.arguments.back().ByteCount();
    signature.arguments.pop_back();
  }
  return signature;
}

} // namespace bowline
