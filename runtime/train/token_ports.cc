#include "runtime/train/token_ports.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/plan/plan_view.h"

namespace bowline {
namespace {

absl::Status Unfit(const Session& session, absl::string_view entry, absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat("'", session.loaded_plan().name(), "': entry '", entry, "' ", what,
                   "; compile the model again with the bowline-compile of this build"));
}

std::string Describe(const TensorView& view) {
  return absl::StrCat(fbs::EnumNameDType(view.dtype), " [", absl::StrJoin(view.shape, ", "), "]");
}

const fbs::Entry* FindEntryTable(const fbs::Plan& plan, absl::string_view entry) {
  for (const fbs::Entry* candidate : *plan.entries()) {
    if (TextOf(candidate->name()) == entry) return candidate;
  }
  return nullptr;
}

}  // namespace

bool HasEntry(const fbs::Plan& plan, absl::string_view entry) { return FindEntryTable(plan, entry) != nullptr; }

const fbs::Port* FindInputPort(const fbs::Plan& plan, absl::string_view entry, absl::string_view port) {
  const fbs::Entry* found = FindEntryTable(plan, entry);
  if (found == nullptr) return nullptr;
  for (uint32_t i = 0; i < SizeOf(found->inputs()); ++i) {
    if (TextOf(found->inputs()->Get(i)->name()) == port) return found->inputs()->Get(i);
  }
  return nullptr;
}

absl::StatusOr<TokenPorts> TokenPorts::Find(const Session& session, absl::string_view entry) {
  const fbs::Port* tokens = FindInputPort(session.plan(), entry, "tokens");
  const fbs::Port* labels = FindInputPort(session.plan(), entry, "labels");
  if (tokens == nullptr || labels == nullptr) return Unfit(session, entry, "lacks the inputs 'tokens' and 'labels'");
  const TensorView shape = session.BufferAt(tokens->buffer());
  const TensorView label_shape = session.BufferAt(labels->buffer());
  const uint32_t slots = session.plan().buffers()->Get(tokens->buffer())->slots();
  if (shape.dtype != fbs::DType::I32 || shape.shape.size() != 2 || shape.bytes == 0) {
    return Unfit(session, entry, absl::StrCat("has tokens ", Describe(shape), " instead of i32 [rows, sequence]"));
  }
  if (label_shape.dtype != shape.dtype || label_shape.shape != shape.shape ||
      session.plan().buffers()->Get(labels->buffer())->slots() != slots) {
    return Unfit(session, entry, absl::StrCat("has labels ", Describe(label_shape), " for tokens ", Describe(shape)));
  }
  TokenPorts ports;
  ports.rows_ = shape.shape[0];
  ports.sequence_ = shape.shape[1];
  ports.vocabulary_ = DatasetOptions().vocabulary;
  for (const fbs::Port* port : {tokens, labels}) {
    if (port->limit() > 0) ports.vocabulary_ = std::min<int64_t>(ports.vocabulary_, port->limit());
  }
  for (uint32_t slot = 0; slot < slots; ++slot) {
    ports.slots_.push_back({static_cast<int32_t*>(session.BufferAt(tokens->buffer(), slot).data),
                            static_cast<int32_t*>(session.BufferAt(labels->buffer(), slot).data)});
  }
  return ports;
}

absl::Status TokenPorts::Fill(const Sampler& sampler, int64_t first) const {
  for (const Slot& slot : slots_) {
    BOWLINE_RETURN_IF_ERROR(sampler.FillDraws(first, rows_, slot.tokens, slot.labels));
    first += rows_;
  }
  return absl::OkStatus();
}

absl::StatusOr<const float*> FindScalarOutput(const Session& session, absl::string_view entry, absl::string_view port) {
  const absl::StatusOr<TensorView> view = session.Output(entry, port);
  if (!view.ok()) return Unfit(session, entry, absl::StrCat("lacks the output '", port, "'"));
  if (view->dtype != fbs::DType::F32 || view->bytes != sizeof(float)) {
    return Unfit(session, entry, absl::StrCat("has the output '", port, "' as ", Describe(*view), ", not one f32"));
  }
  return static_cast<const float*>(view->data);
}

}  // namespace bowline
