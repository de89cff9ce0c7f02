#include <cstdint>

#include "runtime/plan/verify/verifier_parts.h"
#include "runtime/plan/view/collective_view.h"
#include "runtime/plan/view/mesh_view.h"

namespace bowline::verifier {
namespace {

// The most bytes that all members of a group may hold together: an address counts no more.
constexpr uint64_t kMostBytes = uint64_t{1} << 62;

absl::Status VerifyGroup(const fbs::Plan& plan, absl::string_view place, uint32_t communicator, fbs::DType dtype) {
  if (ElementSize(dtype) == 0) return Broken(place, ": unknown dtype ", static_cast<int>(dtype));
  return VerifyIndex(place, "communicator", communicator, SizeOf(plan.communicators()));
}

template <typename T>
absl::Status VerifyCounts(const fbs::Plan& plan, absl::string_view place, uint32_t communicator, fbs::DType dtype,
                          absl::string_view what, const flatbuffers::Vector<const T*>* items) {
  BOWLINE_RETURN_IF_ERROR(VerifyAligned(place, what, items));
  if (SizeOf(items) == 0) return Broken(place, ": there are no ", what);
  const uint64_t size = SizeAlong(plan, plan.communicators()->Get(communicator)->axes());
  const uint64_t most = kMostBytes / size / ElementSize(dtype);
  for (uint32_t i = 0; i < items->size(); ++i) {
    const uint64_t count = items->Get(i)->count();
    if (count == 0 || count > most) return Broken(place, ": ", count, " elements; it must be 1 to ", most);
  }
  return absl::OkStatus();
}

absl::Status VerifyCollective(const fbs::Plan& plan, const fbs::Collective& collective) {
  if (collective.kind() > fbs::CollectiveKind::MAX) {
    return Broken("collective: unknown kind ", static_cast<int>(collective.kind()));
  }
  const std::string place = absl::StrCat("collective ", fbs::EnumNameCollectiveKind(collective.kind()));
  BOWLINE_RETURN_IF_ERROR(VerifyGroup(plan, place, collective.communicator(), collective.dtype()));
  if (collective.reduction() > fbs::Reduction::MAX) {
    return Broken(place, ": unknown reduction ", static_cast<int>(collective.reduction()));
  }
  const collectives::Definition& definition = DefinitionOf(collective.kind());
  const uint32_t members = SizeAlong(plan, plan.communicators()->Get(collective.communicator())->axes());
  const uint32_t parameter = ParameterOf(collective), least = definition.LeastParameter(),
                 most = definition.MostParameter(members);
  if (parameter < least || parameter > most) {
    return Broken(place, ": unknown ", collectives::WordsOf(definition.parameter).name, " ", parameter, " among ",
                  members, " ranks; it must be ", least, " to ", most);
  }
  if (definition.reduces() && !CanReduce(ElementTypeOf(collective.dtype()))) {
    return Broken(place, ": elements of ", NameOf(ElementTypeOf(collective.dtype())), " cannot be reduced; those of ",
                  NamesOf(&CanReduce), " can");
  }
  return VerifyCounts(plan, place, collective.communicator(), collective.dtype(), "pieces", collective.pieces());
}

// A send or a receive.
template <typename T>
absl::Status VerifyTransfer(const fbs::Plan& plan, uint32_t role, const std::string& place, const T& transfer) {
  BOWLINE_RETURN_IF_ERROR(VerifyGroup(plan, place, transfer.communicator(), transfer.dtype()));
  const fbs::Communicator& communicator = *plan.communicators()->Get(transfer.communicator());
  BOWLINE_RETURN_IF_ERROR(VerifyIndex(absl::StrCat(place, " on ", Quoted(communicator.name())), "peer", transfer.peer(),
                                      SizeAlong(plan, communicator.axes())));
  // All ranks of a role run this: where the group lies within the role, one of them would be its own peer.
  if (RoleCount(plan) == 1 || SizeOf(communicator.axes()) != 1 || communicator.axes()->Get(0) != plan.role_axis()) {
    return Broken(place, " on ", Quoted(communicator.name()),
                  ": sends and receives go along the axis that tells roles apart; ranks of one role send to each other "
                  "by a Permute, which is a send and a receive at once");
  }
  if (transfer.peer() == role) return Broken(place, ": peer ", transfer.peer(), " is the rank itself");
  return VerifyCounts(plan, place, transfer.communicator(), transfer.dtype(), "ranges", transfer.ranges());
}

}  // namespace

absl::Status VerifyCommunication(const fbs::Plan& plan, uint32_t role, const fbs::Command& command) {
  if (const fbs::Collective* collective = command.body_as_Collective()) return VerifyCollective(plan, *collective);
  if (const fbs::Send* send = command.body_as_Send()) return VerifyTransfer(plan, role, "send", *send);
  return VerifyTransfer(plan, role, "receive", *command.body_as_Receive());
}

}  // namespace bowline::verifier
