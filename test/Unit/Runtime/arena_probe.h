#ifndef BOWLINE_TEST_UNIT_RUNTIME_ARENA_PROBE_H_
#define BOWLINE_TEST_UNIT_RUNTIME_ARENA_PROBE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/executor/session.h"
#include "runtime/plan/plan_generated.h"

namespace bowline::testing {

// A guarded plan has this many bytes behind the last one that it states, in the arena of each role, which belong to no
// buffer. So a probe sees writes behind the plan's own end, which would otherwise hit memory of others.
inline constexpr uint64_t kGuardBytes = 4096;
void AddGuards(fbs::PlanT& plan);

// The bytes of the arena that a session's runs write: measured in the memory, not read from the plan.
class ArenaProbe {
 public:
  // Fills all of the arena but constants, which are there already, with `pattern`. Before the first entry runs. 0xff is
  // NaN in every type of floating-point numbers: a kernel that reads unwritten bytes makes them visible.
  ArenaProbe(Session& session, uint8_t pattern);

  // By byte of the arena: whether it holds something else than the pattern. A write of the pattern itself is not seen.
  std::vector<bool> Written() const;

  // The first of these bytes that belongs to no buffer.
  std::optional<uint64_t> FirstOutsideOfBuffers(const std::vector<bool>& written) const;

 private:
  std::vector<uint8_t> BytesOfArena() const;
  bool IsOurs(const fbs::Buffer& buffer) const { return buffer.role() == session_.role(); }

  Session& session_;
  uint8_t pattern_;
  std::vector<bool> constant_;  // by byte
};

// Behind the last byte that was written.
uint64_t EndOf(const std::vector<bool>& written);

struct ArenaUse {
  uint64_t end = 0;  // as EndOf
  std::optional<uint64_t> outside;
};

// Of two sessions of one plan, which differ in the pattern: no value of a byte is both. `run` runs measured entries.
ArenaUse MeasureArena(const std::function<std::unique_ptr<Session>()>& open, const std::function<void(Session&)>& run);

// The least end of an arena's use: the end of the session's last buffer other than scratch, of which kernels
// use only as many bytes as they need.
uint64_t EndOfBuffers(const Session& session);

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_RUNTIME_ARENA_PROBE_H_
