#ifndef BOWLINE_RUNTIME_COMM_LOOPBACK_RENDEZVOUS_H_
#define BOWLINE_RUNTIME_COMM_LOOPBACK_RENDEZVOUS_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "absl/functional/function_ref.h"

namespace bowline {

// The meeting point of the members of a communicator. Meetings either have all members or none: one word holds the
// number of members that are there and whether the meeting was broken off. So no member leaves the meeting and frees
// memory while another member continues and reads that memory.
class MeetingPoint {
 public:
  static constexpr int kMaxMembers = 4095;

  explicit MeetingPoint(int members) : members_(static_cast<uint32_t>(members)) {}

  // Returns true when all members are there, or false, to every member, when the meeting was broken off. After the
  // deadline it calls `late` once, which is expected to break off.
  bool Enter(std::chrono::steady_clock::time_point deadline, absl::FunctionRef<void()> late);

  // Waits as Enter does, where every member is sure to come; such a meeting is not broken off.
  void Join();

  void BreakOff();

 private:
  // The bits of the word, from the lowest one: 12 for the number of members that are there, 19 for the number of the
  // meeting, 1 for whether it was broken off.
  static constexpr uint32_t kCount = 0xfff, kMeeting = 0x7ffff000, kBroken = 0x80000000;

  // The word that follows `word` when one more member arrives.
  uint32_t Arrived(uint32_t word) const {
    if ((word & kCount) + 1 < members_) return word + 1;
    return (word & kBroken) | ((word & kMeeting) + (kCount + 1)) % kBroken;
  }

  const uint32_t members_;
  std::atomic<uint32_t> word_{0};
};

// The sender's side of rendezvous between two members: posted by the sender, claimed and finished by the receiver. From
// claim to finish neither side leaves.
class Mailbox {
 public:
  enum class Result { kDone, kFailed, kBrokenOff };

  // Returns when the receiver has finished. kBrokenOff: it never started.
  Result Send(int receiver, std::chrono::steady_clock::time_point deadline, absl::FunctionRef<void()> late);

  // Returns true when the owner has posted for `receiver`; Finish must follow. False when broken off.
  bool Claim(int receiver, std::chrono::steady_clock::time_point deadline, absl::FunctionRef<void()> late);
  void Finish(bool failed);

  void BreakOff();

 private:
  static constexpr uint32_t kState = 3, kIdle = 0, kPosted = 1, kClaimed = 2, kDone = 3;
  static constexpr uint32_t kFailed = 4, kBroken = 0x80000000;
  static uint32_t Posted(int receiver) { return kPosted | static_cast<uint32_t>(receiver) << 3; }

  std::atomic<uint32_t> word_{kIdle};
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_LOOPBACK_RENDEZVOUS_H_
