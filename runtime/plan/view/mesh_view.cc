#include "runtime/plan/view/mesh_view.h"

#include "absl/strings/str_cat.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {
namespace {

uint32_t AxisSize(const fbs::Plan& plan, uint32_t axis) { return plan.mesh()->Get(axis)->size(); }

// How far apart the ranks are whose coordinates along the axis differ by one.
uint32_t StrideOf(const fbs::Plan& plan, uint32_t axis) {
  uint32_t stride = 1;
  for (uint32_t i = axis + 1; i < SizeOf(plan.mesh()); ++i) stride *= AxisSize(plan, i);
  return stride;
}

}  // namespace

uint32_t RankCount(const fbs::Plan& plan) {
  uint32_t ranks = 1;
  for (uint32_t i = 0; i < SizeOf(plan.mesh()); ++i) ranks *= AxisSize(plan, i);
  return ranks;
}

uint32_t SizeAlong(const fbs::Plan& plan, const flatbuffers::Vector<uint8_t>* axes) {
  uint32_t size = 1;
  for (uint32_t i = 0; i < SizeOf(axes); ++i) size *= AxisSize(plan, axes->Get(i));
  return size;
}

std::vector<uint32_t> CoordinatesOf(const fbs::Plan& plan, uint32_t rank) {
  std::vector<uint32_t> coordinates(SizeOf(plan.mesh()));
  for (uint32_t i = SizeOf(plan.mesh()); i-- > 0;) {
    coordinates[i] = rank % AxisSize(plan, i);
    rank /= AxisSize(plan, i);
  }
  return coordinates;
}

uint32_t PlaceAlong(const fbs::Plan& plan, const flatbuffers::Vector<uint8_t>* axes, uint32_t rank) {
  const std::vector<uint32_t> coordinates = CoordinatesOf(plan, rank);
  uint32_t place = 0;
  for (uint32_t i = 0; i < SizeOf(axes); ++i) place = place * AxisSize(plan, axes->Get(i)) + coordinates[axes->Get(i)];
  return place;
}

std::vector<int> MembersAlong(const fbs::Plan& plan, const flatbuffers::Vector<uint8_t>* axes, uint32_t rank) {
  const std::vector<uint32_t> coordinates = CoordinatesOf(plan, rank);
  uint32_t first = rank;
  for (uint32_t i = 0; i < SizeOf(axes); ++i) first -= coordinates[axes->Get(i)] * StrideOf(plan, axes->Get(i));
  std::vector<int> members = {static_cast<int>(first)};
  for (uint32_t i = 0; i < SizeOf(axes); ++i) {
    std::vector<int> longer;
    for (const int member : members) {
      for (uint32_t c = 0; c < AxisSize(plan, axes->Get(i)); ++c) {
        longer.push_back(member + static_cast<int>(c * StrideOf(plan, axes->Get(i))));
      }
    }
    members = std::move(longer);
  }
  return members;
}

uint32_t RoleCount(const fbs::Plan& plan) { return SizeOf(plan.roles()) == 0 ? 1 : SizeOf(plan.roles()); }

uint32_t RoleOf(const fbs::Plan& plan, uint32_t rank) {
  return RoleCount(plan) == 1 ? 0 : CoordinatesOf(plan, rank)[plan.role_axis()];
}

uint64_t ArenaBytes(const fbs::Plan& plan, uint32_t role, fbs::MemorySpace space) {
  if (space == fbs::MemorySpace::Device) {
    return SizeOf(plan.roles()) == 0 ? plan.arena_bytes() : plan.roles()->Get(role)->arena_bytes();
  }
  for (uint32_t i = 0; i < SizeOf(plan.arenas()); ++i) {
    const fbs::Arena& arena = *plan.arenas()->Get(i);
    if (arena.role() == role && arena.space() == space) return arena.bytes();
  }
  return 0;
}

std::string DescribeMesh(const fbs::Plan& plan) {
  std::string text;
  for (uint32_t i = 0; i < SizeOf(plan.mesh()); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", TextOf(plan.mesh()->Get(i)->name()), "=", AxisSize(plan, i));
  }
  return text.empty() ? "no mesh" : text;
}

std::string DescribeRank(const fbs::Plan& plan, uint32_t rank) {
  const std::vector<uint32_t> coordinates = CoordinatesOf(plan, rank);
  std::string text = absl::StrCat("rank ", rank);
  for (uint32_t i = 0; i < coordinates.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? " (" : ", ", TextOf(plan.mesh()->Get(i)->name()), "=", coordinates[i]);
  }
  return coordinates.empty() ? text : absl::StrCat(text, ")");
}

}  // namespace bowline
