#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/comm/gloo/gloo_group.h"
#include "runtime/comm/loopback/loopback_group.h"
#include "runtime/executor/session.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"
#include "test/Unit/Check/rank_runs.h"

namespace bowline::testing {
namespace {

// Sleeps before and after each operation, now and then.
class DelayedExchange : public hal::Exchange {
 public:
  DelayedExchange(std::unique_ptr<hal::Exchange> inner, uint32_t seed) : inner_(std::move(inner)), random_(seed) {}

  const std::string& name() const override { return inner_->name(); }
  const std::vector<int>& ranks() const override { return inner_->ranks(); }
  int self() const override { return inner_->self(); }
  absl::Status Run(hal::Operation operation, absl::Span<const hal::HostPiece> pieces) override {
    if (operation.kind == hal::OperationKind::kBarrier) return inner_->Run(operation, pieces);
    Sleep();
    BOWLINE_RETURN_IF_ERROR(inner_->Run(operation, pieces));
    Sleep();
    return absl::OkStatus();
  }
  absl::Status Break(absl::Status why) override { return inner_->Break(std::move(why)); }
  absl::Status status() const override { return inner_->status(); }
  absl::Status Report(const hal::Operation& operation, uint64_t elements, uint64_t collectives) override {
    return inner_->Report(operation, elements, collectives);
  }
  absl::Status Complain(const std::string& failure) override { return inner_->Complain(failure); }
  bool emulates_link() const override { return inner_->emulates_link(); }

 private:
  void Sleep() {
    if (random_() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 200));
  }

  std::unique_ptr<hal::Exchange> inner_;
  std::mt19937 random_;
};

class DelayedGroup : public RankGroup {
 public:
  DelayedGroup(std::unique_ptr<RankGroup> inner, uint32_t seed) : inner_(std::move(inner)), random_(seed) {}

  int rank() const override { return inner_->rank(); }
  int ranks() const override { return inner_->ranks(); }
  absl::StatusOr<std::unique_ptr<hal::Exchange>> CreateExchange(absl::string_view name, absl::Span<const int> members,
                                                                const LinkOptions& link) override {
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Exchange> inner, inner_->CreateExchange(name, members, link));
    return std::make_unique<DelayedExchange>(std::move(inner), static_cast<uint32_t>(random_()));
  }
  void Abort(absl::Status why) override { inner_->Abort(std::move(why)); }
  absl::Status status() const override { return inner_->status(); }

 private:
  std::unique_ptr<RankGroup> inner_;
  std::mt19937 random_;
};

absl::Status RunRank(const std::vector<uint8_t>& bytes, uint8_t poison, const std::string& driver, RankGroup& group,
                     std::vector<uint8_t>& outputs) {
  BOWLINE_ASSIGN_OR_RETURN(LoadedPlan loaded, LoadedPlan::FromBytes(bytes));
  SessionOptions options;
  options.driver = driver;
  options.group = &group;
  options.prove = false;  // some hang, and are to be seen hanging
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(std::move(loaded), options));
  const std::vector<uint8_t> arena = InitialArena(session->plan(), session->rank(), poison);
  BOWLINE_RETURN_IF_ERROR(session->arena().Write(0, arena));
  BOWLINE_ASSIGN_OR_RETURN(const int index, session->FindEntry("step"));
  const fbs::Entry& entry = *session->plan().entries()->Get(static_cast<uint32_t>(index));
  // The same bytes again: a session runs on inputs that were written to it.
  for (uint32_t i = 0; i < SizeOf(entry.inputs()); ++i) {
    const fbs::Buffer& buffer = *session->plan().buffers()->Get(entry.inputs()->Get(i)->buffer());
    for (uint32_t slot = 0; slot < buffer.slots(); ++slot) {
      const ByteRange range = RangeOf(buffer, slot);
      BOWLINE_RETURN_IF_ERROR(session->Write(session->BufferAt(entry.inputs()->Get(i)->buffer(), slot),
                                             {arena.data() + range.begin, static_cast<size_t>(range.bytes())}));
    }
  }
  BOWLINE_RETURN_IF_ERROR(session->Run(index));
  for (uint32_t i = 0; i < SizeOf(entry.outputs()); ++i) {
    const uint32_t buffer = entry.outputs()->Get(i)->buffer();
    for (uint32_t slot = 0; slot < session->plan().buffers()->Get(buffer)->slots(); ++slot) {
      const TensorRef tensor = session->BufferAt(buffer, slot);
      outputs.resize(outputs.size() + tensor.bytes);
      const absl::Span<uint8_t> end(outputs.data() + outputs.size() - tensor.bytes, tensor.bytes);
      BOWLINE_RETURN_IF_ERROR(session->Read(tensor, end));
    }
  }
  return absl::OkStatus();
}

// How each rank, on a thread of its own, gets its view of a group.
using MakeView = std::function<absl::StatusOr<std::unique_ptr<RankGroup>>(int rank)>;

absl::StatusOr<MakeView> ViewsOf(Transport transport, int ranks, std::chrono::nanoseconds timeout) {
  if (transport == Transport::kMemory) {
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<LoopbackGroup> created, LoopbackGroup::Create(ranks, {timeout}));
    const std::shared_ptr<LoopbackGroup> group = std::move(created);
    return [group](int rank) -> absl::StatusOr<std::unique_ptr<RankGroup>> { return group->AsRank(rank); };
  }
  static int groups = 0;
  GlooOptions options;
  options.ranks = ranks;
  options.rendezvous.file = absl::StrCat(::testing::TempDir(), "/rank-threads-", ::getpid(), "-", groups++);
  options.timeout = timeout;
  options.rendezvous_timeout = timeout;
  options.address = "127.0.0.1";
  return [options](int rank) -> absl::StatusOr<std::unique_ptr<RankGroup>> {
    GlooOptions own = options;
    own.rank = rank;
    return GlooGroup::Create(own);
  };
}

}  // namespace

ThreadOutcome RunOnThreads(const std::vector<uint8_t>& bytes, uint8_t poison, uint32_t seed,
                           std::chrono::nanoseconds timeout, const std::string& driver, Transport transport) {
  const int ranks = static_cast<int>(RankCount(*fbs::GetPlan(bytes.data())));
  ThreadOutcome outcome;
  const absl::StatusOr<MakeView> make_view = ViewsOf(transport, ranks, timeout);
  if (!make_view.ok()) {
    outcome.status = make_view.status();
    return outcome;
  }
  outcome.outputs.resize(static_cast<size_t>(ranks));
  std::vector<absl::Status> statuses(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      absl::Status& status = statuses[static_cast<size_t>(rank)];
      absl::StatusOr<std::unique_ptr<RankGroup>> made = (*make_view)(rank);
      if (!made.ok()) {
        status = made.status();
        return;
      }
      DelayedGroup view(*std::move(made), seed + static_cast<uint32_t>(rank));
      status = RunRank(bytes, poison, driver, view, outcome.outputs[static_cast<size_t>(rank)]);
      view.Abort(status);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) {
    if (outcome.status.ok()) outcome.status = status;
  }
  return outcome;
}

}  // namespace bowline::testing
