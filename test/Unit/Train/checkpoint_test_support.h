#ifndef BOWLINE_TEST_UNIT_TRAIN_CHECKPOINT_TEST_SUPPORT_H_
#define BOWLINE_TEST_UNIT_TRAIN_CHECKPOINT_TEST_SUPPORT_H_

#include <cstdint>
#include <vector>

#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/save_checkpoint.h"

namespace bowline {

// A model with an optimizer, all of whose values follow from one number, so that a mixture of two is noticed.
struct TestModel {
  explicit TestModel(size_t size = 1000) : weight(size), moment(size) {}

  void Fill(int64_t seed) {
    for (size_t i = 0; i < weight.size(); ++i) {
      weight[i] = static_cast<float>(seed) + static_cast<float>(i) / 16;
      moment[i] = -weight[i];
    }
    step = seed;
  }

  std::vector<CheckpointTensor> Tensors() {
    const auto size = static_cast<int64_t>(weight.size());
    return {
        {"model.weight", CheckpointRole::kParameter, ElementType::kF32, {size / 4, 4}, HostTensorMemory(weight.data())},
        {"model.weight.exp_avg",
         CheckpointRole::kOptimizer,
         ElementType::kF32,
         {size},
         HostTensorMemory(moment.data())},
        {"step", CheckpointRole::kOptimizer, ElementType::kI64, {}, HostTensorMemory(&step)}};
  }

  bool operator==(const TestModel&) const = default;

  std::vector<float> weight, moment;
  int64_t step = 0;
};

}  // namespace bowline

#endif  // BOWLINE_TEST_UNIT_TRAIN_CHECKPOINT_TEST_SUPPORT_H_
