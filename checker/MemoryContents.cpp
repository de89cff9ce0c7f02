//===- MemoryContents.cpp - contents of the bytes at a peak ---------------===//

#include "checker/MemoryContents.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace bowline {
namespace {

using Share = uint64_t MemoryContents::*;

class Contents {
public:
  Contents(const Timeline &timeline, uint32_t entry) : timeline_(timeline), plan_(timeline.plan()), entry_(entry) {
    for (uint32_t i = 0; i < SizeOf(plan_.states()); ++i) {
      const fbs::State &state = *plan_.states()->Get(i);
      if (!Has(state.flags(), fbs::StateFlag::Weight) ||
          plan_.buffers()->Get(state.buffer())->role() != timeline.programOf(entry).role())
        continue;
      const absl::string_view key = TextOf(state.key());
      weights_.emplace(std::string(key.substr(0, key.rfind('.'))), &*plan_.buffers()->Get(state.buffer()));
    }
  }

  MemoryContents at(const MemoryTimeline &memory) {
    MemoryContents contents;
    for (const fbs::Buffer *buffer : *plan_.buffers())
      if (buffer->role() == timeline_.programOf(entry_).role() && buffer->space() == fbs::MemorySpace::Device &&
          (IsPersistent(buffer->kind()) || buffer->kind() == fbs::BufferKind::Output))
        contents.*shareOfKind(*buffer) += buffer->bytes() * buffer->slots();
    classifyUntil(memory.peakCommand);
    for (const MemoryTimeline::Tensor &tensor : memory.atPeak) {
      const auto found = shares_.find({tensor.buffer, tensor.slot});
      contents.*(found == shares_.end() ? &MemoryContents::others : found->second) += tensor.bytes;
    }
    return contents;
  }

private:
  /// Of a buffer that lives throughout, or within a command.
  static Share shareOfKind(const fbs::Buffer &buffer) {
    return IsState(buffer.kind()) ? &MemoryContents::weightsAndMoments : &MemoryContents::others;
  }

  static bool isTemporary(const fbs::Buffer &buffer) { return buffer.kind() == fbs::BufferKind::Temporary; }

  const fbs::Buffer &bufferOf(const OperandAccess &access) const { return *plan_.buffers()->Get(access.buffer); }

  Share shareOf(const OperandAccess &access) const {
    const fbs::Buffer &buffer = bufferOf(access);
    if (!isTemporary(buffer))
      return shareOfKind(buffer);
    const auto found = shares_.find({access.buffer, access.slot});
    return found == shares_.end() ? &MemoryContents::others : found->second;
  }

  /// Remembers the contents of each temporary value after the command of this number.
  void classifyUntil(uint64_t last) {
    uint64_t index = 0;
    timeline_.forEachCommand(entry_, [&](CommandSite, const fbs::Command &, absl::Span<const OperandAccess> accesses) {
      for (const OperandAccess &access : accesses)
        if (access.writes && isTemporary(bufferOf(access)))
          shares_[{access.buffer, access.slot}] = shareOfResult(access, accesses);
      return index++ < last;
    });
  }

  Share shareOfResult(const OperandAccess &result, absl::Span<const OperandAccess> accesses) const {
    const fbs::Buffer &buffer = bufferOf(result);
    // Gradients that are kept are named after their parameters.
    if (absl::EndsWith(TextOf(buffer.name()), ".grad") || isGradientOfWeight(buffer))
      return &MemoryContents::gradients;
    if (const Share share = commonShare(result, accesses))
      return share;
    absl::string_view location = TextOf(plan_.sources()->Get(buffer.source())->location());
    const bool isGradient = absl::ConsumePrefix(&location, "gradient of ");
    const bool isAgain = absl::ConsumePrefix(&location, "recomputed of ");
    if (location == "loss" || location == "lm_head")
      return &MemoryContents::loss;
    return isGradient ? &MemoryContents::gradientsOfActivations
           : isAgain  ? &MemoryContents::recomputed
                      : &MemoryContents::activations;
  }

  /// A command that moves or rounds parameters alone makes parameters; the same holds for gradients. Null where the
  /// operands do not have one kind.
  Share commonShare(const OperandAccess &result, absl::Span<const OperandAccess> accesses) const {
    bool readsWeights = false, readsGradients = false;
    for (const OperandAccess &access : accesses) {
      if (!access.reads || bufferOf(access).kind() == fbs::BufferKind::Scratch)
        continue;
      const Share share = shareOf(access);
      if (share == &MemoryContents::weightsAndMoments || share == &MemoryContents::copies)
        readsWeights = true;
      else if (share == &MemoryContents::gradients)
        readsGradients = true;
      else if (access.buffer != result.buffer || shares_.contains({access.buffer, access.slot}))
        return nullptr;
    }
    if (readsGradients)
      return &MemoryContents::gradients;
    return readsWeights ? &MemoryContents::copies : nullptr;
  }

  static uint64_t countOf(const fbs::Buffer &buffer) {
    uint64_t count = 1;
    for (uint32_t i = 0; i < SizeOf(buffer.shape()); ++i)
      count *= static_cast<uint64_t>(buffer.shape()->Get(i));
    return count;
  }

  /// Whether it is computed for the gradient of a parameter and has as many elements, or as its shard of ZeRO.
  bool isGradientOfWeight(const fbs::Buffer &buffer) const {
    absl::string_view location = TextOf(plan_.sources()->Get(buffer.source())->location());
    if (!absl::ConsumePrefix(&location, "gradient of ") || buffer.dtype() != fbs::DType::F32 ||
        SizeOf(buffer.shape()) > 2)
      return false;
    const auto [begin, end] = weights_.equal_range(location);
    const uint64_t count = countOf(buffer);
    return std::any_of(begin, end, [&](const auto &entry) {
      const fbs::Buffer &weight = *entry.second;
      uint64_t ranks = 1;
      if (const fbs::Layout *layout = weight.layout())
        for (uint32_t i = 0; i < SizeOf(layout->flat_axes()); ++i)
          ranks *= plan_.mesh()->Get(layout->flat_axes()->Get(i))->size();
      const uint64_t shard = countOf(weight), padded = shard * ranks;
      return count == shard || (count <= padded && count + ranks > padded);
    });
  }

  const Timeline &timeline_;
  const fbs::Plan &plan_;
  uint32_t entry_;
  /// Parameters by the place in the model that has them, as sources name it.
  std::multimap<std::string, const fbs::Buffer *, std::less<>> weights_;
  std::map<std::pair<uint32_t, uint32_t>, Share> shares_; // (buffer, slot) -> contents of its present value
};

} // namespace

MemoryContents computeContentsAtPeak(const Timeline &timeline, uint32_t entry, const MemoryTimeline &memory) {
  return Contents(timeline, entry).at(memory);
}

} // namespace bowline
