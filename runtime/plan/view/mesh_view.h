#ifndef BOWLINE_RUNTIME_PLAN_VIEW_MESH_VIEW_H_
#define BOWLINE_RUNTIME_PLAN_VIEW_MESH_VIEW_H_

// Functions of the mesh of a verified plan and its ranks.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// The number of ranks that the plan is for; 1 without a mesh.
uint32_t RankCount(const fbs::Plan& plan);

// The number of ranks that differ only in their coordinates along `axes`.
uint32_t SizeAlong(const fbs::Plan& plan, const flatbuffers::Vector<uint8_t>* axes);

// The coordinates of a rank, indexed by axis of the mesh.
std::vector<uint32_t> CoordinatesOf(const fbs::Plan& plan, uint32_t rank);

// The index of the rank among those that differ from it only along `axes`; the first axis is the outermost.
uint32_t PlaceAlong(const fbs::Plan& plan, const flatbuffers::Vector<uint8_t>* axes, uint32_t rank);

// The ranks that differ from `rank` only along `axes`, indexed by PlaceAlong: members[PlaceAlong(rank)] is `rank`.
std::vector<int> MembersAlong(const fbs::Plan& plan, const flatbuffers::Vector<uint8_t>* axes, uint32_t rank);

// The number of roles, at least 1, and the role of a rank.
uint32_t RoleCount(const fbs::Plan& plan);
uint32_t RoleOf(const fbs::Plan& plan, uint32_t rank);
// The size in bytes of a role's arena in a space; 0 if the role has no buffer there.
uint64_t ArenaBytes(const fbs::Plan& plan, uint32_t role, fbs::MemorySpace space = fbs::MemorySpace::Device);

// "pp=2, dp=2, tp=2"; "no mesh".
std::string DescribeMesh(const fbs::Plan& plan);
// "rank 5 (pp=1, dp=0, tp=1)"
std::string DescribeRank(const fbs::Plan& plan, uint32_t rank);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_VIEW_MESH_VIEW_H_
