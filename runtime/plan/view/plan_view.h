#ifndef BOWLINE_RUNTIME_PLAN_VIEW_PLAN_VIEW_H_
#define BOWLINE_RUNTIME_PLAN_VIEW_PLAN_VIEW_H_

// Small helpers over a plan in its file form. Those that follow an index are safe only on plans that passed VerifyPlan,
// unless they say otherwise.

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "runtime/plan/plan_generated.h"
#include "types/element_type.h"

namespace bowline {

// Code.format of an ELF shared object.
inline constexpr char kElfImageFormat[] = "elf";
// Code.format of code without data, because no code was generated. The plan can be checked and simulated, but not run.
inline constexpr char kNoImageFormat[] = "none";

// The largest alignment in bytes that a buffer or argument may ask for: arenas begin at multiples of it.
inline constexpr uint32_t kMaxAlignment = 4096;

// Vectors of a FlatBuffer may be absent, which means empty.
template <typename T>
uint32_t SizeOf(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// FlatBuffers needs a list of element types of its own; a test compares the names.
static_assert(fbs::DType::MAX == static_cast<fbs::DType>(kLastInPlans), "element types of plans have the same values");

// The element type of a dtype. For a dtype outside the enum, IsElementType is false for the result.
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

// The text; empty if it is absent.
inline absl::string_view TextOf(const flatbuffers::String* text) {
  return text == nullptr ? absl::string_view() : absl::string_view(text->c_str(), text->size());
}

// The text between quotes, with control characters escaped: names come from files. Safe on unverified plans.
std::string Quoted(const flatbuffers::String* text);

// Every byte of a role has its own number, whatever its space. In the first space the number is the byte's offset, and
// each space begins 2^62 numbers after the space before it.
inline constexpr uint64_t kSpaceStride = uint64_t{1} << 62;
inline fbs::MemorySpace SpaceAt(uint64_t number) { return static_cast<fbs::MemorySpace>(number / kSpaceStride); }

// A range [begin, end) of a role's byte numbers.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t bytes() const { return end - begin; }
  bool Overlaps(const ByteRange& other) const { return begin < other.end && other.begin < end; }
  friend bool operator==(const ByteRange& a, const ByteRange& b) { return a.begin == b.begin && a.end == b.end; }
};

// "[128, 256)"; "[0, 64) in PinnedHost".
std::string DescribeRange(ByteRange range);

// The slot of the buffer that a call at `slot` addresses: see SegmentCall in plan.fbs.
uint32_t SlotOf(const fbs::Buffer& buffer, uint32_t slot);
// The offset in bytes of SlotOf(buffer, slot) in the arena of the buffer's space.
uint64_t OffsetOf(const fbs::Buffer& buffer, uint32_t slot);
// The byte numbers of SlotOf(buffer, slot).
ByteRange RangeOf(const fbs::Buffer& buffer, uint32_t slot);
// The byte numbers from the first byte of the first slot to the last byte of the last slot.
ByteRange ExtentOf(const fbs::Buffer& buffer);

// The engine that a copy between two spaces needs; absent if no engine copies between them. `destination` is not
// External.
absl::optional<fbs::CopyEngine> EngineFor(fbs::MemorySpace source, fbs::MemorySpace destination);

// The alignment in bytes that an argument's address needs; by default the size of an element.
inline uint64_t AlignmentOf(const fbs::Argument& argument) {
  return argument.alignment() == 0 ? ElementSize(argument.dtype()) : argument.alignment();
}

// Calls `visit` with the division of a kernel's launches: a ByRange or a Grid, or std::monostate for kernels without
// one, which divide their launches themselves. Code that depends on the kind calls this function, so that the C++
// compiler reports each such place when a kind is added. Safe on unverified plans, where an unknown kind counts as
// absent.
template <typename Visitor>
auto VisitGeometry(const fbs::Kernel& kernel, Visitor visit) {
  if (kernel.geometry() != nullptr) {
    switch (kernel.geometry_type()) {
      case fbs::Geometry::ByRange:
        return visit(*kernel.geometry_as_ByRange());
      case fbs::Geometry::Grid:
        return visit(*kernel.geometry_as_Grid());
      case fbs::Geometry::NONE:
        break;
    }
  }
  return visit(std::monostate());
}
// The same for a kernel in object form; `visit` gets a ByRangeT, a GridT or std::monostate.
template <typename Visitor>
auto VisitGeometry(const fbs::KernelT& kernel, Visitor visit) {
  if (kernel.geometry.value != nullptr) {
    switch (kernel.geometry.type) {
      case fbs::Geometry::ByRange:
        return visit(*kernel.geometry.AsByRange());
      case fbs::Geometry::Grid:
        return visit(*kernel.geometry.AsGrid());
      case fbs::Geometry::NONE:
        break;
    }
  }
  return visit(std::monostate());
}
// A visitor for VisitGeometry, made of one lambda per kind of division.
template <typename... Cases>
struct GeometryVisitor : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
GeometryVisitor(Cases...) -> GeometryVisitor<Cases...>;

// Returns whether buffers of the kind keep their bytes across runs, so that no other buffer may ever use these bytes.
bool IsPersistent(fbs::BufferKind kind);
// Returns whether the runtime keeps the values of buffers of the kind between entries. Plan.states lists those of them
// that checkpoints contain.
bool IsState(fbs::BufferKind kind);

// The first entry of this kind, of any role and bucket; null if there is none. Its name is the same in all roles.
const fbs::Entry* FindEntry(const fbs::Plan& plan, fbs::EntryKind kind);
// Returns whether there may be several entries of the kind, one for each bucket.
bool HasBuckets(fbs::EntryKind kind);

// Returns whether a state has a flag.
inline bool Has(fbs::StateFlag flags, fbs::StateFlag flag) { return (flags & flag) != fbs::StateFlag::NONE; }
inline bool Has(const fbs::State& state, fbs::StateFlag flag) { return Has(state.flags(), flag); }
// "Trained|Saved|Weight"; "none". Safe on unverified plans.
std::string DescribeFlags(fbs::StateFlag flags);

// Returns whether an access reads, or writes. ReadWrite does both.
inline bool Reads(fbs::Access access) { return (static_cast<uint8_t>(access) & 1) != 0; }
inline bool Writes(fbs::Access access) { return (static_cast<uint8_t>(access) & 2) != 0; }

// Returns whether the plan has all code that its kernels need; false if it was not generated.
bool HasCode(const fbs::Plan& plan);

// The event that a Signal or Wait uses in a call at `slot`.
template <typename SignalOrWait>
uint32_t EventOf(const SignalOrWait& command, uint32_t slot) {
  return command.event() + slot % command.slots();
}

// The communicator of a collective, send or receive; absent for any other command.
absl::optional<uint32_t> CommunicatorOf(const fbs::Command& command);

// Returns whether the last operand of the launch is the library workspace that a registered kernel asked for. It is no
// argument of the kernel's signature then.
bool HasScratchOperand(const fbs::Plan& plan, const fbs::Launch& launch);

// "launch of 'matmul'", "copy", "copy to the host", "all_reduce on 'tp'", "send to place 1 of 'pp'", "wait for event 3"
std::string DescribeCommand(const fbs::Plan& plan, const fbs::Command& command);

// "model.layers.0.mlp (by emit)", "layers.0.mlp.down_proj (by propagate-shardings: sum of partial products)"
std::string DescribeSource(const fbs::Plan& plan, uint32_t source);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_VIEW_PLAN_VIEW_H_
