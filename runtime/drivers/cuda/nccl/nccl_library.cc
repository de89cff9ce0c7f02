// How the communicators of a device by NCCL begin.

#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/cuda/nccl/communicators.h"
#include "runtime/drivers/cuda/nccl/nccl_communicator.h"

namespace bowline {
namespace {

static_assert(sizeof(ncclUniqueId) == kNcclIdBytes);

class LoadedNccl : public NcclLibrary {
 public:
  LoadedNccl(const NcclApi& api, const CudaCard* card, CudaMemory* memory)
      : api_(api), card_(card), memory_(memory), watch_(card, api) {}

  int version() const override { return api_.version; }
  std::string version_text() const override { return NcclVersionText(api_.version); }

  absl::StatusOr<std::string> CreateId() override {
    ncclUniqueId id;
    BOWLINE_RETURN_IF_ERROR(NcclStatus(api_, api_.ncclGetUniqueId(&id), "ncclGetUniqueId", nullptr));
    return std::string(id.internal, sizeof(id.internal));
  }

  bool HasParent(const std::vector<int>& members) const override {
    const auto found = parents_.find(members);
    return found != parents_.end() && !found->second.expired();
  }

  absl::StatusOr<std::unique_ptr<hal::Communicator>> Create(std::unique_ptr<hal::Exchange> exchange,
                                                            const std::string& id) override {
    BOWLINE_RETURN_IF_ERROR(card_->MakeCurrent());
    BOWLINE_RETURN_IF_ERROR(watch_.failure());
    auto comm = std::make_shared<NcclComm>(api_, *exchange);
    const std::vector<int> members = exchange->ranks();
    absl::Status status;
    if (id.empty()) {
      status = comm->SplitFrom(*parents_[members].lock());
    } else {
      ncclUniqueId unique;
      std::memcpy(unique.internal, id.data(), sizeof(unique.internal));
      status = comm->Connect(unique);
      if (status.ok()) parents_[members] = comm;
    }
    if (!status.ok()) {
      // Unless it is the run's already.
      if (exchange->status().ok()) status = exchange->Complain(std::string(status.message()));
      return Annotate(
          status, absl::StrCat("communicator '", exchange->name(), "' by NCCL, without which communicators=host does"));
    }
    return NcclCommunicator::Create(api_, memory_, &watch_, std::move(exchange), std::move(comm));
  }

 private:
  const NcclApi& api_;
  const CudaCard* card_;
  CudaMemory* memory_;
  NcclWatch watch_;
  std::map<std::vector<int>, std::weak_ptr<NcclComm>> parents_;  // the first communicator of these members
};

}  // namespace

absl::StatusOr<std::unique_ptr<NcclLibrary>> OpenNccl(const CudaCard* card, CudaMemory* memory,
                                                      const std::vector<std::string>& folders) {
  BOWLINE_ASSIGN_OR_RETURN(const NcclApi* const api, LoadNccl(folders));
  return std::make_unique<LoadedNccl>(*api, card, memory);
}

}  // namespace bowline
