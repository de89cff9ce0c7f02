#include <cstdint>
#include <vector>

#include "absl/strings/str_join.h"
#include "runtime/plan/verify/verifier_parts.h"
#include "runtime/plan/view/mesh_view.h"

namespace bowline::verifier {
namespace {

int64_t DivideCeil(int64_t a, int64_t b) { return a / b + (a % b != 0); }

absl::Status VerifyAxesOf(const fbs::Plan& plan, const std::string& place, const fbs::Layout& layout) {
  // No axis divides a tensor twice.
  std::vector<bool> used(SizeOf(plan.mesh()), false);
  const auto use = [&](const flatbuffers::Vector<uint8_t>* axes) -> absl::Status {
    BOWLINE_RETURN_IF_ERROR(VerifyAxes(plan, place, axes));
    for (uint32_t i = 0; i < SizeOf(axes); ++i) {
      if (used[axes->Get(i)]) {
        return Broken(place, ": axis ", Quoted(plan.mesh()->Get(axes->Get(i))->name()), " divides it twice");
      }
      if (RoleCount(plan) > 1 && axes->Get(i) == plan.role_axis()) {
        return Broken(place, ": axis ", Quoted(plan.mesh()->Get(axes->Get(i))->name()),
                      " tells roles apart, each of which has buffers of its own");
      }
      used[axes->Get(i)] = true;
    }
    return absl::OkStatus();
  };
  for (uint32_t d = 0; d < SizeOf(layout.dim_shardings()); ++d)
    BOWLINE_RETURN_IF_ERROR(use(layout.dim_shardings()->Get(d)->axes()));
  return use(layout.flat_axes());
}

}  // namespace

absl::Status VerifyLayout(const fbs::Plan& plan, absl::string_view buffer_place, const fbs::Buffer& buffer) {
  if (buffer.layout() == nullptr) return absl::OkStatus();
  const fbs::Layout& layout = *buffer.layout();
  const std::string place = absl::StrCat(buffer_place, ": layout");
  BOWLINE_RETURN_IF_ERROR(VerifyType(place, buffer.dtype(), layout.global_shape()));
  BOWLINE_RETURN_IF_ERROR(VerifyType(place, buffer.dtype(), layout.view()));
  const auto* view = SizeOf(layout.view()) > 0 ? layout.view() : layout.global_shape();
  if (*DenseBytes(buffer.dtype(), view) != *DenseBytes(buffer.dtype(), layout.global_shape())) {
    return Broken(place, ": the view ", DescribeType(buffer.dtype(), view), " has other elements than ",
                  DescribeType(buffer.dtype(), layout.global_shape()));
  }
  if (SizeOf(layout.dim_shardings()) != 0 && SizeOf(layout.dim_shardings()) != SizeOf(view)) {
    return Broken(place, ": ", SizeOf(layout.dim_shardings()), " shardings for ", SizeOf(view), " dimensions");
  }
  BOWLINE_RETURN_IF_ERROR(VerifyAxesOf(plan, place, layout));
  std::vector<int64_t> shard;
  for (uint32_t d = 0; d < SizeOf(view); ++d) {
    const int64_t ranks =
        SizeOf(layout.dim_shardings()) == 0 ? 1 : SizeAlong(plan, layout.dim_shardings()->Get(d)->axes());
    if (ranks > 1 && view->Get(d) == 1) {
      return Broken(place, ": dimension ", d, " of the view has one element, and is divided among ", ranks,
                    " ranks: all but one would hold padding");
    }
    shard.push_back(DivideCeil(view->Get(d), ranks));
  }
  if (SizeOf(layout.flat_axes()) > 0) {
    // No extent of a shard is larger than that of the view, whose product is at most 2^62.
    int64_t elements = 1;
    for (const int64_t extent : shard) elements *= extent;
    shard = {DivideCeil(elements, SizeAlong(plan, layout.flat_axes()))};
  }
  bool fits = shard.size() == SizeOf(buffer.shape());
  for (uint32_t d = 0; fits && d < shard.size(); ++d) fits = shard[d] == buffer.shape()->Get(d);
  if (fits) return absl::OkStatus();
  return Broken(place, ": a rank's shard is [", absl::StrJoin(shard, ", "), "], but the buffer is ",
                DescribeType(buffer.dtype(), buffer.shape()));
}

}  // namespace bowline::verifier
