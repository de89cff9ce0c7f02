#include "runtime/plan/view/buffer_view.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/plan/view/collective_view.h"
#include "runtime/plan/view/mesh_view.h"

namespace bowline {
namespace {

using Axes = flatbuffers::Vector<uint8_t>;

bool AreEqual(const Axes* a, const Axes* b) {
  if (SizeOf(a) != SizeOf(b)) return false;
  return SizeOf(a) == 0 || std::equal(a->begin(), a->end(), b->begin());
}

// Whether `part` is the part of each rank, of `bytes`, of something that the communicator's ranks have together.
bool IsOwnPart(const fbs::Plan& plan, const fbs::Collective& collective, uint64_t bytes, const fbs::Buffer& part,
               const fbs::Buffer& whole) {
  return !LiesByRank(whole) && LiesByRank(part) && part.view()->stride() == bytes &&
         AreEqual(part.view()->axes(), plan.communicators()->Get(collective.communicator())->axes());
}

}  // namespace

uint32_t HolderOf(const fbs::Plan& plan, uint32_t index) {
  const fbs::View* view = plan.buffers()->Get(index)->view();
  return view == nullptr ? index : view->of();
}

bool LiesByRank(const fbs::Buffer& buffer) { return buffer.view() != nullptr && SizeOf(buffer.view()->axes()) > 0; }

uint64_t SpreadOf(const fbs::Plan& plan, const fbs::Buffer& buffer) {
  if (!LiesByRank(buffer)) return 0;
  return (SizeAlong(plan, buffer.view()->axes()) - 1) * buffer.view()->stride();
}

uint64_t ShiftOf(const fbs::Plan& plan, const fbs::Buffer& buffer, uint32_t rank) {
  if (!LiesByRank(buffer)) return 0;
  return PlaceAlong(plan, buffer.view()->axes(), rank) * buffer.view()->stride();
}

bool LieAlike(const fbs::Buffer& a, const fbs::Buffer& b) {
  if (LiesByRank(a) != LiesByRank(b)) return false;
  return !LiesByRank(a) || (a.view()->stride() == b.view()->stride() && AreEqual(a.view()->axes(), b.view()->axes()));
}

ByteRange RangeOfOperand(const fbs::Plan& plan, const fbs::Operand& operand, uint64_t bytes, uint32_t slot) {
  const fbs::Buffer& buffer = *plan.buffers()->Get(operand.buffer());
  const uint64_t begin = RangeOf(buffer, slot).begin + operand.offset();
  return {begin, begin + SpreadOf(plan, buffer) + bytes};
}

std::vector<uint32_t> FindSameViews(const fbs::Plan& plan) {
  using Key = std::tuple<uint32_t, uint64_t, uint64_t, uint64_t, std::vector<uint8_t>>;
  std::map<Key, uint32_t> known;
  std::vector<uint32_t> same(plan.buffers()->size());
  for (uint32_t i = 0; i < same.size(); ++i) {
    same[i] = i;
    const fbs::Buffer& buffer = *plan.buffers()->Get(i);
    if (!LiesByRank(buffer)) continue;
    const fbs::View& view = *buffer.view();
    Key key(view.of(), buffer.offset(), buffer.bytes(), view.stride(), {view.axes()->begin(), view.axes()->end()});
    same[i] = known.try_emplace(std::move(key), i).first->second;
  }
  return same;
}

bool MayBeInPlace(const fbs::Plan& plan, const fbs::Collective& collective, uint64_t bytes, const fbs::Buffer& source,
                  const fbs::Buffer& destination) {
  const collectives::Definition& definition = DefinitionOf(collective.kind());
  if (definition.in_place) return LieAlike(source, destination);
  if (definition.gathers && !definition.scatters) return IsOwnPart(plan, collective, bytes, source, destination);
  if (definition.scatters && !definition.gathers) return IsOwnPart(plan, collective, bytes, destination, source);
  return false;
}

}  // namespace bowline
