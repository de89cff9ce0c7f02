#ifndef BOWLINE_RUNTIME_PLAN_VIEW_BUFFER_VIEW_H_
#define BOWLINE_RUNTIME_PLAN_VIEW_BUFFER_VIEW_H_

// Functions for the buffers of a verified plan that are views of other buffers (View in plan.fbs).

#include <cstdint>
#include <vector>

#include "runtime/plan/plan_generated.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {

// The buffer whose value buffer `index` holds: the buffer that it views, or itself.
uint32_t HolderOf(const fbs::Plan& plan, uint32_t index);

// Returns whether the place of the buffer depends on the rank.
bool LiesByRank(const fbs::Buffer& buffer);

// The bytes from the buffer's place on the first rank to its place on the last; 0 if all ranks have one place.
uint64_t SpreadOf(const fbs::Plan& plan, const fbs::Buffer& buffer);

// The bytes from the buffer's place on the first rank to its place on `rank`.
uint64_t ShiftOf(const fbs::Plan& plan, const fbs::Buffer& buffer, uint32_t rank);

// Returns whether the distance between the two buffers is the same on all ranks.
bool LieAlike(const fbs::Buffer& a, const fbs::Buffer& b);

// The union of the bytes that the operand covers on the ranks. A read may read all of these bytes; a write writes only
// some of them on each rank.
ByteRange RangeOfOperand(const fbs::Plan& plan, const fbs::Operand& operand, uint64_t bytes, uint32_t slot);

// By buffer: the first buffer that is the same view of the same bytes; the buffer itself if there is none.
std::vector<uint32_t> FindSameViews(const fbs::Plan& plan);

// Returns whether source and destination of the collective, which have equal ranges (RangeOfOperand), may share their
// bytes. They may in an AllReduce if they lie alike, and if one is a rank's own part of the gathered or scattered
// tensor. `bytes` is the size of a part: Piece.count elements.
bool MayBeInPlace(const fbs::Plan& plan, const fbs::Collective& collective, uint64_t bytes, const fbs::Buffer& source,
                  const fbs::Buffer& destination);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_VIEW_BUFFER_VIEW_H_
