#include "runtime/drivers/host/staging_communicator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

// The alignment in bytes of places in staging memory, so that copies of large pieces are aligned on both sides.
constexpr size_t kAlignment = 256;

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

StagingCommunicator::Place StagingCommunicator::Take(const hal::Operation& operation, size_t count,
                                                     size_t& offset) const {
  const size_t bytes = count * kernels::SizeOf(operation.dtype);
  Place place;
  place.send = offset;
  place.send_bytes = bytes * static_cast<size_t>(operation.SendParts(size()));
  place.receive = place.send + Aligned(place.send_bytes);
  place.receive_bytes = bytes * static_cast<size_t>(operation.ReceiveParts(size()));
  offset = place.receive + Aligned(place.receive_bytes);
  return place;
}

absl::Status StagingCommunicator::Reserve(const hal::Operation& operation, absl::Span<const hal::Piece> pieces) {
  BOWLINE_RETURN_IF_ERROR(hal::CheckOperation(*exchange_, operation, pieces));
  size_t bytes = 0;
  for (const hal::Piece& piece : pieces) Take(operation, piece.count, bytes);
  const Staging* last = staging_.empty() ? nullptr : staging_.back().get();
  if (last != nullptr && last->memory->bytes() >= bytes && last->pieces.size() >= pieces.size()) {
    return absl::OkStatus();
  }
  auto staging = std::make_unique<Staging>();
  staging->owner = this;
  if (last != nullptr) bytes = std::max(bytes, last->memory->bytes());
  staging->pieces.resize(last == nullptr ? pieces.size() : std::max(pieces.size(), last->pieces.size()));
  auto memory = device_->Allocate(bytes, hal::MemorySpace::kPinnedHost);
  if (!memory.ok()) {
    return Annotate(memory.status(), absl::StrCat("communicator '", exchange_->name(), "': staging memory"));
  }
  staging->memory = *std::move(memory);
  staging_.push_back(std::move(staging));
  return absl::OkStatus();
}

absl::Status StagingCommunicator::ForEach(hal::Stream& stream, const hal::Operation& operation,
                                          absl::Span<const hal::Piece> pieces,
                                          absl::Status (StagingCommunicator::*issue)(hal::Stream&, const Moved&)) {
  const Staging& staging = *staging_.back();
  size_t offset = 0;
  for (const hal::Piece& piece : pieces) {
    const Place place = Take(operation, piece.count, offset);
    const Moved tensor = {piece.send,
                          piece.receive,
                          place.send_bytes,
                          place.receive_bytes,
                          staging.memory->host() + place.send,
                          staging.memory->address() + place.send,
                          staging.memory->address() + place.receive};
    BOWLINE_RETURN_IF_ERROR((this->*issue)(stream, tensor));
  }
  return absl::OkStatus();
}

absl::Status StagingCommunicator::CopyIn(hal::Stream& stream, const Moved& tensor) {
  return tensor.send_bytes == 0 ? absl::OkStatus() : stream.Copy(tensor.staged_send, tensor.send, tensor.send_bytes);
}

absl::Status StagingCommunicator::CopyOut(hal::Stream& stream, const Moved& tensor) {
  return tensor.receive_bytes == 0 ? absl::OkStatus()
                                   : stream.Copy(tensor.receive, tensor.staged_receive, tensor.receive_bytes);
}

absl::Status StagingCommunicator::Issue(hal::Stream& stream, const hal::Operation& operation,
                                        absl::Span<const hal::Piece> pieces) {
  BOWLINE_RETURN_IF_ERROR(Reserve(operation, pieces));
  BOWLINE_RETURN_IF_ERROR(ForEach(stream, operation, pieces, &StagingCommunicator::CopyIn));
  BOWLINE_RETURN_IF_ERROR(ForEach(stream, operation, pieces, &StagingCommunicator::BeforeExchange));
  hal::HostCall call;
  call.run = &StagingCommunicator::Run;
  call.context = staging_.back().get();
  call.parameters[0] = operation.Pack();
  call.parameters[1] = pieces.size();
  // The array of a single piece may no longer exist when the call runs, so its count is passed.
  call.parameters[2] = pieces.size() == 1 ? pieces[0].count : reinterpret_cast<uint64_t>(pieces.data());
  BOWLINE_RETURN_IF_ERROR(stream.Call(call));
  BOWLINE_RETURN_IF_ERROR(ForEach(stream, operation, pieces, &StagingCommunicator::AfterExchange));
  return ForEach(stream, operation, pieces, &StagingCommunicator::CopyOut);
}

absl::Status StagingCommunicator::Run(const hal::HostCall& call) {
  auto& staging = *static_cast<Staging*>(call.context);
  StagingCommunicator& self = *staging.owner;
  const auto operation = hal::Operation::Unpack(call.parameters[0]);
  const auto count = static_cast<size_t>(call.parameters[1]);
  // Two of them would meet in the staging memory.
  if (self.busy_.exchange(true)) {
    return self.exchange_->Break(absl::InvalidArgumentError(absl::StrCat(
        "communicator '", self.exchange_->name(), "': rank ", self.exchange_->ranks()[static_cast<size_t>(self.rank())],
        " has two operations at the same time; put them into one stream or order them with events")));
  }
  uint8_t* const base = staging.memory->host();
  size_t offset = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t elements = count == 1 ? static_cast<size_t>(call.parameters[2])
                                       : reinterpret_cast<const hal::Piece*>(call.parameters[2])[i].count;
    const Place place = self.Take(operation, elements, offset);
    staging.pieces[i] = {base + place.send, base + place.receive, elements};
  }
  const absl::Status status = self.exchange_->Run(operation, {staging.pieces.data(), count});
  self.busy_ = false;
  return status;
}

}  // namespace bowline
