#ifndef BOWLINE_RUNTIME_PLAN_PLAN_VIEW_H_
#define BOWLINE_RUNTIME_PLAN_PLAN_VIEW_H_

// Small helpers over a plan in its file form. Those that index are safe only after VerifyPlan, unless they say so.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "runtime/plan/plan_generated.h"
#include "types/element_type.h"

namespace bowline {

// Code.format of an ELF shared object.
inline constexpr char kElfImageFormat[] = "elf";
// Code.format where no code was generated: without data. The plan can be checked and simulated, but not run.
inline constexpr char kNoImageFormat[] = "none";

// What the address of a buffer or argument may be asked to be a multiple of: arenas begin at multiples of it.
inline constexpr uint32_t kMaxAlignment = 4096;

// Vectors of a FlatBuffer may be absent, which means empty.
template <typename T>
uint32_t SizeOf(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// FlatBuffers needs a list of its own; a test compares the names.
static_assert(fbs::DType::MAX == static_cast<fbs::DType>(kLastInPlans), "element types of plans have the same values");

// No type (IsElementType) for a value outside the enum.
constexpr ElementType ElementTypeOf(fbs::DType dtype) {
  return dtype <= fbs::DType::MAX ? static_cast<ElementType>(dtype) : static_cast<ElementType>(UINT8_MAX);
}

// Bytes of one element; 0 for a value outside the enum.
constexpr size_t ElementSize(fbs::DType dtype) { return SizeOf(ElementTypeOf(dtype)); }

// Product of the shape times the element size; absent for a negative extent, an unknown dtype, or more than 2^62 bytes.
// Safe on unverified plans.
absl::optional<uint64_t> DenseBytes(fbs::DType dtype, const flatbuffers::Vector<int64_t>* shape);

// "f32[2, 3]". Safe on unverified plans.
std::string DescribeType(fbs::DType dtype, const flatbuffers::Vector<int64_t>* shape);

// The text; empty where it is absent.
inline absl::string_view TextOf(const flatbuffers::String* text) {
  return text == nullptr ? absl::string_view() : absl::string_view(text->c_str(), text->size());
}

// The text between quotes, with control characters escaped: names come from files. Safe on unverified plans.
std::string Quoted(const flatbuffers::String* text);

// The bytes of a role, whatever their space, have numbers that differ: those of the first space are their offsets, and
// each space begins 2^62 numbers after the one before it.
inline constexpr uint64_t kSpaceStride = uint64_t{1} << 62;
inline fbs::MemorySpace SpaceAt(uint64_t number) { return static_cast<fbs::MemorySpace>(number / kSpaceStride); }

// [begin, end) of the numbers of a role's bytes.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t bytes() const { return end - begin; }
  bool Overlaps(const ByteRange& other) const { return begin < other.end && other.begin < end; }
  friend bool operator==(const ByteRange& a, const ByteRange& b) { return a.begin == b.begin && a.end == b.end; }
};

// "[128, 256)"; "[0, 64) in PinnedHost".
std::string DescribeRange(ByteRange range);

// Which slot of the buffer a call at `slot` addresses: see SegmentCall.
uint32_t SlotOf(const fbs::Buffer& buffer, uint32_t slot);
// Where SlotOf(buffer, slot) begins in the arena of the buffer's space.
uint64_t OffsetOf(const fbs::Buffer& buffer, uint32_t slot);
// Bytes of SlotOf(buffer, slot).
ByteRange RangeOf(const fbs::Buffer& buffer, uint32_t slot);
// From the first byte of the first slot to the last of the last.
ByteRange ExtentOf(const fbs::Buffer& buffer);

// The engine that a copy between two spaces needs; absent where there is none. `destination` is not External.
absl::optional<fbs::CopyEngine> EngineFor(fbs::MemorySpace source, fbs::MemorySpace destination);

// What the address of an argument is a multiple of.
inline uint64_t AlignmentOf(const fbs::Argument& argument) {
  return argument.alignment() == 0 ? ElementSize(argument.dtype()) : argument.alignment();
}

// Lives across runs of entries: nothing else may ever use its bytes.
bool IsPersistent(fbs::BufferKind kind);
// Kept by the runtime between entries. What of it checkpoints have, Plan.states says.
bool IsState(fbs::BufferKind kind);

// The first entry of this kind, of whatever role and bucket; null where there is none. All roles name it alike.
const fbs::Entry* FindEntry(const fbs::Plan& plan, fbs::EntryKind kind);
// Whether there may be several entries of the kind, one for each bucket.
bool HasBuckets(fbs::EntryKind kind);

// What a persistent tensor is for.
inline bool Has(fbs::StateFlag flags, fbs::StateFlag flag) { return (flags & flag) != fbs::StateFlag::NONE; }
inline bool Has(const fbs::State& state, fbs::StateFlag flag) { return Has(state.flags(), flag); }
// "Trained|Saved|Weight"; "none". Safe on unverified plans.
std::string DescribeFlags(fbs::StateFlag flags);

// Reads or writes of an argument. A register that is read and written counts as both.
inline bool Reads(fbs::Access access) { return (static_cast<uint8_t>(access) & 1) != 0; }
inline bool Writes(fbs::Access access) { return (static_cast<uint8_t>(access) & 2) != 0; }

// False where code that the plan's kernels need was not generated.
bool HasCode(const fbs::Plan& plan);

// What a command does with one operand.
struct OperandUse {
  const fbs::Operand* operand = nullptr;
  uint64_t bytes = 0;
  fbs::Access access = fbs::Access::Read;
};

// The operands of a collective, send or receive in order, of a collective source before destination; appended to
// `uses`. None for any other command.
void AppendCommunicationOperands(const fbs::Plan& plan, const fbs::Command& command, std::vector<OperandUse>& uses);

// The event of a Signal or Wait in a call at `slot`.
template <typename SignalOrWait>
uint32_t EventOf(const SignalOrWait& command, uint32_t slot) {
  return command.event() + slot % command.slots();
}

// The communicator of a collective, send or receive; absent for any other command.
absl::optional<uint32_t> CommunicatorOf(const fbs::Command& command);

// Does the last operand of this launch carry the library workspace that a registered kernel asked for? It then is no
// argument of the kernel's signature.
bool HasScratchOperand(const fbs::Plan& plan, const fbs::Launch& launch);

// "launch of 'matmul'", "copy", "copy to the host", "all_reduce on 'tp'", "send to place 1 of 'pp'", "wait for event 3"
std::string DescribeCommand(const fbs::Plan& plan, const fbs::Command& command);

// "model.layers.0.mlp (by emit)", "layers.0.mlp.down_proj (by propagate-shardings: sum of partial products)"
std::string DescribeSource(const fbs::Plan& plan, uint32_t source);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_PLAN_VIEW_H_
