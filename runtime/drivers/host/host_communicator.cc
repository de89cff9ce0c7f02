#include "runtime/drivers/host/host_communicator.h"

#include "runtime/drivers/host/host_memory.h"

namespace bowline {

absl::Status HostCommunicator::Issue(hal::Stream& stream, const hal::Operation& operation,
                                     absl::Span<const hal::Piece> pieces) {
  BOWLINE_RETURN_IF_ERROR(hal::CheckOperation(*exchange_, operation, pieces));
  hal::HostCall call;
  call.run = &HostCommunicator::Run;
  call.context = this;
  call.parameters[0] = operation.Pack();
  call.parameters[1] = pieces.size();
  if (pieces.size() == 1) {
    call.parameters[2] = pieces[0].send;
    call.parameters[3] = pieces[0].receive;
    call.parameters[4] = pieces[0].count;
  } else {
    call.parameters[2] = AddressOf(pieces.data());
  }
  return stream.Call(call);
}

absl::Status HostCommunicator::Run(const hal::HostCall& call) {
  auto* self = static_cast<HostCommunicator*>(call.context);
  const auto operation = hal::Operation::Unpack(call.parameters[0]);
  const auto count = static_cast<size_t>(call.parameters[1]);
  const hal::Piece single = {call.parameters[2], call.parameters[3], static_cast<size_t>(call.parameters[4])};
  const hal::Piece* pieces = count == 1 ? &single : static_cast<const hal::Piece*>(PointerOf(call.parameters[2]));
  return self->exchange_->Run(operation, HostPiecesOf({pieces, count}));
}

}  // namespace bowline
