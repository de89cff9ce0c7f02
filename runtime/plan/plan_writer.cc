#include "runtime/plan/plan_writer.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/sha256.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/schema_hash.h"

namespace bowline {
namespace {

absl::Status Missing(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("cannot write the plan: ", what, " is missing"));
}

template <typename T>
absl::Status CheckPresent(const std::vector<std::unique_ptr<T>>& items, absl::string_view what) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i] == nullptr) return Missing(absl::StrCat(what, " ", i));
  }
  return absl::OkStatus();
}

absl::Status CheckKernels(const fbs::PlanT& plan) {
  BOWLINE_RETURN_IF_ERROR(CheckPresent(plan.kernels, "kernel"));
  for (const auto& kernel : plan.kernels) {
    BOWLINE_RETURN_IF_ERROR(CheckPresent(kernel->attributes, absl::StrCat("kernel '", kernel->name, "': attribute")));
    BOWLINE_RETURN_IF_ERROR(CheckPresent(kernel->arguments, absl::StrCat("kernel '", kernel->name, "': argument")));
    BOWLINE_RETURN_IF_ERROR(CheckPresent(kernel->dependences, absl::StrCat("kernel '", kernel->name, "': dependence")));
  }
  return absl::OkStatus();
}

absl::Status CheckPrograms(const fbs::PlanT& plan) {
  BOWLINE_RETURN_IF_ERROR(CheckPresent(plan.programs, "program"));
  for (const auto& program : plan.programs) {
    BOWLINE_RETURN_IF_ERROR(CheckPresent(program->segments, absl::StrCat("program '", program->name, "': segment")));
    for (const auto& segment : program->segments) {
      const std::string place = absl::StrCat("program '", program->name, "': segment '", segment->name, "': command");
      BOWLINE_RETURN_IF_ERROR(CheckPresent(segment->commands, place));
      for (size_t i = 0; i < segment->commands.size(); ++i) {
        const fbs::CommandBodyUnion& body = segment->commands[i]->body;
        if (body.value == nullptr) return Missing(absl::StrCat("body of ", place, " ", i));
        const fbs::CopyT* copy = body.AsCopy();
        if (copy != nullptr && (copy->source == nullptr || copy->destination == nullptr)) {
          return Missing(absl::StrCat("an operand of ", place, " ", i));
        }
      }
    }
  }
  return absl::OkStatus();
}

// FlatBuffers' packer dereferences without asking.
absl::Status CheckComplete(const fbs::PlanT& plan) {
  if (plan.target == nullptr) return Missing("target");
  BOWLINE_RETURN_IF_ERROR(CheckPresent(plan.mesh, "mesh axis"));
  BOWLINE_RETURN_IF_ERROR(CheckPresent(plan.buffers, "buffer"));
  BOWLINE_RETURN_IF_ERROR(CheckPresent(plan.states, "state"));
  BOWLINE_RETURN_IF_ERROR(CheckPresent(plan.constants, "constant"));
  BOWLINE_RETURN_IF_ERROR(CheckPresent(plan.images, "image"));
  for (const auto& image : plan.images) BOWLINE_RETURN_IF_ERROR(CheckPresent(image->codes, "code of an image"));
  BOWLINE_RETURN_IF_ERROR(CheckKernels(plan));
  BOWLINE_RETURN_IF_ERROR(CheckPrograms(plan));
  BOWLINE_RETURN_IF_ERROR(CheckPresent(plan.entries, "entry"));
  for (const auto& entry : plan.entries) {
    BOWLINE_RETURN_IF_ERROR(CheckPresent(entry->inputs, absl::StrCat("entry '", entry->name, "': input")));
    BOWLINE_RETURN_IF_ERROR(CheckPresent(entry->outputs, absl::StrCat("entry '", entry->name, "': output")));
  }
  BOWLINE_RETURN_IF_ERROR(CheckPresent(plan.sources, "source"));
  return CheckPresent(plan.attachments, "attachment");
}

// The packer asserts beyond 2 GiB, so the parts that can be that large are counted first. Everything else is counted
// generously per item.
absl::Status CheckSize(const fbs::PlanT& plan) {
  uint64_t bytes = 0;
  for (const auto& image : plan.images) {
    for (const auto& code : image->codes) bytes += code->data.size();
  }
  for (const auto& constant : plan.constants) bytes += constant->data.size();
  for (const auto& attachment : plan.attachments) bytes += attachment->text.size();
  for (const auto& program : plan.programs) {
    for (const auto& segment : program->segments) {
      for (const auto& command : segment->commands) {
        const fbs::LaunchT* launch = command->body.AsLaunch();
        bytes += 128 + (launch == nullptr ? 0 : launch->operands.size() * sizeof(fbs::Operand));
      }
    }
    bytes += program->timeline.size() * sizeof(fbs::SegmentCall);
  }
  bytes += 512 * (plan.buffers.size() + plan.kernels.size() + plan.sources.size() + plan.states.size());
  if (bytes <= kMaxPlanBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("cannot write the plan: it needs about ", bytes, " bytes, more than ",
                                                 kMaxPlanBytes, "; keep large constants in weights instead"));
}

}  // namespace

absl::StatusOr<flatbuffers::DetachedBuffer> WritePlan(fbs::PlanT& plan) {
  BOWLINE_RETURN_IF_ERROR(CheckComplete(plan));
  BOWLINE_RETURN_IF_ERROR(CheckSize(plan));
  plan.version = std::make_unique<fbs::VersionT>();
  plan.version->major = kPlanVersionMajor;
  plan.version->minor = kPlanVersionMinor;
  Sha256Digest schema;
  if (!DigestFromHex(kPlanSchemaHash, &schema)) return absl::InternalError("the build's schema hash is malformed");
  plan.schema_hash = std::make_unique<fbs::Hash256>(flatbuffers::span<const uint8_t, 32>(schema.data(), 32));
  plan.content_hash = std::make_unique<fbs::Hash256>();

  flatbuffers::FlatBufferBuilder builder(1 << 20);
  fbs::FinishPlanBuffer(builder, fbs::Plan::Pack(builder, &plan));
  flatbuffers::DetachedBuffer bytes = builder.Release();
  const absl::Span<uint8_t> span(bytes.data(), bytes.size());
  // FlatBuffers hands out const views; the bytes are ours.
  auto* hash = const_cast<uint8_t*>(fbs::GetPlan(bytes.data())->content_hash()->bytes()->data());
  const Sha256Digest digest = PlanContentHash(span, hash);
  std::copy(digest.begin(), digest.end(), hash);
  std::copy(digest.begin(), digest.end(), const_cast<uint8_t*>(plan.content_hash->bytes()->data()));
  return bytes;
}

absl::Status WritePlanFile(fbs::PlanT& plan, const std::string& path) {
  BOWLINE_ASSIGN_OR_RETURN(const flatbuffers::DetachedBuffer bytes, WritePlan(plan));
  const absl::Span<const uint8_t> span(bytes.data(), bytes.size());
  BOWLINE_RETURN_IF_ERROR(LoadedPlan::FromBytes(span, path).status());
  return WriteFileAtomically(path, absl::string_view(reinterpret_cast<const char*>(span.data()), span.size()));
}

}  // namespace bowline
