#include "runtime/drivers/cuda/nccl/communicators.h"

#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/host/staging_communicator.h"

namespace bowline {

struct CudaCommunicators::Card {
  uint8_t way = 0, has_nccl = 0, has_host = 0;
  std::array<uint8_t, 16> identity = {};
};

struct CudaCommunicators::Library {
  int32_t version = 0;  // 0: there is none
  uint8_t has_parent = 0;
};

namespace {

// Gathers `own` of every member, in the order of members.
template <typename T>
absl::StatusOr<std::vector<T>> GatherFrom(hal::Exchange& exchange, const T& own) {
  std::vector<T> all(static_cast<size_t>(exchange.size()));
  const hal::HostPiece piece = {&own, all.data(), sizeof(T)};
  BOWLINE_RETURN_IF_ERROR(exchange.Run({hal::OperationKind::kAllGather, kernels::DType::kU8}, {&piece, 1}));
  return all;
}

std::string Member(const hal::Exchange& exchange, size_t place) {
  return absl::StrCat("rank ", exchange.ranks()[place]);
}

absl::Status Refuse(const hal::Exchange& exchange, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat("communicator '", exchange.name(), "': ", why));
}

}  // namespace

std::unique_ptr<hal::Communicator> CudaCommunicators::CreateByHost(std::unique_ptr<hal::Exchange> exchange) {
  has_host_ |= exchange->size() > 1;
  return std::make_unique<StagingCommunicator>(device_, std::move(exchange));
}

absl::StatusOr<std::unique_ptr<hal::Communicator>> CudaCommunicators::Create(std::unique_ptr<hal::Exchange> exchange) {
  // The others are not asked where the answer is known.
  if (way_ == CommunicatorWay::kHost || (way_ == CommunicatorWay::kAuto && exchange->size() == 1)) {
    return CreateByHost(std::move(exchange));
  }
  BOWLINE_ASSIGN_OR_RETURN(const bool by_nccl, CardsAllowNccl(*exchange));
  if (by_nccl) return CreateByNccl(std::move(exchange));
  return CreateByHost(std::move(exchange));
}

absl::StatusOr<bool> CudaCommunicators::CardsAllowNccl(hal::Exchange& exchange) {
  const Card own = {static_cast<uint8_t>(way_), has_nccl_, has_host_, card_->identity()};
  BOWLINE_ASSIGN_OR_RETURN(const std::vector<Card> all, GatherFrom(exchange, own));
  const bool asked = way_ == CommunicatorWay::kNccl;
  bool has_nccl = false, has_host = false;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].way != own.way) {
      return Refuse(exchange,
                    absl::StrCat(Member(exchange, i), " and ", Member(exchange, static_cast<size_t>(exchange.self())),
                                 " have different settings communicators=...; give all ranks the same"));
    }
    has_nccl |= all[i].has_nccl != 0;
    has_host |= all[i].has_host != 0;
  }
  if (exchange.emulates_link()) {
    if (!asked) return false;
    return Refuse(exchange, "communicators=nccl, but NCCL emulates no link; leave out --link");
  }
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = i + 1; j < all.size(); ++j) {
      if (all[i].identity != all[j].identity) continue;
      const std::string shared = absl::StrCat(Member(exchange, i), " and ", Member(exchange, j), " share a card");
      if (asked) {
        return Refuse(exchange, absl::StrCat("communicators=nccl, but ", shared,
                                             "; give each rank a card of its own, or leave the setting out"));
      }
      if (!has_nccl) return false;
      return Refuse(exchange, absl::StrCat(shared,
                                           ", but other ranks in the group use NCCL, which needs one card per "
                                           "rank; give all ranks communicators=host, or cards of their own"));
    }
  }
  // Operations by the host reach the card later than NCCL's, and so in an order that differs among ranks.
  return asked || !has_host;
}

absl::StatusOr<std::unique_ptr<hal::Communicator>> CudaCommunicators::CreateByNccl(
    std::unique_ptr<hal::Exchange> exchange) {
  absl::Status missing;
  if (nccl_ == nullptr) {
    auto opened = OpenNccl(card_, memory_, libraries_);
    missing = opened.status();
    if (opened.ok()) nccl_ = *std::move(opened);
  }
  Library own;
  if (nccl_ != nullptr) {
    own.version = nccl_->version();
    own.has_parent = nccl_->HasParent(exchange->ranks());
  }
  BOWLINE_ASSIGN_OR_RETURN(const std::vector<Library> all, GatherFrom(*exchange, own));
  bool all_have = true, all_have_parents = true;
  for (size_t i = 0; i < all.size(); ++i) {
    all_have &= all[i].version != 0;
    all_have_parents &= all[i].has_parent != 0;
  }
  if (!all_have && way_ == CommunicatorWay::kAuto) return CreateByHost(std::move(exchange));
  BOWLINE_RETURN_IF_ERROR(missing);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].version == own.version) continue;
    return Refuse(*exchange,
                  all[i].version == 0
                      ? absl::StrCat(Member(*exchange, i), " has no NCCL; its message says more")
                      : absl::StrCat(Member(*exchange, i), " has another version of NCCL than ", nccl_->version_text(),
                                     ", that of ", Member(*exchange, static_cast<size_t>(exchange->self())),
                                     "; install the same on all machines"));
  }
  has_nccl_ |= exchange->size() > 1;
  std::string id;
  if (!all_have_parents) {
    BOWLINE_ASSIGN_OR_RETURN(id, IdOfFirst(*exchange));
  }
  return nccl_->Create(std::move(exchange), id);
}

absl::StatusOr<std::string> CudaCommunicators::IdOfFirst(hal::Exchange& exchange) {
  std::array<char, kNcclIdBytes> own = {};
  if (exchange.self() == 0) {
    const absl::StatusOr<std::string> id = nccl_->CreateId();
    if (!id.ok()) return exchange.Break(id.status());
    std::memcpy(own.data(), id->data(), own.size());
  }
  BOWLINE_ASSIGN_OR_RETURN(const auto all, GatherFrom(exchange, own));
  return std::string(all[0].data(), all[0].size());
}

}  // namespace bowline
