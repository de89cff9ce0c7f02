#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "runtime/comm/loopback/loopback_group.h"
#include "runtime/executor/session.h"
#include "runtime/plan/mesh_view.h"
#include "runtime/plan/plan_view.h"
#include "test/Unit/Check/rank_runs.h"

namespace bowline::testing {
namespace {

// Sleeps in the stream before and after each operation, now and then.
class DelayedCommunicator : public hal::Communicator {
 public:
  DelayedCommunicator(std::unique_ptr<hal::Communicator> inner, uint32_t seed)
      : inner_(std::move(inner)), random_(seed) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  absl::Status AllReduce(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype,
                         hal::ReduceOp op) override {
    return Delayed(stream, [&] { return inner_->AllReduce(stream, pieces, dtype, op); });
  }
  absl::Status AllGather(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype) override {
    return Delayed(stream, [&] { return inner_->AllGather(stream, pieces, dtype); });
  }
  absl::Status ReduceScatter(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype,
                             hal::ReduceOp op) override {
    return Delayed(stream, [&] { return inner_->ReduceScatter(stream, pieces, dtype, op); });
  }
  absl::Status AllToAll(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype) override {
    return Delayed(stream, [&] { return inner_->AllToAll(stream, pieces, dtype); });
  }
  absl::Status Send(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype, int peer) override {
    return Delayed(stream, [&] { return inner_->Send(stream, pieces, dtype, peer); });
  }
  absl::Status Receive(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype,
                       int peer) override {
    return Delayed(stream, [&] { return inner_->Receive(stream, pieces, dtype, peer); });
  }
  absl::Status Barrier(hal::Stream& stream) override { return inner_->Barrier(stream); }

 private:
  template <typename F>
  absl::Status Delayed(hal::Stream& stream, F issue) {
    BOWLINE_RETURN_IF_ERROR(Sleep(stream));
    BOWLINE_RETURN_IF_ERROR(issue());
    return Sleep(stream);
  }

  absl::Status Sleep(hal::Stream& stream) {
    if (random_() % 4 != 0) return absl::OkStatus();
    hal::HostCall call;
    call.run = [](const hal::HostCall& c) {
      std::this_thread::sleep_for(std::chrono::microseconds(c.parameters[0]));
      return absl::OkStatus();
    };
    call.parameters[0] = random_() % 200;
    return stream.Call(call);
  }

  std::unique_ptr<hal::Communicator> inner_;
  std::mt19937 random_;
};

class DelayedGroup : public CommunicatorGroup {
 public:
  DelayedGroup(std::unique_ptr<CommunicatorGroup> inner, uint32_t seed) : inner_(std::move(inner)), random_(seed) {}

  int rank() const override { return inner_->rank(); }
  int ranks() const override { return inner_->ranks(); }
  absl::StatusOr<std::unique_ptr<hal::Communicator>> CreateCommunicator(absl::string_view name,
                                                                        absl::Span<const int> members,
                                                                        const LinkOptions& link) override {
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Communicator> inner, inner_->CreateCommunicator(name, members, link));
    return std::unique_ptr<hal::Communicator>(
        std::make_unique<DelayedCommunicator>(std::move(inner), static_cast<uint32_t>(random_())));
  }
  void Abort(absl::Status why) override { inner_->Abort(std::move(why)); }
  absl::Status status() const override { return inner_->status(); }

 private:
  std::unique_ptr<CommunicatorGroup> inner_;
  std::mt19937 random_;
};

absl::Status RunRank(const std::vector<uint8_t>& bytes, uint8_t poison, CommunicatorGroup& group,
                     std::vector<uint8_t>& outputs) {
  BOWLINE_ASSIGN_OR_RETURN(LoadedPlan loaded, LoadedPlan::FromBytes(bytes));
  SessionOptions options;
  options.group = &group;
  options.require_certificates = false;  // some hang, and are to be seen hanging
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(std::move(loaded), options));
  const std::vector<uint8_t> arena = InitialArena(session->plan(), session->rank(), poison);
  std::memcpy(session->arena().address(), arena.data(), arena.size());
  BOWLINE_RETURN_IF_ERROR(session->Run("step"));
  BOWLINE_ASSIGN_OR_RETURN(const int index, session->FindEntry("step"));
  const fbs::Entry& entry = *session->plan().entries()->Get(static_cast<uint32_t>(index));
  for (uint32_t i = 0; i < SizeOf(entry.outputs()); ++i) {
    const uint32_t buffer = entry.outputs()->Get(i)->buffer();
    for (uint32_t slot = 0; slot < session->plan().buffers()->Get(buffer)->slots(); ++slot) {
      const TensorView view = session->BufferAt(buffer, slot);
      const auto* data = static_cast<const uint8_t*>(view.data);
      outputs.insert(outputs.end(), data, data + view.bytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace

ThreadOutcome RunOnThreads(const std::vector<uint8_t>& bytes, uint8_t poison, uint32_t seed,
                           std::chrono::nanoseconds timeout) {
  const int ranks = static_cast<int>(RankCount(*fbs::GetPlan(bytes.data())));
  auto group = LoopbackGroup::Create(ranks, {timeout});
  ThreadOutcome outcome;
  if (!group.ok()) {
    outcome.status = group.status();
    return outcome;
  }
  outcome.outputs.resize(static_cast<size_t>(ranks));
  std::vector<absl::Status> statuses(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      DelayedGroup view((*group)->AsRank(rank), seed + static_cast<uint32_t>(rank));
      absl::Status& status = statuses[static_cast<size_t>(rank)];
      status = RunRank(bytes, poison, view, outcome.outputs[static_cast<size_t>(rank)]);
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
