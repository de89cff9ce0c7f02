#include "runtime/plan/meaning/meaning_interface.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/plan/meaning/digest_tags.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {
namespace {

template <typename T>
void AddNumbers(const flatbuffers::Vector<T>* numbers, DigestBuilder& builder) {
  builder.Add(SizeOf(numbers));
  for (uint32_t i = 0; i < SizeOf(numbers); ++i) builder.Add(static_cast<uint64_t>(numbers->Get(i)));
}

void AddTensor(const fbs::Buffer& buffer, DigestBuilder& builder) {
  builder.Add(static_cast<uint64_t>(buffer.dtype())).Add(buffer.slots());
  AddNumbers(buffer.shape(), builder);
  const fbs::Layout* layout = buffer.layout();
  builder.Add(layout != nullptr);
  if (layout == nullptr) return;
  AddNumbers(layout->global_shape(), builder);
  AddNumbers(layout->view(), builder);
  builder.Add(SizeOf(layout->dim_shardings()));
  for (uint32_t i = 0; i < SizeOf(layout->dim_shardings()); ++i)
    AddNumbers(layout->dim_shardings()->Get(i)->axes(), builder);
  AddNumbers(layout->flat_axes(), builder);
}

void AddPorts(const fbs::Plan& plan, const flatbuffers::Vector<flatbuffers::Offset<fbs::Port>>* ports,
              DigestBuilder& builder) {
  std::vector<const fbs::Port*> sorted;
  for (uint32_t i = 0; i < SizeOf(ports); ++i) sorted.push_back(ports->Get(i));
  std::sort(sorted.begin(), sorted.end(),
            [](const fbs::Port* a, const fbs::Port* b) { return TextOf(a->name()) < TextOf(b->name()); });
  std::map<uint32_t, uint64_t> first_of_buffer;
  builder.Add(sorted.size());
  for (size_t i = 0; i < sorted.size(); ++i) {
    const fbs::Port& port = *sorted[i];
    builder.Add(TextOf(port.name())).Add(static_cast<uint64_t>(port.limit()));
    builder.Add(first_of_buffer.emplace(port.buffer(), i).first->second);
    AddTensor(*plan.buffers()->Get(port.buffer()), builder);
  }
}

void AddTarget(const fbs::Target& target, DigestBuilder& builder) {
  builder.Add(TextOf(target.device())).Add(TextOf(target.arch())).Add(TextOf(target.cpu()));
}

void AddAttachments(const fbs::Plan& plan, DigestBuilder& builder) {
  std::map<absl::string_view, absl::string_view> texts;
  for (uint32_t i = 0; i < SizeOf(plan.attachments()); ++i) {
    const fbs::Attachment& attachment = *plan.attachments()->Get(i);
    texts.emplace(TextOf(attachment.name()), TextOf(attachment.text()));
  }
  builder.Add(texts.size());
  for (const auto& [name, text] : texts) builder.Add(name).Add(text);
}

}  // namespace

std::vector<Digest> InterfacesOfRoles(const fbs::Plan& plan) {
  DigestBuilder common(kInterfaceTag);
  AddTarget(*plan.target(), common);
  AddAttachments(plan, common);
  common.Add(plan.target()->threads()).Add(plan.seed()).Add(RoleCount(plan)).Add(plan.role_axis());
  common.Add(SizeOf(plan.mesh()));
  for (uint32_t i = 0; i < SizeOf(plan.mesh()); ++i) {
    common.Add(TextOf(plan.mesh()->Get(i)->name())).Add(plan.mesh()->Get(i)->size());
  }
  std::vector<std::vector<Digest>> states(RoleCount(plan));
  for (const fbs::State* state : *plan.states()) {
    const fbs::Buffer& buffer = *plan.buffers()->Get(state->buffer());
    DigestBuilder one(kStateTag);
    one.Add(TextOf(state->key())).Add(static_cast<uint64_t>(state->flags()));
    if (state->format() != nullptr) one.Add(TextOf(state->format()));
    AddTensor(buffer, one);
    states[buffer.role()].push_back(one.Finish());
  }
  std::vector<Digest> interfaces;
  for (uint32_t role = 0; role < states.size(); ++role) {
    std::sort(states[role].begin(), states[role].end());
    DigestBuilder builder = common;
    builder.Add(role).Add(states[role].size());
    for (const Digest& state : states[role]) builder.Add(state);
    interfaces.push_back(builder.Finish());
  }
  return interfaces;
}

Digest InterfaceOfEntry(const fbs::Plan& plan, const fbs::Entry& entry) {
  DigestBuilder builder(kInterfaceTag);
  builder.Add(static_cast<uint64_t>(entry.kind())).Add(entry.bucket()).Add(entry.in_flight());
  AddPorts(plan, entry.inputs(), builder);
  AddPorts(plan, entry.outputs(), builder);
  std::vector<std::pair<absl::string_view, absl::string_view>> feeds;
  for (uint32_t i = 0; i < SizeOf(entry.feeds()); ++i) {
    const fbs::Feed& feed = *entry.feeds()->Get(i);
    feeds.emplace_back(TextOf(entry.outputs()->Get(feed.output())->name()),
                       TextOf(entry.inputs()->Get(feed.input())->name()));
  }
  std::sort(feeds.begin(), feeds.end());
  builder.Add(feeds.size());
  for (const auto& [output, input] : feeds) builder.Add(output).Add(input);
  if (const fbs::Sequences* sequences = entry.sequences()) {
    for (const uint32_t input : {sequences->rows(), sequences->lengths(), sequences->blocks()})
      builder.Add(TextOf(entry.inputs()->Get(input)->name()));
    builder.Add(sequences->tokens()).Add(sequences->block_tokens()).Add(sequences->block_count());
  }
  return builder.Finish();
}

}  // namespace bowline
