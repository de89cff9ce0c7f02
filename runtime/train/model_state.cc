#include "runtime/train/model_state.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"
#include "runtime/train/token_ports.h"

namespace bowline {
namespace {

bool IsInCheckpoints(const fbs::State& state) {
  return Has(state, fbs::StateFlag::Saved) || Has(state, fbs::StateFlag::Mirror);
}

std::vector<int64_t> SizesOf(const flatbuffers::Vector<int64_t>* sizes) {
  return sizes == nullptr ? std::vector<int64_t>() : std::vector<int64_t>(sizes->begin(), sizes->end());
}

std::vector<uint32_t> AxesOf(const flatbuffers::Vector<uint8_t>* axes) {
  return axes == nullptr ? std::vector<uint32_t>() : std::vector<uint32_t>(axes->begin(), axes->end());
}

Sharding ShardingOf(const fbs::Buffer& buffer) {
  Sharding sharding = {.role = buffer.role()};
  const fbs::Layout* layout = buffer.layout();
  if (layout == nullptr) return sharding;
  sharding.view = SizesOf(layout->view());
  for (uint32_t d = 0; d < SizeOf(layout->dim_shardings()); ++d) {
    sharding.dim_shardings.push_back(AxesOf(layout->dim_shardings()->Get(d)->axes()));
  }
  sharding.flat = AxesOf(layout->flat_axes());
  return sharding;
}

class StateMemory : public TensorMemory {
 public:
  StateMemory(Session& session, const TensorRef& state) : session_(session), state_(state) {}

  absl::Status Read(uint64_t offset, absl::Span<uint8_t> to) const override {
    return session_.Read(state_, to, offset);
  }
  absl::Status Write(uint64_t offset, absl::Span<const uint8_t> from) override {
    return session_.Write(state_, from, offset);
  }
  absl::StatusOr<bool> Borrow(absl::Span<const uint8_t> bytes, const std::shared_ptr<const void>& owner) override {
    return session_.Borrow(state_, bytes, owner);
  }

 private:
  Session& session_;
  const TensorRef state_;
};

}  // namespace

RankInMesh RankOf(const Session& session) {
  const fbs::Plan& plan = session.plan();
  RankInMesh self = {{}, session.rank()};
  for (uint32_t i = 0; i < SizeOf(plan.mesh()); ++i) {
    self.mesh.axes.push_back({std::string(TextOf(plan.mesh()->Get(i)->name())), plan.mesh()->Get(i)->size()});
  }
  if (RoleCount(plan) > 1) self.mesh.role_axis = plan.role_axis();
  return self;
}

std::vector<CheckpointTensor> StateTensors(Session& session) {
  std::vector<CheckpointTensor> tensors;
  std::set<std::pair<CheckpointRole, std::string>> saved;
  const auto& states = *session.plan().states();
  for (uint32_t i = 0; i < states.size(); ++i) {
    const fbs::State& state = *states.Get(i);
    if (!IsInCheckpoints(state)) continue;
    const fbs::Buffer& buffer = *session.plan().buffers()->Get(state.buffer());
    CheckpointTensor tensor;
    tensor.key = std::string(TextOf(state.key()));
    tensor.role = Has(state, fbs::StateFlag::Weight) ? CheckpointRole::kParameter : CheckpointRole::kOptimizer;
    tensor.type = ElementTypeOf(buffer.dtype());
    tensor.shape = SizesOf(buffer.layout() == nullptr ? buffer.shape() : buffer.layout()->global_shape());
    tensor.sharding = ShardingOf(buffer);
    if (state.format() != nullptr && state.format()->size() > 0) {
      tensor.format = ElementTypeFromName({state.format()->data(), state.format()->size()});
    }
    // Each role counts its steps.
    tensor.is_saved = Has(state, fbs::StateFlag::Saved) && saved.emplace(tensor.role, tensor.key).second;
    if (buffer.role() == session.role()) tensor.memory = std::make_shared<StateMemory>(session, session.StateAt(i));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

absl::Status InitializeUnsaved(Session& session) {
  // The check covers the states of all roles, so that all ranks run the entry or none does.
  const auto& states = *session.plan().states();
  if (std::all_of(states.begin(), states.end(), [](auto* state) { return IsInCheckpoints(*state); })) {
    return absl::OkStatus();
  }
  BOWLINE_ASSIGN_OR_RETURN(const FoundEntry init, RequireEntry(session, fbs::EntryKind::Init));
  return session.Run(init.index);
}

absl::StatusOr<std::optional<int32_t>> ReadStepState(const Session& session) {
  for (const uint32_t i : session.states()) {
    if (!Has(*session.plan().states()->Get(i), fbs::StateFlag::Step)) continue;
    int32_t steps = 0;
    BOWLINE_RETURN_IF_ERROR(session.ReadAll(session.StateAt(i), absl::MakeSpan(&steps, 1)));
    return steps;
  }
  return std::nullopt;
}

absl::string_view AttachmentOf(const fbs::Plan& plan, absl::string_view name) {
  for (uint32_t i = 0; i < SizeOf(plan.attachments()); ++i) {
    if (TextOf(plan.attachments()->Get(i)->name()) == name) return TextOf(plan.attachments()->Get(i)->text());
  }
  return {};
}

}  // namespace bowline
