#ifndef BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_COMMUNICATOR_H_
#define BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_COMMUNICATOR_H_

#include <memory>
#include <utility>

#include "runtime/comm/loopback/channel.h"
#include "runtime/hal/communicator.h"

namespace bowline {

// A member's end of a channel: checks what a call says and puts it into the stream.
class LoopbackCommunicator : public hal::Communicator {
 public:
  LoopbackCommunicator(std::shared_ptr<Channel> channel, int self) : channel_(std::move(channel)), self_(self) {}

  int rank() const override { return self_; }
  int size() const override { return channel_->size(); }

  absl::Status AllReduce(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype,
                         hal::ReduceOp op) override;
  absl::Status AllGather(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype) override;
  absl::Status ReduceScatter(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype,
                             hal::ReduceOp op) override;
  absl::Status AllToAll(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype) override;
  absl::Status Send(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype, int peer) override;
  absl::Status Receive(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype,
                       int peer) override;
  absl::Status Barrier(hal::Stream& stream) override;

 private:
  absl::Status Issue(hal::Stream& stream, const Operation& operation, absl::Span<const hal::Piece> pieces);
  absl::Status Check(const Operation& operation, absl::Span<const hal::Piece> pieces) const;
  static absl::Status Run(const hal::HostCall& call);

  std::shared_ptr<Channel> channel_;
  int self_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_COMMUNICATOR_H_
