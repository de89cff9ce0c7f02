#ifndef BOWLINE_RUNTIME_DRIVERS_HOST_STAGING_COMMUNICATOR_H_
#define BOWLINE_RUNTIME_DRIVERS_HOST_STAGING_COMMUNICATOR_H_

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/hal/device.h"

namespace bowline {

// The communicator of any device, also one whose memory the host cannot read. It copies the data to send into pinned
// memory of the host. An exchange sends from and receives into that memory. The communicator then copies the received
// data back. All this happens in the order of the stream.
class StagingCommunicator : public hal::Communicator {
 public:
  // `device` outlives it.
  StagingCommunicator(hal::Device* device, std::unique_ptr<hal::Exchange> exchange)
      : device_(device), exchange_(std::move(exchange)) {}

  int rank() const override { return exchange_->self(); }
  int size() const override { return exchange_->size(); }
  absl::Status Reserve(const hal::Operation& operation, absl::Span<const hal::Piece> pieces) override;
  absl::Status Issue(hal::Stream& stream, const hal::Operation& operation,
                     absl::Span<const hal::Piece> pieces) override;

 protected:
  hal::Device& device() { return *device_; }
  hal::Exchange& exchange() { return *exchange_; }

  // A tensor under way. A number of bytes is 0 if nothing is sent, or nothing is received.
  struct Moved {
    hal::DeviceAddress send, receive;
    size_t send_bytes, receive_bytes;
    const uint8_t* staged;  // the copy of the sent data, as the host sees it
    hal::DeviceAddress staged_send, staged_receive;
  };
  // Issue further commands for each tensor: after all that is sent was copied, and before received data is copied
  // back.
  virtual absl::Status BeforeExchange(hal::Stream& stream, const Moved& tensor) { return absl::OkStatus(); }
  virtual absl::Status AfterExchange(hal::Stream& stream, const Moved& tensor) { return absl::OkStatus(); }

 private:
  // Room for one operation, which those that follow use again: they are in order.
  struct Staging {
    StagingCommunicator* owner = nullptr;
    std::unique_ptr<hal::Allocation> memory;
    std::vector<hal::HostPiece> pieces;
  };
  // The place of a piece in the memory of a Staging: offsets and sizes, in bytes.
  struct Place {
    size_t send = 0, send_bytes = 0, receive = 0, receive_bytes = 0;
  };

  // The place of the piece of `count` elements that begins at `offset`, which moves behind it.
  Place Take(const hal::Operation& operation, size_t count, size_t& offset) const;
  // Calls (this->*issue) for each tensor.
  absl::Status ForEach(hal::Stream& stream, const hal::Operation& operation, absl::Span<const hal::Piece> pieces,
                       absl::Status (StagingCommunicator::*issue)(hal::Stream&, const Moved&));
  absl::Status CopyIn(hal::Stream& stream, const Moved& tensor);
  absl::Status CopyOut(hal::Stream& stream, const Moved& tensor);
  static absl::Status Run(const hal::HostCall& call);

  hal::Device* device_;
  std::unique_ptr<hal::Exchange> exchange_;
  // The last is the largest, and used by the operation issued now; commands in flight may still use the others.
  std::vector<std::unique_ptr<Staging>> staging_;
  std::atomic<bool> busy_{false};
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_HOST_STAGING_COMMUNICATOR_H_
