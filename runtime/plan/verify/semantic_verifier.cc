#include "runtime/plan/verify/semantic_verifier.h"

#include <algorithm>
#include <utility>

#include "runtime/plan/verify/verifier_parts.h"
#include "runtime/plan/view/attachments.h"
#include "runtime/plan/view/mesh_view.h"

namespace bowline {
namespace verifier {

absl::Status VerifyIndex(absl::string_view place, absl::string_view what, uint64_t index, uint64_t count) {
  if (index < count) return absl::OkStatus();
  return Broken(place, ": ", what, " ", index, " does not exist; there are ", count);
}

absl::Status VerifyType(absl::string_view place, fbs::DType dtype, const flatbuffers::Vector<int64_t>* shape) {
  if (ElementSize(dtype) == 0) return Broken(place, ": unknown dtype ", static_cast<int>(dtype));
  BOWLINE_RETURN_IF_ERROR(VerifyAligned(place, "extents", shape));
  const uint32_t rank = SizeOf(shape);
  if (rank > kMaxRank) return Broken(place, ": rank ", rank, " is more than ", kMaxRank);
  for (uint32_t d = 0; d < rank; ++d) {
    if (shape->Get(d) < 0) return Broken(place, ": extent ", shape->Get(d), " of dimension ", d, " is negative");
  }
  if (!DenseBytes(dtype, shape).has_value()) {
    return Broken(place, ": ", DescribeType(dtype, shape), " has more than 2^62 bytes");
  }
  return absl::OkStatus();
}

absl::Status NameSet::Insert(absl::string_view place, const flatbuffers::String* name) {
  if (name->size() == 0) return Broken(place, ": the ", what_, " is empty");
  if (!names_.emplace(name->c_str(), name->size()).second) {
    return Broken(place, ": the ", what_, " ", Quoted(name), " is used twice");
  }
  return absl::OkStatus();
}

namespace {

absl::Status VerifyTarget(const fbs::Target& target) {
  if (target.device()->size() == 0) return Broken("target: the device is empty");
  if (target.arch()->size() == 0) return Broken("target: the arch is empty");
  if (target.cpu()->size() == 0) return Broken("target: the cpu is empty");
  if (target.threads() < 1 || target.threads() > kMaxThreads) {
    return Broken("target: ", target.threads(), " threads; it must be 1 to ", kMaxThreads);
  }
  return absl::OkStatus();
}

absl::Status VerifyMesh(const fbs::Plan& plan) {
  constexpr uint64_t kMaxRanks = uint64_t{1} << 31;
  constexpr uint32_t kMaxAxes = 64;
  if (SizeOf(plan.mesh()) > kMaxAxes) {
    return Broken("the mesh has ", SizeOf(plan.mesh()), " axes; ", kMaxAxes, " is the most");
  }
  NameSet names("axis name");
  uint64_t ranks = 1;
  for (uint32_t i = 0; i < SizeOf(plan.mesh()); ++i) {
    const fbs::Axis& axis = *plan.mesh()->Get(i);
    const std::string place = absl::StrCat("mesh axis ", i);
    BOWLINE_RETURN_IF_ERROR(names.Insert(place, axis.name()));
    if (axis.size() < 1) return Broken(place, " ", Quoted(axis.name()), ": size 0; it must be at least 1");
    if (axis.size() > kMaxRanks / ranks) {
      return Broken(place, " ", Quoted(axis.name()), ": the mesh has more than 2^31 ranks");
    }
    ranks *= axis.size();
  }
  return absl::OkStatus();
}

absl::Status VerifyRoles(const fbs::Plan& plan) {
  const uint32_t roles = SizeOf(plan.roles());
  if (roles < 2 && plan.role_axis() != 0) {
    return Broken("role_axis ", plan.role_axis(), " tells roles apart, but there are not several");
  }
  if (roles == 0) return absl::OkStatus();
  if (roles > kMaxRoles) return Broken(roles, " roles; ", kMaxRoles, " is the most");
  NameSet names("name");
  uint64_t largest = 0;
  for (uint32_t i = 0; i < roles; ++i) {
    const fbs::Role& role = *plan.roles()->Get(i);
    BOWLINE_RETURN_IF_ERROR(names.Insert(absl::StrCat("role ", i), role.name()));
    largest = std::max(largest, role.arena_bytes());
  }
  if (largest != plan.arena_bytes()) {
    return Broken("arena_bytes ", plan.arena_bytes(), " is not the ", largest, " of the largest role");
  }
  if (roles == 1) return absl::OkStatus();
  BOWLINE_RETURN_IF_ERROR(VerifyIndex("role_axis", "mesh axis", plan.role_axis(), SizeOf(plan.mesh())));
  const fbs::Axis& axis = *plan.mesh()->Get(plan.role_axis());
  if (axis.size() != roles) {
    return Broken(roles, " roles, but axis ", Quoted(axis.name()), ", which tells them apart, has size ", axis.size());
  }
  return absl::OkStatus();
}

absl::Status VerifyArenas(const fbs::Plan& plan) {
  const fbs::Arena* before = nullptr;
  for (uint32_t i = 0; i < SizeOf(plan.arenas()); ++i) {
    const fbs::Arena& arena = *plan.arenas()->Get(i);
    const std::string place = absl::StrCat("arena ", i);
    BOWLINE_RETURN_IF_ERROR(VerifyIndex(place, "role", arena.role(), RoleCount(plan)));
    if (arena.space() == fbs::MemorySpace::Device || arena.space() > fbs::MemorySpace::MAX) {
      return Broken(place, ": an arena cannot be in memory space ", static_cast<int>(arena.space()));
    }
    if (arena.bytes() < 1 || arena.bytes() > kMaxArenaBytes) {
      return Broken(place, ": ", arena.bytes(), " bytes; it must be 1 to 2^62");
    }
    if (before != nullptr &&
        std::make_pair(before->role(), before->space()) >= std::make_pair(arena.role(), arena.space())) {
      return Broken(place, ": arenas must be in the order of roles, then spaces, and none twice");
    }
    before = &arena;
  }
  return absl::OkStatus();
}

absl::Status VerifyCommunicators(const fbs::Plan& plan) {
  NameSet names("name");
  for (uint32_t i = 0; i < SizeOf(plan.communicators()); ++i) {
    const fbs::Communicator& communicator = *plan.communicators()->Get(i);
    const std::string place = absl::StrCat("communicator ", i);
    BOWLINE_RETURN_IF_ERROR(names.Insert(place, communicator.name()));
    BOWLINE_RETURN_IF_ERROR(VerifyAxes(plan, place, communicator.axes()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyAxes(const fbs::Plan& plan, absl::string_view place, const flatbuffers::Vector<uint8_t>* axes) {
  std::set<uint8_t> seen;
  for (uint32_t i = 0; i < SizeOf(axes); ++i) {
    BOWLINE_RETURN_IF_ERROR(VerifyIndex(place, "mesh axis", axes->Get(i), SizeOf(plan.mesh())));
    if (!seen.insert(axes->Get(i)).second) {
      return Broken(place, ": names axis ", Quoted(plan.mesh()->Get(axes->Get(i))->name()), " twice");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyHeader(const fbs::Plan& plan) {
  if (plan.arena_bytes() > kMaxArenaBytes) return Broken("arena_bytes ", plan.arena_bytes(), " is more than 2^62");
  BOWLINE_RETURN_IF_ERROR(VerifyTarget(*plan.target()));
  BOWLINE_RETURN_IF_ERROR(VerifyMesh(plan));
  BOWLINE_RETURN_IF_ERROR(VerifyRoles(plan));
  BOWLINE_RETURN_IF_ERROR(VerifyArenas(plan));
  BOWLINE_RETURN_IF_ERROR(VerifyCommunicators(plan));
  NameSet names("name");
  for (uint32_t i = 0; i < SizeOf(plan.attachments()); ++i) {
    const fbs::Attachment& attachment = *plan.attachments()->Get(i);
    BOWLINE_RETURN_IF_ERROR(names.Insert(absl::StrCat("attachment ", i), attachment.name()));
    if (!IsJsonAttachment(TextOf(attachment.name()))) continue;
    BOWLINE_RETURN_IF_ERROR(ParseAttachment(TextOf(attachment.name()), TextOf(attachment.text())).status());
  }
  return absl::OkStatus();
}

}  // namespace verifier

absl::Status VerifyPlan(const fbs::Plan& plan) {
  BOWLINE_RETURN_IF_ERROR(verifier::VerifyHeader(plan));
  BOWLINE_RETURN_IF_ERROR(verifier::VerifyMemory(plan));
  BOWLINE_RETURN_IF_ERROR(verifier::VerifyKernels(plan));
  BOWLINE_RETURN_IF_ERROR(verifier::VerifyPrograms(plan));
  BOWLINE_RETURN_IF_ERROR(verifier::VerifyEntries(plan));
  BOWLINE_RETURN_IF_ERROR(verifier::VerifyPreparation(plan));
  return verifier::VerifyCertificates(plan);
}

}  // namespace bowline
