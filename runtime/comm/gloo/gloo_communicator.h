#ifndef BOWLINE_RUNTIME_COMM_GLOO_GLOO_COMMUNICATOR_H_
#define BOWLINE_RUNTIME_COMM_GLOO_GLOO_COMMUNICATOR_H_

#include <memory>
#include <utility>

#include "runtime/comm/gloo/gloo_channel.h"
#include "runtime/comm/host_communicator.h"

namespace bowline {

// A member's communicator over its channel.
class GlooCommunicator : public HostCommunicator {
 public:
  explicit GlooCommunicator(std::shared_ptr<GlooChannel> channel)
      : HostCommunicator(channel->name(), channel->ranks(), channel->self()), channel_(std::move(channel)) {}

 private:
  absl::Status Run(const Operation& operation, absl::Span<const hal::Piece> pieces) override {
    return channel_->Run(operation, pieces);
  }

  std::shared_ptr<GlooChannel> channel_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_GLOO_GLOO_COMMUNICATOR_H_
