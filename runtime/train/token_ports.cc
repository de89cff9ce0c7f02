#include "runtime/train/token_ports.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {
namespace {

absl::Status Unfit(const Session& session, absl::string_view entry, absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat("'", session.loaded_plan().name(), "': entry '", entry, "' ", what,
                   "; compile the model again with the bowline-compile of this build"));
}

std::string Describe(const TensorRef& view) {
  return absl::StrCat(NameOf(ElementTypeOf(view.dtype)), " [", absl::StrJoin(view.shape, ", "), "]");
}

const fbs::Entry* FindEntryTable(const fbs::Plan& plan, absl::string_view entry) {
  for (const fbs::Entry* candidate : *plan.entries()) {
    if (TextOf(candidate->name()) == entry) return candidate;
  }
  return nullptr;
}

}  // namespace

static const fbs::Port* FindInputPort(const fbs::Entry& entry, absl::string_view port) {
  for (uint32_t i = 0; i < SizeOf(entry.inputs()); ++i) {
    if (TextOf(entry.inputs()->Get(i)->name()) == port) return entry.inputs()->Get(i);
  }
  return nullptr;
}

const fbs::Port* FindInputPort(const fbs::Plan& plan, absl::string_view entry, absl::string_view port) {
  const fbs::Entry* found = FindEntryTable(plan, entry);
  return found == nullptr ? nullptr : FindInputPort(*found, port);
}

absl::StatusOr<FoundEntry> RequireEntry(const Session& session, fbs::EntryKind kind) {
  const absl::StatusOr<int> found = session.FindEntry(kind);
  if (found.ok()) return FoundEntry{*found, session.NameOf(*found)};
  return absl::FailedPreconditionError(
      absl::StrCat(found.status().message(), "; compile the model again with ",
                   kind == fbs::EntryKind::Generate ? "--mode generate" : "--mode train"));
}

TokenPorts::Part TokenPorts::PartOf(const fbs::Plan& plan, uint32_t rank, const fbs::Layout* layout, uint32_t dim,
                                    int64_t local) {
  if (layout == nullptr) return {0, local, local};
  const auto* axes = SizeOf(layout->dim_shardings()) == 0 ? nullptr : layout->dim_shardings()->Get(dim)->axes();
  return {local * PlaceAlong(plan, axes, rank), local, layout->global_shape()->Get(dim)};
}

absl::StatusOr<TokenPorts::Input> TokenPorts::InputOf(const Session& session, absl::string_view entry,
                                                      const fbs::Buffer& buffer) {
  const auto* shape = buffer.shape();
  const fbs::Layout* layout = buffer.layout();
  if (buffer.dtype() != fbs::DType::I32 || SizeOf(shape) != 2 || buffer.bytes() == 0) {
    return Unfit(session, entry,
                 absl::StrCat("has tokens ", DescribeType(buffer.dtype(), shape), " instead of i32 [rows, sequence]"));
  }
  if (layout != nullptr && (SizeOf(layout->view()) > 0 || SizeOf(layout->flat_axes()) > 0)) {
    return Unfit(session, entry, "divides its inputs otherwise than by rows and columns");
  }
  Input input;
  input.rows = PartOf(session.plan(), session.rank(), layout, 0, shape->Get(0));
  input.columns = PartOf(session.plan(), session.rank(), layout, 1, shape->Get(1));
  for (const Part& part : {input.rows, input.columns}) {
    if (part.whole % part.count != 0) return Unfit(session, entry, "divides its inputs into unequal parts");
  }
  input.slots.resize(buffer.slots());
  input.whole.resize(static_cast<size_t>(input.rows.whole * input.columns.whole));
  input.part.resize(static_cast<size_t>(input.rows.count * input.columns.count));
  return input;
}

absl::StatusOr<TokenPorts> TokenPorts::Find(const Session& session, absl::string_view entry) {
  TokenPorts ports;
  ports.vocabulary_ = DatasetOptions().vocabulary;
  for (const absl::string_view name : {"tokens", "labels"}) {
    Input& input = name == "tokens" ? ports.tokens_ : ports.labels_;
    // Another role may have it, and knows its size.
    for (const fbs::Entry* candidate : *session.plan().entries()) {
      const fbs::Port* port = TextOf(candidate->name()) == entry ? FindInputPort(*candidate, name) : nullptr;
      if (port == nullptr) continue;
      if (input.slots.empty()) {
        BOWLINE_ASSIGN_OR_RETURN(input, InputOf(session, entry, *session.plan().buffers()->Get(port->buffer())));
      }
      if (port->limit() > 0) ports.vocabulary_ = std::min<int64_t>(ports.vocabulary_, port->limit());
    }
    if (input.slots.empty()) return Unfit(session, entry, "lacks the inputs 'tokens' and 'labels'");
    for (uint32_t slot = 0; slot < input.slots.size(); ++slot) {
      if (const absl::StatusOr<TensorRef> port = session.Input(entry, name, slot); port.ok()) input.slots[slot] = *port;
    }
  }
  const Input &tokens = ports.tokens_, &labels = ports.labels_;
  ports.rows_ = tokens.rows.whole;
  ports.sequence_ = tokens.columns.whole;
  if (labels.rows.whole != ports.rows_ || labels.columns.whole != ports.sequence_ ||
      labels.slots.size() != tokens.slots.size()) {
    return Unfit(
        session, entry,
        absl::StrCat("has labels i32[", labels.rows.whole, ", ", labels.columns.whole, "] x ", labels.slots.size(),
                     " for tokens i32[", ports.rows_, ", ", ports.sequence_, "] x ", tokens.slots.size()));
  }
  return ports;
}

// Whether tokens and labels of this rank are the same whole rows, so that no others have to be read.
bool TokenPorts::IsStraight(size_t slot) const {
  const auto is_whole = [](const Part& part) { return part.count == part.whole; };
  return is_whole(tokens_.columns) && is_whole(labels_.columns) && tokens_.rows.first == labels_.rows.first &&
         tokens_.rows.count == labels_.rows.count && tokens_.slots[slot].has_value() && labels_.slots[slot].has_value();
}

absl::Status TokenPorts::WritePart(Session& session, Input& input, size_t slot) {
  if (!input.slots[slot].has_value()) return absl::OkStatus();
  for (int64_t row = 0; row < input.rows.count; ++row) {
    const int32_t* from = input.whole.data() + (input.rows.first + row) * input.columns.whole + input.columns.first;
    std::copy_n(from, input.columns.count, input.part.data() + row * input.columns.count);
  }
  return session.WriteAll<int32_t>(*input.slots[slot], input.part);
}

absl::Status TokenPorts::Fill(Session& session, const Sampler& sampler, int64_t first) {
  return Fill(session, [&](int64_t row, int64_t count, int32_t* tokens, int32_t* labels) {
    return sampler.FillDraws(first + row, count, tokens, labels);
  });
}

absl::Status TokenPorts::Fill(Session& session, ReadRows read) {
  int64_t first = 0;
  for (size_t slot = 0; slot < tokens_.slots.size(); ++slot, first += rows_) {
    if (IsStraight(slot)) {
      BOWLINE_RETURN_IF_ERROR(
          read(first + tokens_.rows.first, tokens_.rows.count, tokens_.part.data(), labels_.part.data()));
      BOWLINE_RETURN_IF_ERROR(session.WriteAll<int32_t>(*tokens_.slots[slot], tokens_.part));
      BOWLINE_RETURN_IF_ERROR(session.WriteAll<int32_t>(*labels_.slots[slot], labels_.part));
      continue;
    }
    BOWLINE_RETURN_IF_ERROR(read(first, rows_, tokens_.whole.data(), labels_.whole.data()));
    BOWLINE_RETURN_IF_ERROR(WritePart(session, tokens_, slot));
    BOWLINE_RETURN_IF_ERROR(WritePart(session, labels_, slot));
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorRef> FindScalarOutput(const Session& session, absl::string_view entry, absl::string_view port) {
  const absl::StatusOr<TensorRef> view = session.Output(entry, port);
  if (!view.ok()) return Unfit(session, entry, absl::StrCat("lacks the output '", port, "'"));
  if (view->dtype != fbs::DType::F32 || view->bytes != sizeof(float)) {
    return Unfit(session, entry, absl::StrCat("has the output '", port, "' as ", Describe(*view), ", not one f32"));
  }
  return *view;
}

}  // namespace bowline
