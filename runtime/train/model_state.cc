#include "runtime/train/model_state.h"

#include <set>
#include <string>
#include <utility>

#include "runtime/plan/mesh_view.h"
#include "runtime/plan/plan_view.h"

namespace bowline {
namespace {

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
  for (uint32_t d = 0; d < SizeOf(layout->cuts()); ++d) {
    sharding.cuts.push_back(AxesOf(layout->cuts()->Get(d)->axes()));
  }
  sharding.flat = AxesOf(layout->flat_axes());
  return sharding;
}

}  // namespace

StorageType StorageTypeOf(fbs::DType dtype) {
  switch (dtype) {
    case fbs::DType::F32:
      return StorageType::kF32;
    case fbs::DType::F64:
      return StorageType::kF64;
    case fbs::DType::BF16:
      return StorageType::kBF16;
    case fbs::DType::F16:
      return StorageType::kF16;
    case fbs::DType::I64:
      return StorageType::kI64;
    case fbs::DType::I32:
      return StorageType::kI32;
    case fbs::DType::U16:
      return StorageType::kU16;
    case fbs::DType::I8:
      return StorageType::kI8;
    case fbs::DType::U8:
      return StorageType::kU8;
    case fbs::DType::Bool:
      return StorageType::kBool;
  }
  return StorageType::kU8;
}

RankInMesh RankOf(const Session& session) {
  const fbs::Plan& plan = session.plan();
  RankInMesh self = {{}, session.rank()};
  for (uint32_t i = 0; i < SizeOf(plan.mesh()); ++i) {
    self.mesh.axes.push_back({std::string(TextOf(plan.mesh()->Get(i)->name())), plan.mesh()->Get(i)->size()});
  }
  if (RoleCount(plan) > 1) self.mesh.role_axis = plan.role_axis();
  return self;
}

std::vector<CheckpointTensor> StateTensors(const Session& session) {
  std::vector<CheckpointTensor> tensors;
  std::set<std::pair<CheckpointRole, std::string>> saved;
  const auto& states = *session.plan().states();
  for (uint32_t i = 0; i < states.size(); ++i) {
    const fbs::State& state = *states.Get(i);
    const fbs::Buffer& buffer = *session.plan().buffers()->Get(state.buffer());
    const bool is_mirror = state.role() == fbs::StateRole::Mirror;
    CheckpointTensor tensor;
    tensor.key = std::string(TextOf(state.key()));
    tensor.role = is_mirror || state.role() == fbs::StateRole::Parameter ? CheckpointRole::kParameter
                                                                         : CheckpointRole::kOptimizer;
    tensor.type = StorageTypeOf(buffer.dtype());
    tensor.shape = SizesOf(buffer.layout() == nullptr ? buffer.shape() : buffer.layout()->global_shape());
    tensor.sharding = ShardingOf(buffer);
    // Each role counts its steps.
    tensor.is_saved = !is_mirror && saved.emplace(tensor.role, tensor.key).second;
    if (buffer.role() == session.role()) tensor.data = session.StateAt(i).data;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

const int32_t* FindStepState(const Session& session) {
  const auto& states = *session.plan().states();
  for (const uint32_t i : session.states()) {
    const TensorView view = session.StateAt(i);
    if (states.Get(i)->role() == fbs::StateRole::Step && view.dtype == fbs::DType::I32 &&
        view.bytes == sizeof(int32_t)) {
      return static_cast<const int32_t*>(view.data);
    }
  }
  return nullptr;
}

absl::string_view AttachedConfig(const fbs::Plan& plan) {
  for (uint32_t i = 0; i < SizeOf(plan.attachments()); ++i) {
    if (TextOf(plan.attachments()->Get(i)->name()) == "config.json") return TextOf(plan.attachments()->Get(i)->text());
  }
  return {};
}

}  // namespace bowline
