#ifndef BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_COMMUNICATOR_H_
#define BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_COMMUNICATOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "runtime/drivers/host/staging_communicator.h"

namespace bowline {

// Holds plans to what communicators promise: their operands belong to an operation from its begin to its end in its own
// stream, however late others send and however early they have what they receive. Writes poison where something will be
// received; reads what was sent again after the exchange, and ends with kAborted where it changed meanwhile. Operations
// in place do neither.
class DiscreteCommunicator : public StagingCommunicator {
 public:
  // If `seed` is given, a send ends, with probability 1/2, as late as it can: when nothing else of the process goes on.
  DiscreteCommunicator(hal::Device* device, std::unique_ptr<hal::Exchange> exchange, std::optional<uint64_t> seed)
      : StagingCommunicator(device, std::move(exchange)), is_late_(seed.has_value()), random_(seed.value_or(0)) {}

  absl::Status Reserve(const hal::Operation& operation, absl::Span<const hal::Piece> pieces) override;

 protected:
  absl::Status BeforeExchange(hal::Stream& stream, const Moved& tensor) override;
  absl::Status AfterExchange(hal::Stream& stream, const Moved& tensor) override;

 private:
  absl::Status MakeRoom(std::vector<std::unique_ptr<hal::Allocation>>& memory, size_t bytes);
  static absl::Status Wait(const hal::HostCall& call);
  static absl::Status Compare(const hal::HostCall& call);

  const bool is_late_;
  std::mt19937_64 random_;  // used by the stream, which runs one operation at a time
  // Memory for the sent data, read again, and of poison. The last of each is the largest; those before may still be
  // used by issued commands.
  std::vector<std::unique_ptr<hal::Allocation>> again_, poison_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_COMMUNICATOR_H_
