#include "runtime/plan/plan_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/foreign_file.h"
#include "runtime/plan/schema_hash.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {
namespace {

// Root offset and identifier.
constexpr uint64_t kFileHeaderBytes = 8;

flatbuffers::Verifier MakeVerifier(absl::Span<const uint8_t> bytes) {
  flatbuffers::Verifier::Options options;
  options.max_depth = 16;  // Plan > Program > Segment > Command > Launch, and slack
  // A table and the offset that refers to it take at least 8 bytes, and a writer shares none, so this bounds a good
  // file and keeps a hostile one, whose tables are shared, linear.
  options.max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size() / 8 + 1);
  return flatbuffers::Verifier(bytes.data(), bytes.size(), options);
}

// The fields that must be readable in a file of any version: their place in the root table never changes.
bool HeaderIsReadable(absl::Span<const uint8_t> bytes) {
  flatbuffers::Verifier verifier = MakeVerifier(bytes);
  if (verifier.VerifyOffset(0) == 0) return false;
  const auto* root = flatbuffers::GetRoot<fbs::Plan>(bytes.data());
  const auto* table = reinterpret_cast<const flatbuffers::Table*>(root);
  return table->VerifyTableStart(verifier) && table->VerifyOffsetRequired(verifier, fbs::Plan::VT_VERSION) &&
         verifier.VerifyTable(root->version()) && table->VerifyOffsetRequired(verifier, fbs::Plan::VT_COMPILER) &&
         verifier.VerifyString(root->compiler()) &&
         table->VerifyFieldRequired<fbs::Hash256>(verifier, fbs::Plan::VT_SCHEMA_HASH, 1) &&
         table->VerifyFieldRequired<fbs::Hash256>(verifier, fbs::Plan::VT_CONTENT_HASH, 1);
}

std::string HexOf(const fbs::Hash256& hash) { return ToHex({hash.bytes()->data(), 32}); }

absl::Status CheckVersion(const fbs::Plan& plan) {
  const int major = plan.version()->major(), minor = plan.version()->minor();
  if (major == kPlanVersionMajor && minor <= kPlanVersionMinor) return absl::OkStatus();
  const bool newer = major > kPlanVersionMajor || (major == kPlanVersionMajor && minor > kPlanVersionMinor);
  return absl::FailedPreconditionError(absl::StrCat("written by ", Quoted(plan.compiler()), " in plan format ", major,
                                                    ".", minor, ", but this build reads format ", kPlanVersionMajor,
                                                    ".", kPlanVersionMinor, newer ? "; upgrade this build or " : "; ",
                                                    "compile the model again with the bowline-compile of this build"));
}

absl::Status CheckSchema(const fbs::Plan& plan) {
  // A minor version may only append to the schema, so an older file's hash is rightly another one.
  if (plan.version()->minor() != kPlanVersionMinor) return absl::OkStatus();
  const std::string schema = HexOf(*plan.schema_hash());
  if (schema == kPlanSchemaHash) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "written by ", Quoted(plan.compiler()), " with another plan schema under the same version number: ", schema,
      " there, ", kPlanSchemaHash, " in this build; compile the model again with the bowline-compile of this build"));
}

}  // namespace

Sha256Digest PlanContentHash(absl::Span<const uint8_t> bytes, const uint8_t* hash) {
  static constexpr std::array<uint8_t, 32> kZeros = {};
  const size_t before = static_cast<size_t>(hash - bytes.data());
  Sha256 digest;
  digest.Update(bytes.first(before));
  digest.Update(kZeros);
  digest.Update(bytes.subspan(before + kZeros.size()));
  return digest.Finish();
}

absl::StatusOr<LoadedPlan> LoadedPlan::FromFile(const std::string& path) {
  LoadedPlan loaded;
  loaded.name_ = path;
  BOWLINE_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::Open(path, MappedFile::Access::kSequential));
  loaded.mapping_ = std::make_unique<MappedFile>(std::move(mapping));
  loaded.bytes_ = loaded.mapping_->bytes();
  BOWLINE_RETURN_IF_ERROR(loaded.Verify());
  return loaded;
}

absl::StatusOr<LoadedPlan> LoadedPlan::FromBytes(absl::Span<const uint8_t> bytes, const std::string& name) {
  LoadedPlan loaded;
  loaded.name_ = name;
  loaded.copy_ = std::make_unique<uint64_t[]>(bytes.size() / 8 + 1);
  auto* copy = reinterpret_cast<uint8_t*>(loaded.copy_.get());
  std::copy(bytes.begin(), bytes.end(), copy);
  loaded.bytes_ = {copy, bytes.size()};
  BOWLINE_RETURN_IF_ERROR(loaded.Verify());
  return loaded;
}

Sha256Digest LoadedPlan::content_hash() const {
  Sha256Digest digest;
  std::memcpy(digest.data(), plan().content_hash()->bytes()->data(), digest.size());
  return digest;
}

absl::Status LoadedPlan::Verify() const {
  const std::string file = absl::StrCat("'", absl::Utf8SafeCEscape(name_), "'");
  const auto damaged = [&](absl::string_view how) {
    return absl::DataLossError(
        absl::StrCat(file, ": the plan is damaged: ", how, "; copy it again or compile the model again"));
  };
  if (bytes_.size() < kFileHeaderBytes || !fbs::PlanBufferHasIdentifier(bytes_.data())) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": not a Bowline plan (", bytes_.size(), " bytes without the identifier '", fbs::PlanIdentifier(),
        "' at byte 4); give the file that bowline-compile wrote", ForeignFormatNote(bytes_)));
  }
  if (bytes_.size() > kMaxPlanBytes) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": the file has ", bytes_.size(), " bytes, more than the ",
                                                   kMaxPlanBytes, " that a plan may have"));
  }
  if (!HeaderIsReadable(bytes_)) return damaged("its header points outside of the file");
  const uint8_t* hash = plan().content_hash()->bytes()->data();
  const Sha256Digest actual = PlanContentHash(bytes_, hash);
  if (!std::equal(actual.begin(), actual.end(), hash)) {
    return damaged(absl::StrCat("its content hash is ", ToHex(actual), " but the file states ", ToHex({hash, 32})));
  }
  BOWLINE_RETURN_IF_ERROR(Annotate(CheckVersion(plan()), file));
  BOWLINE_RETURN_IF_ERROR(Annotate(CheckSchema(plan()), file));
  flatbuffers::Verifier verifier = MakeVerifier(bytes_);
  if (!fbs::VerifyPlanBuffer(verifier)) return damaged("its tables point outside of the file");
  return Annotate(VerifyPlan(plan()), file);
}

}  // namespace bowline
