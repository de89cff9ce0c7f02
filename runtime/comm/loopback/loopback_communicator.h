#ifndef BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_COMMUNICATOR_H_
#define BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_COMMUNICATOR_H_

#include <memory>
#include <utility>

#include "runtime/comm/host_communicator.h"
#include "runtime/comm/loopback/channel.h"

namespace bowline {

// A member's end of a channel.
class LoopbackCommunicator : public HostCommunicator {
 public:
  LoopbackCommunicator(std::shared_ptr<Channel> channel, int self)
      : HostCommunicator(channel->name(), channel->ranks(), self), channel_(std::move(channel)) {}

 private:
  absl::Status Run(const Operation& operation, absl::Span<const hal::Piece> pieces) override {
    return channel_->Run(rank(), operation, pieces);
  }

  std::shared_ptr<Channel> channel_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_COMMUNICATOR_H_
