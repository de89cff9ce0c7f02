#include "runtime/train/model_state.h"

#include "runtime/plan/plan_view.h"

namespace bowline {

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

std::vector<CheckpointTensor> StateTensors(const Session& session) {
  std::vector<CheckpointTensor> tensors;
  const auto& states = *session.plan().states();
  for (const uint32_t i : session.states()) {
    const TensorView view = session.StateAt(i);
    CheckpointTensor tensor;
    tensor.key = std::string(TextOf(states.Get(i)->key()));
    tensor.role =
        states.Get(i)->role() == fbs::StateRole::Parameter ? CheckpointRole::kParameter : CheckpointRole::kOptimizer;
    tensor.type = StorageTypeOf(view.dtype);
    tensor.shape.assign(view.shape.begin(), view.shape.end());
    tensor.data = view.data;
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
