#include "runtime/executor/external_memory.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {

ExternalMemory::ExternalMemory(const fbs::Plan& plan, uint32_t role, hal::Device& device)
    : plan_(plan), device_(device) {
  for (uint32_t i = 0; i < plan.buffers()->size(); ++i) {
    const fbs::Buffer& buffer = *plan.buffers()->Get(i);
    if (buffer.space() == fbs::MemorySpace::External && buffer.role() == role) places_[i];
  }
  missing_ = places_.size();
}

absl::Status ExternalMemory::DescribeMissing() const {
  for (const auto& [buffer, place] : places_) {
    if (place.address != 0) continue;
    return absl::FailedPreconditionError(absl::StrCat("buffer ", Quoted(plan_.buffers()->Get(buffer)->name()),
                                                      " of memory space External has no memory yet; load the weights "
                                                      "first"));
  }
  return absl::OkStatus();
}

void ExternalMemory::Give(Place& place, hal::DeviceAddress address) {
  if (place.address == 0) --missing_;
  place.address = address;
}

ExternalBytes ExternalMemory::bytes() const {
  ExternalBytes bytes;
  for (const auto& [buffer, place] : places_) {
    if (place.address == 0) continue;
    (place.own == nullptr ? bytes.in_place : bytes.copied) += plan_.buffers()->Get(buffer)->bytes();
  }
  return bytes;
}

bool ExternalMemory::Borrow(uint32_t buffer, absl::Span<const uint8_t> memory,
                            const std::shared_ptr<const void>& owner) {
  const std::optional<hal::DeviceAddress> address = device_.AddressOfHost(memory);
  if (!address.has_value() || *address == 0 || *address % plan_.buffers()->Get(buffer)->alignment() != 0) return false;
  Place& place = places_.at(buffer);
  place.own = nullptr;
  place.borrowed = memory;
  place.owner = owner;
  Give(place, *address);
  return true;
}

absl::Status ExternalMemory::Read(uint32_t buffer, uint64_t offset, absl::Span<uint8_t> to) const {
  const Place& place = places_.at(buffer);
  if (place.own != nullptr) return place.own->Read(offset, to);
  if (place.address == 0) return DescribeMissing();
  if (!to.empty()) std::memcpy(to.data(), place.borrowed.data() + offset, to.size());
  return absl::OkStatus();
}

absl::Status ExternalMemory::Write(uint32_t buffer, uint64_t offset, absl::Span<const uint8_t> from) {
  Place& place = places_.at(buffer);
  if (place.own == nullptr) {
    auto own = device_.Allocate(plan_.buffers()->Get(buffer)->bytes());
    if (!own.ok()) {
      return Annotate(own.status(), absl::StrCat("buffer ", Quoted(plan_.buffers()->Get(buffer)->name())));
    }
    // The bytes that this write leaves out keep their borrowed values.
    if (!place.borrowed.empty()) BOWLINE_RETURN_IF_ERROR((*own)->Write(0, place.borrowed));
    place.own = *std::move(own);
    place.borrowed = {};
    place.owner = nullptr;
    Give(place, place.own->address());
  }
  return place.own->Write(offset, from);
}

}  // namespace bowline
