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

// Checks that plans leave the operands of an operation alone from its begin to its end in its own stream, however late
// other ranks send and however early they receive. Writes poison to destinations before the exchange. Reads the sources
// again after the exchange, and fails with kAborted if they changed meanwhile. Operations in place have neither of
// these checks.
class DiscreteCommunicator : public StagingCommunicator {
 public:
  // If `seed` is given, half of the sends end as late as possible: when no other activity of the process runs.
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
