#ifndef BOWLINE_RUNTIME_PLAN_PLAN_FILE_H_
#define BOWLINE_RUNTIME_PLAN_PLAN_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// The plan format of this build. It reads plans of the same major version and any minor version up to its own.
inline constexpr uint16_t kPlanVersionMajor = 3;
inline constexpr uint16_t kPlanVersionMinor = 2;

// The largest size of a plan file: offsets in a FlatBuffer are signed 32-bit numbers.
inline constexpr uint64_t kMaxPlanBytes = (uint64_t{1} << 31) - 1;

// A plan that passed every check of the format: identifier, content hash, version, schema, structure and VerifyPlan.
// Errors name the file: kNotFound and kPermissionDenied for the file itself; kDataLoss for damaged bytes;
// kFailedPrecondition for another version or schema; kInvalidArgument for a plan that VerifyPlan refuses.
class LoadedPlan {
 public:
  // Maps the file; its bytes are not copied.
  static absl::StatusOr<LoadedPlan> FromFile(const std::string& path);

  // Copies `bytes`, whose alignment does not matter. `name` stands for the path in messages.
  static absl::StatusOr<LoadedPlan> FromBytes(absl::Span<const uint8_t> bytes, const std::string& name = "plan");

  const fbs::Plan& plan() const { return *fbs::GetPlan(bytes_.data()); }
  const fbs::Plan* operator->() const { return &plan(); }
  absl::Span<const uint8_t> bytes() const { return bytes_; }
  // The path, or the name given to FromBytes.
  const std::string& name() const { return name_; }
  Sha256Digest content_hash() const;

 private:
  LoadedPlan() = default;
  absl::Status Verify() const;

  std::string name_;
  std::unique_ptr<MappedFile> mapping_;  // set by FromFile
  std::unique_ptr<uint64_t[]> copy_;     // set by FromBytes; 8-byte aligned as FlatBuffers needs
  absl::Span<const uint8_t> bytes_;
};

// The SHA-256 of a finished plan, with the 32 bytes of its content hash taken as zero. `hash` points to those bytes.
Sha256Digest PlanContentHash(absl::Span<const uint8_t> bytes, const uint8_t* hash);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_PLAN_FILE_H_
