#ifndef BOWLINE_RUNTIME_PLAN_VERIFY_VERIFIER_PARTS_H_
#define BOWLINE_RUNTIME_PLAN_VERIFY_VERIFIER_PARTS_H_

// The parts of VerifyPlan. Private to runtime/plan. Each part may rely on those before it.

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline::verifier {

// VerifyPlan calls these functions in this order.
absl::Status VerifyHeader(const fbs::Plan& plan);   // names, target, mesh, roles, arenas, communicators, attachments
absl::Status VerifyMemory(const fbs::Plan& plan);   // buffers, states, constants
absl::Status VerifyKernels(const fbs::Plan& plan);  // images, kernels
absl::Status VerifyPrograms(const fbs::Plan& plan);
absl::Status VerifyEntries(const fbs::Plan& plan);
absl::Status VerifyPreparation(const fbs::Plan& plan);  // see preparation.h
absl::Status VerifyCertificates(const fbs::Plan& plan);

template <typename... Pieces>
absl::Status Broken(const Pieces&... pieces) {
  return absl::InvalidArgumentError(absl::StrCat(pieces...));
}

// "index 7 of WHAT, of which there are 3".
absl::Status VerifyIndex(absl::string_view place, absl::string_view what, uint64_t index, uint64_t count);

// Checks that the elements of a vector are at multiples of 8 bytes. The generated verifier (FlatBuffers 2.0.8) checks
// the alignment of a vector's length alone, which is less than 8-byte elements need.
template <typename T>
absl::Status VerifyAligned(absl::string_view place, absl::string_view what, const flatbuffers::Vector<T>* vector) {
  if (SizeOf(vector) == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % 8 == 0) return absl::OkStatus();
  return Broken(place, ": the ", what, " are not aligned in the file");
}

// Checks that a tensor of this shape and dtype has a size in bytes (DenseBytes).
absl::Status VerifyType(absl::string_view place, fbs::DType dtype, const flatbuffers::Vector<int64_t>* shape);

// Checks that an alignment is a power of two, at most kMaxAlignment.
absl::Status VerifyAlignment(absl::string_view place, uint32_t alignment);

// Checks that `axes` are axes of the mesh, and that none occurs twice.
absl::Status VerifyAxes(const fbs::Plan& plan, absl::string_view place, const flatbuffers::Vector<uint8_t>* axes);

// Checks that the buffer's layout, if it has one, is valid and that a shard of it has the size of the buffer.
absl::Status VerifyLayout(const fbs::Plan& plan, absl::string_view place, const fbs::Buffer& buffer);

// Checks a collective, send or receive of a program of `role`, but not its operands.
absl::Status VerifyCommunication(const fbs::Plan& plan, uint32_t role, const fbs::Command& command);

// Finds names that are empty or appear twice.
class NameSet {
 public:
  explicit NameSet(absl::string_view what) : what_(what) {}
  absl::Status Insert(absl::string_view place, const flatbuffers::String* name);

 private:
  std::string what_;
  std::set<absl::string_view> names_;
};

}  // namespace bowline::verifier

#endif  // BOWLINE_RUNTIME_PLAN_VERIFY_VERIFIER_PARTS_H_
