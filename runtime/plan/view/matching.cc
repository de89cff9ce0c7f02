#include "runtime/plan/view/matching.h"

#include "absl/strings/str_cat.h"
#include "runtime/plan/view/collective_view.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {
namespace {

// `what` names the items: "piece".
template <typename T>
std::string CountsDiffer(const char* what, const flatbuffers::Vector<const T*>* first,
                         const flatbuffers::Vector<const T*>* second) {
  if (SizeOf(first) != SizeOf(second)) {
    return absl::StrCat("one has ", SizeOf(first), " ", what, "s, the other ", SizeOf(second));
  }
  for (uint32_t i = 0; i < SizeOf(first); ++i) {
    if (first->Get(i)->count() != second->Get(i)->count()) {
      return absl::StrCat("one moves ", first->Get(i)->count(), " elements in ", what, " ", i, ", the other ",
                          second->Get(i)->count());
    }
  }
  return "";
}

std::string DTypesDiffer(fbs::DType first, fbs::DType second) {
  if (first == second) return "";
  return absl::StrCat("one moves ", NameOf(ElementTypeOf(first)), ", the other ", NameOf(ElementTypeOf(second)));
}

std::string CollectivesDiffer(const fbs::Collective& first, const fbs::Collective& second) {
  if (first.kind() != second.kind()) {
    return absl::StrCat("one is ", fbs::EnumNameCollectiveKind(first.kind()), ", the other ",
                        fbs::EnumNameCollectiveKind(second.kind()));
  }
  if (std::string why = DTypesDiffer(first.dtype(), second.dtype()); !why.empty()) return why;
  if (ParameterOf(first) != ParameterOf(second)) {
    const collectives::Parameter parameter = DefinitionOf(first.kind()).parameter;
    return absl::StrCat("one ", collectives::WordsOf(parameter).verb, " ",
                        DescribeParameter(parameter, ParameterOf(first)), ", the other by ",
                        DescribeParameter(parameter, ParameterOf(second)));
  }
  return CountsDiffer("piece", first.pieces(), second.pieces());
}

std::string TransfersDiffer(uint32_t sender, const fbs::Send& send, uint32_t receiver, const fbs::Receive& receive) {
  if (send.peer() != receiver || receive.peer() != sender) {
    return absl::StrCat("role ", sender, " sends to ", send.peer(), ", but role ", receiver, " receives from ",
                        receive.peer());
  }
  if (std::string why = DTypesDiffer(send.dtype(), receive.dtype()); !why.empty()) return why;
  return CountsDiffer("range", send.ranges(), receive.ranges());
}

}  // namespace

bool SpansRoles(const fbs::Plan& plan, uint32_t communicator) {
  if (RoleCount(plan) == 1) return false;
  const auto* axes = plan.communicators()->Get(communicator)->axes();
  for (uint32_t i = 0; i < SizeOf(axes); ++i) {
    if (axes->Get(i) == plan.role_axis()) return true;
  }
  return false;
}

bool CommunicatesBetweenRoles(const fbs::Plan& plan, const fbs::Command& command) {
  const absl::optional<uint32_t> communicator = CommunicatorOf(command);
  return communicator.has_value() && SpansRoles(plan, *communicator);
}

std::string WhyDifferent(uint32_t first_role, const fbs::Command& first, uint32_t second_role,
                         const fbs::Command& second) {
  const fbs::Collective* collective = first.body_as_Collective();
  const fbs::Collective* other = second.body_as_Collective();
  if (collective != nullptr && other != nullptr) return CollectivesDiffer(*collective, *other);
  if (first.body_as_Send() != nullptr && second.body_as_Receive() != nullptr) {
    return TransfersDiffer(first_role, *first.body_as_Send(), second_role, *second.body_as_Receive());
  }
  if (first.body_as_Receive() != nullptr && second.body_as_Send() != nullptr) {
    return TransfersDiffer(second_role, *second.body_as_Send(), first_role, *first.body_as_Receive());
  }
  return absl::StrCat("one is a ", fbs::EnumNameCommandBody(first.body_type()), ", the other a ",
                      fbs::EnumNameCommandBody(second.body_type()));
}

}  // namespace bowline
