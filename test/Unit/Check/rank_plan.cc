#include "test/Unit/Check/rank_plan.h"

#include <algorithm>
#include <deque>
#include <memory>

#include "runtime/drivers/cpu/cpu_device.h"
#include "runtime/plan/view/plan_view.h"
#include "test/Unit/Plan/fixture_image.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline::testing {

using fbs::BufferKind;
using fbs::CollectiveKind;

RankPlan::RankPlan(const std::vector<std::pair<std::string, uint32_t>>& mesh, int role_axis) {
  plan_.compiler = "bowline test";
  plan_.name = "ranks";
  plan_.target = std::make_unique<fbs::TargetT>();
  plan_.target->device = "cpu";
  plan_.target->arch = HostArch();
  plan_.target->cpu = "x86-64";
  plan_.target->threads = 1;
  for (const auto& [name, size] : mesh) {
    plan_.mesh.push_back(std::make_unique<fbs::AxisT>());
    plan_.mesh.back()->name = name;
    plan_.mesh.back()->size = size;
  }
  const uint32_t roles = role_axis < 0 ? 1 : mesh[static_cast<size_t>(role_axis)].second;
  plan_.role_axis = static_cast<uint8_t>(roles > 1 ? role_axis : 0);
  plan_.images.push_back(std::make_unique<fbs::ImageT>());
  plan_.images.back()->codes.push_back(std::make_unique<fbs::CodeT>());
  plan_.images.back()->codes.back()->format = kElfImageFormat;
  plan_.images.back()->codes.back()->data = FixtureImage();
  end_.resize(roles);
  for (uint32_t role = 0; role < roles; ++role) {
    const std::string name = "stage" + std::to_string(role);
    if (roles > 1) {
      plan_.roles.push_back(std::make_unique<fbs::RoleT>());
      plan_.roles.back()->name = name;
    }
    auto source = std::make_unique<fbs::SourceT>();
    source->location = "model." + name;
    source->pass = "test";
    plan_.sources.push_back(std::move(source));
    auto program = std::make_unique<fbs::ProgramT>();
    program->name = "step." + name;
    program->role = static_cast<uint16_t>(role);
    programs_.push_back(program.get());
    plan_.programs.push_back(std::move(program));
    auto entry = std::make_unique<fbs::EntryT>();
    entry->name = "step";
    entry->program = role;
    entries_.push_back(entry.get());
    plan_.entries.push_back(std::move(entry));
  }
}

uint32_t RankPlan::Communicator(const std::string& name, std::vector<uint8_t> axes) {
  plan_.communicators.push_back(std::make_unique<fbs::CommunicatorT>());
  plan_.communicators.back()->name = name;
  plan_.communicators.back()->axes = std::move(axes);
  return static_cast<uint32_t>(plan_.communicators.size() - 1);
}

void RankPlan::Streams(const std::vector<std::string>& names) {
  for (fbs::ProgramT* program : programs_) program->streams = names;
}

void RankPlan::Events(uint32_t count) {
  for (fbs::ProgramT* program : programs_) program->events = count;
}

uint32_t RankPlan::BufferAt(uint32_t role, const std::string& name, BufferKind kind, int64_t elements,
                            uint64_t offset) {
  auto buffer = std::make_unique<fbs::BufferT>();
  buffer->name = name;
  buffer->kind = kind;
  buffer->dtype = fbs::DType::F32;
  buffer->shape = {elements};
  buffer->bytes = static_cast<uint64_t>(elements) * 4;
  buffer->offset = offset;
  buffer->role = static_cast<uint16_t>(role);
  buffer->source = role;
  end_[role] = std::max(end_[role], offset + buffer->bytes);
  plan_.buffers.push_back(std::move(buffer));
  const auto index = static_cast<uint32_t>(plan_.buffers.size() - 1);
  if (kind == BufferKind::Input || kind == BufferKind::Output) {
    auto port = std::make_unique<fbs::PortT>();
    port->name = name;
    port->buffer = index;
    (kind == BufferKind::Input ? entries_[role]->inputs : entries_[role]->outputs).push_back(std::move(port));
  }
  return index;
}

uint32_t RankPlan::Buffer(uint32_t role, const std::string& name, BufferKind kind, int64_t elements, uint32_t slots) {
  const uint32_t index = BufferAt(role, name, kind, elements, (end_[role] + 63) / 64 * 64);
  fbs::BufferT& buffer = *plan_.buffers[index];
  buffer.slots = slots;
  if (slots > 1) buffer.slot_stride = (buffer.bytes + 63) / 64 * 64;
  end_[role] = buffer.offset + (slots - 1) * buffer.slot_stride + buffer.bytes;
  return index;
}

uint32_t RankPlan::View(uint32_t role, const std::string& name, uint32_t of, int64_t elements, uint64_t offset,
                        std::vector<uint8_t> axes, uint64_t stride) {
  const uint64_t begin = plan_.buffers[of]->offset + offset;
  const uint32_t index = BufferAt(role, name, BufferKind::Temporary, elements, begin);
  fbs::BufferT& buffer = *plan_.buffers[index];
  buffer.alignment = 4;
  buffer.slots = plan_.buffers[of]->slots;
  buffer.slot_stride = plan_.buffers[of]->slot_stride;
  buffer.view = std::make_unique<fbs::ViewT>();
  buffer.view->of = of;
  buffer.view->axes = std::move(axes);
  buffer.view->stride = stride;
  return index;
}

uint32_t RankPlan::Segment(uint32_t role, const std::string& name) {
  programs_[role]->segments.push_back(std::make_unique<fbs::SegmentT>());
  programs_[role]->segments.back()->name = name;
  return static_cast<uint32_t>(programs_[role]->segments.size() - 1);
}

void RankPlan::Call(uint32_t role, uint32_t segment, uint32_t slot) {
  programs_[role]->timeline.emplace_back(segment, slot);
}

template <typename T>
void RankPlan::Command(uint32_t role, uint16_t stream, T body) {
  if (programs_[role]->segments.empty()) Segment(role, "all");
  auto command = std::make_unique<fbs::CommandT>();
  command->body.Set(std::move(body));
  command->stream = stream;
  command->source = role;
  programs_[role]->segments.back()->commands.push_back(std::move(command));
}

uint32_t RankPlan::KernelFor(int64_t elements) {
  for (uint32_t i = 0; i < plan_.kernels.size(); ++i) {
    if (plan_.kernels[i]->geometry.AsByRange()->extent == static_cast<uint64_t>(elements)) return i;
  }
  auto kernel = std::make_unique<fbs::KernelT>();
  kernel->name = "fixture_add";
  kernel->origin = fbs::KernelOrigin::Generated;
  testing::SetExtent(*kernel, static_cast<uint64_t>(elements));
  for (const fbs::Access access : {fbs::Access::Read, fbs::Access::Read, fbs::Access::Write}) {
    auto argument = std::make_unique<fbs::ArgumentT>();
    argument->access = access;
    argument->dtype = fbs::DType::F32;
    argument->shape = {elements};
    kernel->arguments.push_back(std::move(argument));
  }
  plan_.kernels.push_back(std::move(kernel));
  return static_cast<uint32_t>(plan_.kernels.size() - 1);
}

void RankPlan::Add(uint32_t role, uint16_t stream, uint32_t a, uint32_t b, uint32_t out) {
  fbs::LaunchT launch;
  launch.kernel = KernelFor(plan_.buffers[out]->shape[0]);
  launch.operands = {fbs::Operand(a, 0), fbs::Operand(b, 0), fbs::Operand(out, 0)};
  Command(role, stream, std::move(launch));
}

void RankPlan::Copy(uint32_t role, uint16_t stream, uint32_t from, uint32_t to) {
  fbs::CopyT copy;
  copy.source = std::make_unique<fbs::Operand>(from, 0);
  copy.destination = std::make_unique<fbs::Operand>(to, 0);
  copy.bytes = plan_.buffers[to]->bytes;
  Command(role, stream, std::move(copy));
}

void RankPlan::Collective(uint32_t role, uint16_t stream, CollectiveKind kind, uint32_t communicator, uint32_t from,
                          uint32_t to, uint64_t count) {
  fbs::CollectiveT collective;
  collective.kind = kind;
  collective.communicator = communicator;
  collective.pieces.emplace_back(fbs::Operand(from, 0), fbs::Operand(to, 0), count);
  Command(role, stream, std::move(collective));
}

void RankPlan::Send(uint32_t role, uint16_t stream, uint32_t communicator, uint32_t peer, uint32_t buffer) {
  fbs::SendT send;
  send.communicator = communicator;
  send.peer = peer;
  send.ranges.emplace_back(fbs::Operand(buffer, 0), static_cast<uint64_t>(plan_.buffers[buffer]->shape[0]));
  Command(role, stream, std::move(send));
}

void RankPlan::Receive(uint32_t role, uint16_t stream, uint32_t communicator, uint32_t peer, uint32_t buffer) {
  fbs::ReceiveT receive;
  receive.communicator = communicator;
  receive.peer = peer;
  receive.ranges.emplace_back(fbs::Operand(buffer, 0), static_cast<uint64_t>(plan_.buffers[buffer]->shape[0]));
  Command(role, stream, std::move(receive));
}

void RankPlan::Signal(uint32_t role, uint16_t stream, uint32_t event, uint32_t slots) {
  fbs::SignalT signal;
  signal.event = event;
  signal.slots = slots;
  Command(role, stream, std::move(signal));
}

void RankPlan::Wait(uint32_t role, uint16_t stream, uint32_t event, uint32_t slots) {
  fbs::WaitT wait;
  wait.event = event;
  wait.slots = slots;
  Command(role, stream, std::move(wait));
}

fbs::PlanT RankPlan::Finish() {
  plan_.arena_bytes = *std::max_element(end_.begin(), end_.end());
  for (uint32_t role = 0; role < plan_.roles.size(); ++role) plan_.roles[role]->arena_bytes = end_[role];
  for (fbs::ProgramT* program : programs_) {
    if (program->timeline.empty() && !program->segments.empty()) program->timeline.emplace_back(0, 0);
  }
  SealCodes(plan_);
  return std::move(plan_);
}

namespace {

struct Work {
  bool forward;
  uint32_t microbatch;
};

// The work of a stage in 1F1B, in order.
std::deque<Work> OneForwardOneBackward(uint32_t stage, uint32_t stages, uint32_t microbatches) {
  const uint32_t ahead = std::min(microbatches, stages - stage);
  std::deque<Work> order;
  for (uint32_t m = 0; m < ahead; ++m) order.push_back({true, m});
  for (uint32_t m = 0; m < microbatches; ++m) {
    order.push_back({false, m});
    if (m + ahead < microbatches) order.push_back({true, m + ahead});
  }
  return order;
}

}  // namespace

fbs::PlanT MakePipeline(uint32_t pp, uint32_t dp, uint32_t microbatches, uint16_t first_stream) {
  RankPlan plan({{"pp", pp}, {"dp", dp}}, 0);
  const uint32_t forward = plan.Communicator("pp.forward", {0}), backward = plan.Communicator("pp.backward", {0});
  const uint32_t sums = plan.Communicator("dp", {1}), all = plan.Communicator("world", {0, 1});
  std::vector<std::string> streams = {"compute", "forward", "backward", "sums"};
  if (first_stream > 0) streams.insert(streams.begin(), first_stream, "host");
  plan.Streams(streams);
  const uint16_t compute = first_stream, to_next = first_stream + 1, to_last = first_stream + 2,
                 reduce = first_stream + 3;
  const uint32_t kept = std::min(microbatches, pp);  // activations in flight
  // Events, one per activation in flight.
  const uint32_t arrived = 0, computed = kept, returned = 2 * kept, differentiated = 3 * kept, sent = 4 * kept,
                 sent_back = 5 * kept, read = 6 * kept;
  plan.Events(7 * kept);
  constexpr int64_t kElements = 16;
  struct Segments {
    uint32_t receive, receive_again, forward, forward_again, receive_back, backward, finish;
  };
  std::vector<Segments> segments(pp);
  for (uint32_t r = 0; r < pp; ++r) {
    const bool first = r == 0, last = r + 1 == pp;
    const auto temporary = [&](const char* name) {
      return plan.Buffer(r, name, BufferKind::Temporary, kElements, kept);
    };
    const uint32_t weight = plan.Buffer(r, "weight", BufferKind::Input, kElements);
    const uint32_t x = first ? plan.Buffer(r, "x", BufferKind::Input, kElements, microbatches) : temporary("x");
    const uint32_t y = temporary("y");
    const uint32_t dy = last ? plan.Buffer(r, "dy", BufferKind::Input, kElements, microbatches) : temporary("dy");
    const uint32_t dx = temporary("dx");
    const uint32_t dw = plan.Buffer(r, "dw", BufferKind::Temporary, kElements, microbatches);
    const uint32_t gradient = plan.Buffer(r, "gradient", BufferKind::Output, kElements, microbatches);
    const uint32_t norm = plan.Buffer(r, "norm", BufferKind::Output, kElements);
    for (const bool again : {false, true}) {
      (again ? segments[r].receive_again : segments[r].receive) = plan.Segment(r, again ? "receive_again" : "receive");
      if (!first) {
        if (again) plan.Wait(r, to_next, differentiated, kept);  // of the microbatch that had the slot before
        plan.Receive(r, to_next, forward, r - 1, x);
        plan.Signal(r, to_next, arrived, kept);
      }
    }
    for (const bool again : {false, true}) {
      (again ? segments[r].forward_again : segments[r].forward) = plan.Segment(r, again ? "forward_again" : "forward");
      if (!first) plan.Wait(r, compute, arrived, kept);
      if (again && !last) plan.Wait(r, compute, sent, kept);
      plan.Add(r, compute, x, weight, y);
      if (!last) {
        plan.Signal(r, compute, computed, kept);
        plan.Wait(r, to_next, computed, kept);
        plan.Send(r, to_next, forward, r + 1, y);
        plan.Signal(r, to_next, sent, kept);
      }
    }
    segments[r].receive_back = plan.Segment(r, "receive_back");
    if (!last) {
      // The last computation on this rank read the gradient that had the slot before.
      plan.Signal(r, compute, read, kept);
      plan.Wait(r, to_last, read, kept);
      plan.Receive(r, to_last, backward, r + 1, dy);
      plan.Signal(r, to_last, returned, kept);
    }
    segments[r].backward = plan.Segment(r, "backward");
    if (!last) plan.Wait(r, compute, returned, kept);
    plan.Signal(r, to_last, sent_back, kept);  // after the send of the microbatch before
    plan.Wait(r, compute, sent_back, kept);
    plan.Add(r, compute, dy, weight, dx);
    plan.Add(r, compute, x, dy, dw);
    plan.Signal(r, compute, differentiated, kept);
    plan.Wait(r, to_last, differentiated, kept);
    if (!first) plan.Send(r, to_last, backward, r - 1, dx);
    plan.Wait(r, reduce, differentiated, kept);
    plan.Collective(r, reduce, CollectiveKind::AllReduce, sums, dw, gradient, kElements);
    segments[r].finish = plan.Segment(r, "finish");
    plan.Collective(r, reduce, CollectiveKind::AllReduce, all, weight, norm, kElements);
  }
  // All stages in one order of time, so that every rank issues operations with other ranks in that order.
  std::vector<std::deque<Work>> work;
  for (uint32_t r = 0; r < pp; ++r) work.push_back(OneForwardOneBackward(r, pp, microbatches));
  std::vector<uint32_t> forwarded(pp), differentiated_count(pp);
  for (bool busy = true; busy;) {
    busy = false;
    for (uint32_t r = 0; r < pp; ++r) {
      if (work[r].empty()) continue;
      busy = true;
      const auto [is_forward, m] = work[r].front();
      const bool ready = is_forward ? r == 0 || forwarded[r - 1] > m : r + 1 == pp || differentiated_count[r + 1] > m;
      if (!ready) continue;
      work[r].pop_front();
      ++(is_forward ? forwarded : differentiated_count)[r];
      if (is_forward) {
        plan.Call(r, m < kept ? segments[r].forward : segments[r].forward_again, m);
        if (r + 1 < pp) {
          plan.Call(r + 1, m < kept ? segments[r + 1].receive : segments[r + 1].receive_again, m);
        }
      } else {
        plan.Call(r, segments[r].backward, m);
        if (r > 0) plan.Call(r - 1, segments[r - 1].receive_back, m);
      }
    }
  }
  for (uint32_t r = 0; r < pp; ++r) plan.Call(r, segments[r].finish);
  return plan.Finish();
}

fbs::PlanT MakeShardedLoop(uint32_t dp, uint32_t tp, uint32_t microbatches, uint16_t first_stream) {
  RankPlan plan({{"dp", dp}, {"tp", tp}}, -1);
  const uint32_t inner = plan.Communicator("tp", {1}), outer = plan.Communicator("dp", {0});
  std::vector<std::string> streams = {"compute", "tp", "dp"};
  if (first_stream > 0) streams.insert(streams.begin(), first_stream, "host");
  plan.Streams(streams);
  const uint16_t compute = first_stream, within = first_stream + 1, across = first_stream + 2;
  plan.Events(6);
  const auto elements = static_cast<int64_t>(8 * dp);
  const uint32_t x = plan.Buffer(0, "x", BufferKind::Input, elements, microbatches);
  const uint32_t w = plan.Buffer(0, "w", BufferKind::Input, elements);
  const uint32_t partial = plan.Buffer(0, "partial", BufferKind::Temporary, elements, 2);
  const uint32_t whole = plan.Buffer(0, "whole", BufferKind::Temporary, elements, 2);
  const uint32_t gradient = plan.Buffer(0, "gradient", BufferKind::Temporary, elements, 2);
  const uint32_t part = plan.Buffer(0, "part", BufferKind::Temporary, elements / dp, microbatches);
  const uint32_t result = plan.Buffer(0, "result", BufferKind::Output, elements, microbatches);
  // Events 0 and 1: computed; 2 and 3: summed over tp; 4 and 5: scattered over dp.
  for (const bool again : {false, true}) {
    plan.Segment(0, again ? "micro_again" : "micro");
    if (again) plan.Wait(0, compute, 4, 2);
    plan.Add(0, compute, x, w, partial);
    plan.Signal(0, compute, 0, 2);
    plan.Wait(0, within, 0, 2);
    plan.Collective(0, within, CollectiveKind::AllReduce, inner, partial, whole, static_cast<uint64_t>(elements));
    plan.Signal(0, within, 2, 2);
    plan.Wait(0, compute, 2, 2);
    plan.Add(0, compute, whole, w, gradient);
    plan.Signal(0, compute, 0, 2);
    plan.Wait(0, across, 0, 2);
    plan.Collective(0, across, CollectiveKind::ReduceScatter, outer, gradient, part, 8);
    plan.Signal(0, across, 4, 2);
  }
  const uint32_t gather = plan.Segment(0, "gather");
  plan.Collective(0, across, CollectiveKind::AllGather, outer, part, result, 8);
  for (uint32_t m = 0; m < microbatches; ++m) plan.Call(0, m < 2 ? 0 : 1, m);
  for (uint32_t m = 0; m < microbatches; ++m) plan.Call(0, gather, m);
  return plan.Finish();
}

}  // namespace bowline::testing
