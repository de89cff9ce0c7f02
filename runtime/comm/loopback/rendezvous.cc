#include "runtime/comm/loopback/rendezvous.h"

#include "runtime/base/futex.h"

namespace bowline {

bool MeetingPoint::Enter(std::chrono::steady_clock::time_point deadline, absl::FunctionRef<void()> late) {
  uint32_t before = word_.load(std::memory_order_seq_cst);
  do {
    if ((before & kBroken) != 0) return false;
  } while (!word_.compare_exchange_weak(before, Arrived(before), std::memory_order_seq_cst));
  if ((before & kCount) + 1 == members_) {
    WakeAll(word_);
    return true;
  }
  while (true) {
    const uint32_t now = word_.load(std::memory_order_seq_cst);
    if (((now ^ before) & kMeeting) != 0) return true;
    if ((now & kBroken) != 0) return false;  // the others cannot arrive any more
    if (WaitWhile(word_, now, deadline)) continue;
    late();
    deadline = kNoDeadline;
  }
}

void MeetingPoint::Join() {
  uint32_t before = word_.load(std::memory_order_seq_cst);
  while (!word_.compare_exchange_weak(before, Arrived(before), std::memory_order_seq_cst)) {
  }
  if ((before & kCount) + 1 == members_) return WakeAll(word_);
  while (true) {
    const uint32_t now = word_.load(std::memory_order_seq_cst);
    if (((now ^ before) & kMeeting) != 0) return;
    WaitWhile(word_, now);
  }
}

void MeetingPoint::BreakOff() {
  word_.fetch_or(kBroken, std::memory_order_seq_cst);
  WakeAll(word_);
}

Mailbox::Result Mailbox::Send(int receiver, std::chrono::steady_clock::time_point deadline,
                              absl::FunctionRef<void()> late) {
  uint32_t idle = kIdle;
  if (!word_.compare_exchange_strong(idle, Posted(receiver), std::memory_order_seq_cst)) return Result::kBrokenOff;
  WakeAll(word_);
  while (true) {
    const uint32_t now = word_.load(std::memory_order_seq_cst);
    const uint32_t state = now & kState;
    if (state == kDone) {
      word_.fetch_and(kBroken, std::memory_order_seq_cst);
      return (now & kFailed) != 0 ? Result::kFailed : Result::kDone;
    }
    if (state == kPosted && (now & kBroken) != 0) return Result::kBrokenOff;  // no member claims it any more
    if (WaitWhile(word_, now, state == kPosted ? deadline : kNoDeadline)) continue;
    late();
    deadline = kNoDeadline;
  }
}

bool Mailbox::Claim(int receiver, std::chrono::steady_clock::time_point deadline, absl::FunctionRef<void()> late) {
  while (true) {
    uint32_t now = word_.load(std::memory_order_seq_cst);
    if ((now & kBroken) != 0) return false;
    if (now == Posted(receiver)) {
      if (word_.compare_exchange_strong(now, kClaimed, std::memory_order_seq_cst)) return true;
      continue;
    }
    if (WaitWhile(word_, now, deadline)) continue;
    late();
    deadline = kNoDeadline;
  }
}

void Mailbox::Finish(bool failed) {
  word_.fetch_or(kDone | (failed ? kFailed : 0), std::memory_order_seq_cst);
  WakeAll(word_);
}

void Mailbox::BreakOff() {
  word_.fetch_or(kBroken, std::memory_order_seq_cst);
  WakeAll(word_);
}

}  // namespace bowline
