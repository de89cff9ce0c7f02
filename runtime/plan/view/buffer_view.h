#ifndef BOWLINE_RUNTIME_PLAN_VIEW_BUFFER_VIEW_H_
#define BOWLINE_RUNTIME_PLAN_VIEW_BUFFER_VIEW_H_

// Functions of buffers that are views (View in plan.fbs), of a verified plan.

#include <cstdint>
#include <vector>

#include "runtime/plan/plan_generated.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {

// The buffer whose value buffer `index` holds: the buffer that it views, or itself.
uint32_t HolderOf(const fbs::Plan& plan, uint32_t index);

// Returns whether ranks have the buffer at different bytes.
bool LiesByRank(const fbs::Buffer& buffer);

// The bytes between its place on the first rank and that on the last one; 0 if it lies alike on all.
uint64_t SpreadOf(const fbs::Plan& plan, const fbs::Buffer& buffer);

// The bytes between its place on the first rank and that on `rank`.
uint64_t ShiftOf(const fbs::Plan& plan, const fbs::Buffer& buffer, uint32_t rank);

// Returns whether on each rank the two are as far apart as on the first one.
bool LieAlike(const fbs::Buffer& a, const fbs::Buffer& b);

// The union of the bytes that the operand covers on the ranks. A read may read all of these bytes; a write writes only
// some of them on each rank.
ByteRange RangeOfOperand(const fbs::Plan& plan, const fbs::Operand& operand, uint64_t bytes, uint32_t slot);

// By buffer: the first one that is the same view of the same bytes; the buffer itself where there is none.
std::vector<uint32_t> FindSameViews(const fbs::Plan& plan);

// Returns whether source and destination of the collective, in these buffers and with equal ranges (RangeOfOperand),
// may share their bytes: those of an AllReduce that lie alike, and a rank's own part of the gathered or scattered
// tensor. `bytes` is the size of a part, which is that of Piece.count elements.
bool MayBeInPlace(const fbs::Plan& plan, const fbs::Collective& collective, uint64_t bytes, const fbs::Buffer& source,
                  const fbs::Buffer& destination);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_VIEW_BUFFER_VIEW_H_
