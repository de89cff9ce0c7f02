#include "test/Unit/Runtime/arena_probe.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/plan/view/plan_view.h"

namespace bowline::testing {

void AddGuards(fbs::PlanT& plan) {
  plan.arena_bytes += kGuardBytes;
  for (const auto& role : plan.roles) role->arena_bytes += kGuardBytes;
}

ArenaProbe::ArenaProbe(Session& session, uint8_t pattern)
    : session_(session), pattern_(pattern), constant_(session.arena().bytes()) {
  for (const fbs::Buffer* buffer : *session.plan().buffers()) {
    if (!IsOurs(*buffer) || buffer->kind() != fbs::BufferKind::Constant) continue;
    std::fill_n(constant_.begin() + static_cast<int64_t>(buffer->offset()), buffer->bytes(), true);
  }
  std::vector<uint8_t> bytes = BytesOfArena();
  for (size_t i = 0; i < constant_.size(); ++i) {
    if (!constant_[i]) bytes[i] = pattern;
  }
  EXPECT_TRUE(session.arena().Write(0, bytes).ok());
}

std::vector<uint8_t> ArenaProbe::BytesOfArena() const {
  std::vector<uint8_t> bytes(session_.arena().bytes());
  EXPECT_TRUE(session_.arena().Read(0, absl::MakeSpan(bytes)).ok());
  return bytes;
}

std::vector<bool> ArenaProbe::Written() const {
  const std::vector<uint8_t> bytes = BytesOfArena();
  std::vector<bool> written(constant_);
  for (size_t i = 0; i < written.size(); ++i) written[i] = written[i] || bytes[i] != pattern_;
  return written;
}

std::optional<uint64_t> ArenaProbe::FirstOutsideOfBuffers(const std::vector<bool>& written) const {
  std::vector<bool> outside(written);
  for (const fbs::Buffer* buffer : *session_.plan().buffers()) {
    if (!IsOurs(*buffer)) continue;
    for (uint32_t slot = 0; slot < buffer->slots(); ++slot) {
      std::fill_n(outside.begin() + static_cast<int64_t>(RangeOf(*buffer, slot).begin), buffer->bytes(), false);
    }
  }
  const auto first = std::find(outside.begin(), outside.end(), true);
  if (first == outside.end()) return std::nullopt;
  return static_cast<uint64_t>(first - outside.begin());
}

uint64_t EndOf(const std::vector<bool>& written) {
  return static_cast<uint64_t>(written.rend() - std::find(written.rbegin(), written.rend(), true));
}

ArenaUse MeasureArena(const std::function<std::unique_ptr<Session>()>& open, const std::function<void(Session&)>& run) {
  std::vector<bool> written;
  ArenaUse use;
  for (const uint8_t pattern : {uint8_t{0xff}, uint8_t{0}}) {
    const std::unique_ptr<Session> session = open();
    EXPECT_NE(session, nullptr);
    if (session == nullptr) return {};
    const ArenaProbe probe(*session, pattern);
    run(*session);
    const std::vector<bool> now = probe.Written();
    written.resize(now.size());
    for (size_t i = 0; i < now.size(); ++i) written[i] = written[i] || now[i];
    use.outside = probe.FirstOutsideOfBuffers(written);
  }
  use.end = EndOf(written);
  return use;
}

uint64_t EndOfBuffers(const Session& session) {
  uint64_t end = 0;
  for (const fbs::Buffer* buffer : *session.plan().buffers()) {
    if (buffer->role() != session.role() || buffer->kind() == fbs::BufferKind::Scratch || buffer->bytes() == 0)
      continue;
    end = std::max(end, ExtentOf(*buffer).end);
  }
  return end;
}

}  // namespace bowline::testing
