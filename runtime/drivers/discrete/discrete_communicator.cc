#include "runtime/drivers/discrete/discrete_communicator.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/discrete/device_activity.h"

namespace bowline {
namespace {

constexpr uint64_t kLateOneOf = 2;

// Whether the ranges that are sent and received overlap. `Moved` is StagingCommunicator::Moved.
template <typename Moved>
bool IsInPlace(const Moved& tensor) {
  return tensor.send_bytes > 0 && tensor.receive_bytes > 0 && tensor.send < tensor.receive + tensor.receive_bytes &&
         tensor.receive < tensor.send + tensor.send_bytes;
}

}  // namespace

absl::Status DiscreteCommunicator::MakeRoom(std::vector<std::unique_ptr<hal::Allocation>>& memory, size_t bytes) {
  if (!memory.empty() && memory.back()->bytes() >= bytes) return absl::OkStatus();
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Allocation> larger,
                           device().Allocate(bytes, hal::MemorySpace::kPinnedHost));
  memory.push_back(std::move(larger));
  return absl::OkStatus();
}

absl::Status DiscreteCommunicator::Reserve(const hal::Operation& operation, absl::Span<const hal::Piece> pieces) {
  BOWLINE_RETURN_IF_ERROR(StagingCommunicator::Reserve(operation, pieces));
  size_t count = 0;
  for (const hal::Piece& piece : pieces) count = std::max(count, piece.count);
  const size_t bytes = count * kernels::SizeOf(operation.dtype);
  BOWLINE_RETURN_IF_ERROR(MakeRoom(again_, bytes * static_cast<size_t>(operation.SendParts(size()))));
  // Fresh memory is poisoned.
  return MakeRoom(poison_, bytes * static_cast<size_t>(operation.ReceiveParts(size())));
}

absl::Status DiscreteCommunicator::BeforeExchange(hal::Stream& stream, const Moved& tensor) {
  if (tensor.receive_bytes == 0 || IsInPlace(tensor)) return absl::OkStatus();
  return stream.Copy(tensor.receive, poison_.back()->address(), tensor.receive_bytes);
}

absl::Status DiscreteCommunicator::AfterExchange(hal::Stream& stream, const Moved& tensor) {
  if (tensor.send_bytes == 0) return absl::OkStatus();
  hal::HostCall call;
  call.context = this;
  call.run = &DiscreteCommunicator::Wait;
  if (is_late_) BOWLINE_RETURN_IF_ERROR(stream.Call(call));
  hal::Allocation& again = *again_.back();
  BOWLINE_RETURN_IF_ERROR(stream.Copy(again.address(), tensor.send, tensor.send_bytes));
  call.run = &DiscreteCommunicator::Compare;
  call.parameters = {reinterpret_cast<uint64_t>(again.host()), reinterpret_cast<uint64_t>(tensor.staged),
                     tensor.send_bytes};
  return stream.Call(call);
}

absl::Status DiscreteCommunicator::Wait(const hal::HostCall& call) {
  auto& self = *static_cast<DiscreteCommunicator*>(call.context);
  // The turn has bit 32 set, which comes after the turns of late commands, which have 32 bits; operations have a random
  // order among themselves.
  if (self.random_() % kLateOneOf == 0) DeviceActivity::AwaitQuiet(uint64_t{1} << 32 | self.random_() >> 32);
  return absl::OkStatus();
}

absl::Status DiscreteCommunicator::Compare(const hal::HostCall& call) {
  const auto* again = reinterpret_cast<const uint8_t*>(call.parameters[0]);
  const auto* staged = reinterpret_cast<const uint8_t*>(call.parameters[1]);
  const auto size = static_cast<size_t>(call.parameters[2]);
  if (std::memcmp(again, staged, size) == 0) return absl::OkStatus();
  const auto changed = std::mismatch(again, again + size, staged).first - again;
  hal::Exchange& exchange = static_cast<DiscreteCommunicator*>(call.context)->exchange();
  // Other streams may wait for ranks that wait for this one.
  return exchange.Break(absl::AbortedError(absl::StrCat(
      "communicator '", exchange.name(), "', rank ", exchange.ranks()[static_cast<size_t>(exchange.self())], ": byte ",
      changed, " of ", size,
      " changed while it was sent: a command that writes it does not wait for the end of the operation; run "
      "bowline-check on the plan")));
}

}  // namespace bowline
