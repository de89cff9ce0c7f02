#include "runtime/plan/view/operand_uses.h"

#include "runtime/plan/view/collective_view.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {

void AppendCommunicationOperands(const fbs::Plan& plan, const fbs::Command& command, std::vector<OperandUse>& uses) {
  const auto append_ranges = [&](const auto& transfer, fbs::Access access) {
    for (uint32_t i = 0; i < SizeOf(transfer.ranges()); ++i) {
      const fbs::Range& range = *transfer.ranges()->Get(i);
      uses.push_back({&range.operand(), range.count() * ElementSize(transfer.dtype()), access});
    }
  };
  if (const fbs::Send* send = command.body_as_Send()) return append_ranges(*send, fbs::Access::Read);
  if (const fbs::Receive* receive = command.body_as_Receive()) return append_ranges(*receive, fbs::Access::Write);
  const fbs::Collective* collective = command.body_as_Collective();
  if (collective == nullptr) return;
  const uint64_t size = SizeAlong(plan, plan.communicators()->Get(collective->communicator())->axes());
  const collectives::Definition& definition = DefinitionOf(collective->kind());
  for (uint32_t i = 0; i < SizeOf(collective->pieces()); ++i) {
    const fbs::Piece& piece = *collective->pieces()->Get(i);
    const uint64_t bytes = piece.count() * ElementSize(collective->dtype());
    uses.push_back({&piece.source(), bytes * definition.SourceParts(size), fbs::Access::Read});
    uses.push_back({&piece.destination(), bytes * definition.DestinationParts(size), fbs::Access::Write});
  }
}

}  // namespace bowline
