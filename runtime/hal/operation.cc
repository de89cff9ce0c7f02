#include "runtime/hal/operation.h"

#include "absl/strings/str_cat.h"

namespace bowline::hal {
namespace {

std::string NameOf(const Operation& operation) {
  if (const collectives::Definition* collective = operation.collective()) {
    if (collective->parameter == collectives::Parameter::kNone) return collective->name;
    return absl::StrCat(collective->name, "(", DescribeParameter(collective->parameter, operation.parameter), ")");
  }
  switch (operation.kind) {
    case OperationKind::kSend:
      return "send";
    case OperationKind::kReceive:
      return "receive";
    case OperationKind::kBarrier:
      return "barrier";
    default:
      return "nothing";
  }
}

}  // namespace

int Operation::SendParts(int members) const {
  if (const collectives::Definition* own = collective()) return own->SourceParts(members);
  return kind == OperationKind::kSend ? 1 : 0;
}

int Operation::ReceiveParts(int members) const {
  if (const collectives::Definition* own = collective()) return own->DestinationParts(members);
  return kind == OperationKind::kReceive ? 1 : 0;
}

uint64_t Operation::Pack() const {
  const auto extra = static_cast<uint16_t>(concerns_two() ? peer + 1 : parameter);
  return static_cast<uint64_t>(kind) | static_cast<uint64_t>(dtype) << 8 | static_cast<uint64_t>(extra) << 16 |
         static_cast<uint64_t>(number) << 32;
}

Operation Operation::Unpack(uint64_t word) {
  Operation operation;
  // The word may come from another process.
  if ((word & 0xff) > static_cast<uint64_t>(OperationKind::kBarrier) ||
      !IsElementType(static_cast<kernels::DType>(word >> 8 & 0xff))) {
    return operation;
  }
  operation.kind = static_cast<OperationKind>(word & 0xff);
  operation.dtype = static_cast<kernels::DType>(word >> 8 & 0xff);
  const auto extra = static_cast<uint16_t>(word >> 16);
  if (operation.concerns_two()) {
    operation.peer = extra - 1;
  } else {
    operation.parameter = extra;
  }
  operation.number = static_cast<uint32_t>(word >> 32);
  return operation;
}

std::string Describe(const Operation& operation, uint64_t total, int peer_rank) {
  std::string text = NameOf(operation);
  if (operation.kind == OperationKind::kNone || operation.kind == OperationKind::kBarrier) return text;
  absl::StrAppend(&text, " of ", total, " ", kernels::NameOf(operation.dtype));
  if (operation.kind == OperationKind::kSend) absl::StrAppend(&text, " to rank ", peer_rank);
  if (operation.kind == OperationKind::kReceive) absl::StrAppend(&text, " from rank ", peer_rank);
  return text;
}

}  // namespace bowline::hal
