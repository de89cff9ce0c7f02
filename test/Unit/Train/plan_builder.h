#ifndef BOWLINE_TEST_UNIT_TRAIN_PLAN_BUILDER_H_
#define BOWLINE_TEST_UNIT_TRAIN_PLAN_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/registry/registry.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// Flags of parameters, their mirrors and counters of steps.
inline const fbs::StateFlag kParameterFlags = fbs::StateFlag::Trained | fbs::StateFlag::Saved | fbs::StateFlag::Weight;
inline const fbs::StateFlag kMirrorFlags = fbs::StateFlag::Trained | fbs::StateFlag::Weight | fbs::StateFlag::Mirror;
inline const fbs::StateFlag kStepFlags = fbs::StateFlag::Saved | fbs::StateFlag::Step;

// Puts a plan together buffer by buffer and launch by launch; every buffer has its own bytes.
class PlanBuilder {
 public:
  PlanBuilder(const std::string& name, uint64_t seed, uint32_t threads);

  uint32_t Buffer(const std::string& name, fbs::BufferKind kind, fbs::DType dtype, const std::vector<int64_t>& shape,
                  int64_t slots = 1);
  uint32_t State(const std::string& name, fbs::StateFlag flags, fbs::DType dtype, const std::vector<int64_t>& shape);
  template <typename T>
  uint32_t Constant(const std::string& name, fbs::DType dtype, const std::vector<T>& values,
                    const std::vector<int64_t>& shape) {
    return ConstantBytes(name, dtype, {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)},
                         shape);
  }

  void BeginProgram(const std::string& name);
  // Commands go into the latest segment; Call runs it.
  void BeginSegment(const std::string& name);
  void Call(uint32_t slot = 0);

  // One operand of a launch: a buffer, from a byte of it on, seen as `shape`.
  struct Operand {
    uint32_t buffer;
    kernels::Access access;
    std::vector<int64_t> shape;
    uint64_t offset = 0;
  };
  void Launch(const std::string& kernel, std::vector<kernels::Attribute> attributes,
              const std::vector<Operand>& operands);
  void Copy(uint32_t from, uint64_t from_offset, uint32_t to, uint64_t to_offset, uint64_t bytes);

  struct Port {
    std::string name;
    uint32_t buffer;
    int64_t limit = 0;
  };
  // Calls the latest program.
  // Named after its kind, which is not how anybody finds it.
  void Entry(fbs::EntryKind kind, const std::vector<Port>& inputs, const std::vector<Port>& outputs);

  fbs::PlanT Take() { return std::move(plan_); }
  fbs::PlanT& plan() { return plan_; }

 private:
  uint32_t ConstantBytes(const std::string& name, fbs::DType dtype, absl::Span<const uint8_t> bytes,
                         const std::vector<int64_t>& shape);
  fbs::CommandT& AddCommand();

  fbs::PlanT plan_;
};

}  // namespace bowline

#endif  // BOWLINE_TEST_UNIT_TRAIN_PLAN_BUILDER_H_
