#include "kernels/cpu/attention/attention_division.h"

#include <algorithm>

#include "kernels/cpu/attention/attention_amx_scratch.h"
#include "kernels/cpu/kernel_needs.h"
#include "kernels/signatures/attention_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

template <int kVectorLanes, int kStepsOfWord, bool kIsWide>
struct Words {
  static constexpr int64_t kLanes = kVectorLanes, kSteps = kStepsOfWord;
  static constexpr bool kWide = kIsWide;
};

struct AmxOwner;  // of the sizes of attention_amx_scratch.h

// Calls `use` with the words that are multiplied where `isa` is the best instruction set.
template <typename Use>
auto WithWords(Isa isa, const AttentionShape& shape, const Use& use) {
  const bool wide = shape.element == ElementType::kF32;
  if (isa == Isa::kBaseline) return wide ? use(Words<4, 1, true>()) : use(Words<4, 1, false>());
  if (isa == Isa::kAvx2) return wide ? use(Words<8, 1, true>()) : use(Words<8, 1, false>());
  if (wide) return use(Words<16, 1, true>());
  return AttentionPrefersPairs(shape, isa) ? use(Words<16, 2, false>()) : use(Words<16, 1, false>());
}

}  // namespace

std::vector<BackwardPart> BackwardPartsFor(const AttentionShape& shape, int threads,
                                           const AttentionBackwardSizes& sizes) {
  using enum BackwardPart;
  // The most units of a part that one thread computes.
  const auto rounds = [&](BackwardPart part) {
    const int64_t units = (sizes.units(shape, part) + threads - 1) / threads;
    return static_cast<double>(units);
  };
  // The backward pass multiplies five times per key head when all gradients are computed together, and four times for
  // dk and dv and three times for dq when they are not.
  const double heads = static_cast<double>(sizes.units(shape, kAll));
  const double together = 5 * rounds(kAll), apart = 4 * rounds(kKeys) * heads / sizes.units(shape, kKeys) +
                                                    3 * rounds(kQueries) * heads / sizes.units(shape, kQueries);
  return together <= apart ? std::vector{kAll} : std::vector{kKeys, kQueries};
}

size_t ForwardScratchBytes(const AttentionShape& shape, int threads, const AttentionForwardSizes& sizes) {
  return sizes.scratch_floats(shape) * static_cast<size_t>(std::min<int64_t>(threads, sizes.units(shape))) *
         sizeof(float);
}

size_t BackwardScratchFloats(const AttentionShape& shape, const std::vector<BackwardPart>& parts,
                             const AttentionBackwardSizes& sizes) {
  size_t floats = 0;
  for (const BackwardPart part : parts) floats = std::max(floats, sizes.scratch_floats(shape, part));
  return floats;
}

size_t BackwardScratchBytes(const AttentionShape& shape, int threads, const std::vector<BackwardPart>& parts,
                            const AttentionBackwardSizes& sizes) {
  int64_t chunks = 0;
  for (const BackwardPart part : parts) chunks = std::max(chunks, std::min<int64_t>(threads, sizes.units(shape, part)));
  return BackwardScratchFloats(shape, parts, sizes) * static_cast<size_t>(chunks) * sizeof(float);
}

absl::StatusOr<size_t> AttentionForwardScratch(const Signature& signature, Isa isa) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const AttentionShape shape, ParseAttentionForward(signature));
  if (AttentionIsForAmx(shape, isa)) {
    using Memory = AttentionAmxMemory<AmxOwner>;
    return ForwardScratchBytes(shape, signature.threads, {&Memory::Units, &Memory::Floats});
  }
  return WithWords(isa, shape, [&](auto words) {
    using Memory = AttentionForwardMemory<decltype(words)>;
    return ForwardScratchBytes(shape, signature.threads, {&Memory::Units, &Memory::Floats});
  });
}

absl::StatusOr<size_t> AttentionBackwardScratch(const Signature& signature, Isa isa) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const AttentionShape shape, ParseAttentionBackward(signature));
  if (AttentionIsForAmx(shape, isa)) {
    using Memory = AttentionAmxBackwardMemory<AmxOwner>;
    const AttentionBackwardSizes sizes = {&Memory::Units, &Memory::Floats};
    return BackwardScratchBytes(shape, signature.threads, BackwardPartsFor(shape, signature.threads, sizes), sizes);
  }
  return WithWords(isa, shape, [&](auto words) {
    using Memory = AttentionBackwardMemory<decltype(words)>;
    const AttentionBackwardSizes sizes = {&Memory::Units, &Memory::Floats};
    return BackwardScratchBytes(shape, signature.threads, BackwardPartsFor(shape, signature.threads, sizes), sizes);
  });
}

}  // namespace bowline::kernels
