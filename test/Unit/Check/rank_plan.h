#ifndef BOWLINE_TEST_UNIT_CHECK_RANK_PLAN_H_
#define BOWLINE_TEST_UNIT_CHECK_RANK_PLAN_H_

// Plans of several ranks, roles and streams, made by hand for tests. All buffers are of f32; the only kernel adds two
// of them, as fixture_add of test/Unit/Plan does.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plan/plan_generated.h"

namespace bowline::testing {

// Sizes by axis. `role_axis` as in Plan; below 0: one role.
class RankPlan {
 public:
  RankPlan(const std::vector<std::pair<std::string, uint32_t>>& mesh, int role_axis);

  uint32_t Roles() const { return static_cast<uint32_t>(programs_.size()); }
  uint32_t Communicator(const std::string& name, std::vector<uint8_t> axes);
  void Streams(const std::vector<std::string>& names);  // of all roles
  void Events(uint32_t count);                          // of all roles

  // An index for operands. Ports have the name of their buffer.
  uint32_t Buffer(uint32_t role, const std::string& name, fbs::BufferKind kind, int64_t elements, uint32_t slots = 1);
  // In the bytes of another.
  uint32_t BufferAt(uint32_t role, const std::string& name, fbs::BufferKind kind, int64_t elements, uint64_t offset);

  // A view of a temporary, `offset` bytes into it; along axes `stride` bytes further on for each rank.
  uint32_t View(uint32_t role, const std::string& name, uint32_t of, int64_t elements, uint64_t offset,
                std::vector<uint8_t> axes = {}, uint64_t stride = 0);

  // Commands go to the segment that was begun last.
  uint32_t Segment(uint32_t role, const std::string& name);
  void Call(uint32_t role, uint32_t segment, uint32_t slot = 0);

  void Add(uint32_t role, uint16_t stream, uint32_t a, uint32_t b, uint32_t out);
  void Copy(uint32_t role, uint16_t stream, uint32_t from, uint32_t to);
  void Collective(uint32_t role, uint16_t stream, fbs::CollectiveKind kind, uint32_t communicator, uint32_t from,
                  uint32_t to, uint64_t count);
  void Send(uint32_t role, uint16_t stream, uint32_t communicator, uint32_t peer, uint32_t buffer);
  void Receive(uint32_t role, uint16_t stream, uint32_t communicator, uint32_t peer, uint32_t buffer);
  void Signal(uint32_t role, uint16_t stream, uint32_t event, uint32_t slots = 1);
  void Wait(uint32_t role, uint16_t stream, uint32_t event, uint32_t slots = 1);

  // One segment with everything so far, called once, where the test needs no more than that.
  fbs::PlanT Finish();

 private:
  template <typename T>
  void Command(uint32_t role, uint16_t stream, T body);
  uint32_t KernelFor(int64_t elements);

  fbs::PlanT plan_;
  std::vector<fbs::ProgramT*> programs_;  // by role
  std::vector<fbs::EntryT*> entries_;
  std::vector<uint64_t> end_;  // of each role's arena
};

// Stages pp with 1F1B, copies dp of each; stream and communicator for each direction, and for sums over dp. Activations
// have fewer slots than there are microbatches. `first_stream` is that of the computations: with 1 nothing runs on the
// stream that a CPU runs as it is issued, so that all streams run beside each other as on a GPU.
fbs::PlanT MakePipeline(uint32_t pp, uint32_t dp, uint32_t microbatches, uint16_t first_stream = 0);

// One role on dp x tp ranks: sums over tp on the way, scattered sums over dp and gathers on another stream.
fbs::PlanT MakeShardedLoop(uint32_t dp, uint32_t tp, uint32_t microbatches, uint16_t first_stream = 0);

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_CHECK_RANK_PLAN_H_
