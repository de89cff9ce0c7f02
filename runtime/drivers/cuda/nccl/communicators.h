#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_COMMUNICATORS_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_COMMUNICATORS_H_

#include <memory>
#include <string>
#include <vector>

#include "runtime/drivers/cuda/card/cuda_card.h"
#include "runtime/drivers/cuda/card/cuda_memory.h"
#include "runtime/hal/device.h"

namespace bowline {

// The way in which a group of ranks moves data: by NCCL, on the cards, or by the ranks' exchange, with copies through
// pinned memory of the host.
enum class CommunicatorWay : uint8_t {
  kAuto,  // NCCL where the ranks lie on different cards and all have the library
  kNccl,
  kHost,
};

// The functions of NCCL that a device calls. The interface lets the device be built without NCCL.
class NcclLibrary {
 public:
  virtual ~NcclLibrary() = default;
  virtual int version() const = 0;
  virtual std::string version_text() const = 0;
  // Bytes by which the members of a new group find each other.
  virtual absl::StatusOr<std::string> CreateId() = 0;
  // Returns whether there is a communicator with these members, from which another one can be split.
  virtual bool HasParent(const std::vector<int>& members) const = 0;
  // All members call it: with the id of one of them, or, to split, with an empty one.
  virtual absl::StatusOr<std::unique_ptr<hal::Communicator>> Create(std::unique_ptr<hal::Exchange> exchange,
                                                                    const std::string& id) = 0;
};
inline constexpr size_t kNcclIdBytes = 128;

// Returns kUnavailable when the library is missing, or this build is without it.
absl::StatusOr<std::unique_ptr<NcclLibrary>> OpenNccl(const CudaCard* card, CudaMemory* memory,
                                                      const std::vector<std::string>& folders);

// Makes the communicators of a device. The members of a group agree, over their exchange, on the way to move data: each
// member decides by the answers of all members.
class CudaCommunicators {
 public:
  CudaCommunicators(hal::Device* device, const CudaCard* card, CudaMemory* memory, CommunicatorWay way,
                    std::vector<std::string> libraries)
      : device_(device), card_(card), memory_(memory), way_(way), libraries_(std::move(libraries)) {}

  absl::StatusOr<std::unique_ptr<hal::Communicator>> Create(std::unique_ptr<hal::Exchange> exchange);

  // Returns whether NCCL moves the data of a group of several ranks that was made so far.
  bool by_nccl() const { return has_nccl_; }

 private:
  // The messages of each member: first its card and its settings, then, where these allow NCCL, its library.
  struct Card;
  struct Library;

  absl::StatusOr<bool> CardsAllowNccl(hal::Exchange& exchange);
  // An id that the first member makes when it is known that they need one, whichever of them it is that has no parent.
  absl::StatusOr<std::string> IdOfFirst(hal::Exchange& exchange);
  absl::StatusOr<std::unique_ptr<hal::Communicator>> CreateByNccl(std::unique_ptr<hal::Exchange> exchange);
  std::unique_ptr<hal::Communicator> CreateByHost(std::unique_ptr<hal::Exchange> exchange);

  hal::Device* device_;
  const CudaCard* card_;
  CudaMemory* memory_;
  const CommunicatorWay way_;
  const std::vector<std::string> libraries_;
  std::unique_ptr<NcclLibrary> nccl_;
  // Which kinds of groups of several ranks it has.
  bool has_nccl_ = false, has_host_ = false;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_COMMUNICATORS_H_
