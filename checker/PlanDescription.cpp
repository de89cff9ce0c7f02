//===- PlanDescription.cpp - the contents of a plan -------------------------===//

#include "checker/PlanDescription.h"
#include "checker/DeviceCode.h"
#include "checker/JsonText.h"
#include "checker/MemoryTimeline.h"
#include "checker/ValidRowsOf.h"
#include "kernels/registry/product_epilogue.h"
#include "runtime/plan/view/plan_view.h"

#include "absl/strings/str_format.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

using namespace bowline;
using namespace bowline::json_text;

using Json = nlohmann::ordered_json;

static constexpr size_t kMostTensors = 16;

static std::string typeOf(const fbs::Buffer &buffer) { return DescribeType(buffer.dtype(), buffer.shape()); }

namespace {
class Inspector {
public:
  explicit Inspector(const LoadedPlan &plan) : loaded_(plan), plan_(plan.plan()), timeline_(plan_) {}

  Json describe(bool memory) const {
    Json json;
    json["header"] = header();
    json["entries"] = Json::array();
    for (uint32_t i = 0; i < plan_.entries()->size(); ++i)
      json["entries"].push_back(entry(i, memory));
    json["programs"] = Json::array();
    for (const fbs::Program *program : *plan_.programs())
      json["programs"].push_back(describeProgram(*program));
    json["kernels"] = kernels();
    json["buffers"] = Json::array();
    for (const fbs::Buffer *buffer : *plan_.buffers()) {
      json["buffers"].push_back({{"name", name(buffer->name())},
                                 {"kind", fbs::EnumNameBufferKind(buffer->kind())},
                                 {"type", typeOf(*buffer)},
                                 {"space", fbs::EnumNameMemorySpace(buffer->space())},
                                 {"alignment", buffer->alignment()},
                                 {"offset", buffer->offset()},
                                 {"bytes", buffer->bytes()},
                                 {"slots", buffer->slots()},
                                 {"source", DescribeSource(plan_, buffer->source())}});
      if (const fbs::View *view = buffer->view())
        json["buffers"].back()["view"] = describeView(*view);
    }
    return json;
  }

  Json describeView(const fbs::View &view) const {
    Json axes = Json::array();
    for (uint32_t i = 0; i < SizeOf(view.axes()); ++i)
      axes.push_back(name(plan_.mesh()->Get(view.axes()->Get(i))->name()));
    return {{"of", view.of()}, {"axes", std::move(axes)}, {"stride", view.stride()}};
  }

  /// Kernels alone, with their launches and the resources of their code. Fails where that cannot be read.
  absl::StatusOr<Json> describeKernels() const {
    std::vector<std::map<std::string, DeviceFunction>> functions(SizeOf(plan_.images()));
    for (uint32_t i = 0; i < functions.size(); ++i) {
      const fbs::Code &code = preferredCode(i);
      if (name(code.format()) != kCubin)
        continue;
      auto read = readCubin({code.data()->data(), code.data()->size()});
      if (!read.ok())
        return Annotate(read.status(), absl::StrCat("image ", i));
      functions[i] = *std::move(read);
    }
    Json json = kernels();
    for (uint32_t i = 0; i < json.size(); ++i) {
      const fbs::Kernel &kernel = *plan_.kernels()->Get(i);
      if (kernel.origin() != fbs::KernelOrigin::Generated)
        continue;
      VisitGeometry(kernel, GeometryVisitor{[](std::monostate) {},
                                            [&](const fbs::ByRange &range) { json[i]["extent"] = range.extent(); },
                                            [&](const fbs::Grid &grid) {
                                              json[i]["grid"] = {{"blocks", extents(grid.blocks())},
                                                                 {"threads", extents(grid.threads())}};
                                            }});
      json[i]["code"] = name(preferredCode(kernel.image()).format());
      const auto &known = functions[kernel.image()];
      if (auto function = known.find(kernel.name()->str()); function != known.end()) {
        json[i]["registers"] = function->second.registers;
        json[i]["stack_bytes"] = function->second.stackBytes;
        json[i]["shared_bytes"] = function->second.sharedBytes;
      }
    }
    return Json{{"kernels", json}};
  }

private:
  static constexpr const char *kCubin = "cubin";

  /// The first code of the image, which a device takes that can run all of the image's codes.
  const fbs::Code &preferredCode(uint32_t image) const { return *plan_.images()->Get(image)->codes()->Get(0); }

  static Json extents(const flatbuffers::Vector<uint32_t> *of) {
    Json json = Json::array();
    for (uint32_t d = 0; d < SizeOf(of); ++d)
      json.push_back(of->Get(d));
    return json;
  }

  Json header() const {
    Json mesh = Json::object();
    for (uint32_t i = 0; i < SizeOf(plan_.mesh()); ++i)
      mesh[name(plan_.mesh()->Get(i)->name())] = plan_.mesh()->Get(i)->size();
    uint64_t imageBytes = 0;
    for (uint32_t i = 0; i < SizeOf(plan_.images()); ++i)
      for (const fbs::Code *code : *plan_.images()->Get(i)->codes())
        imageBytes += code->data()->size();
    Json attachments = Json::array();
    for (uint32_t i = 0; i < SizeOf(plan_.attachments()); ++i)
      attachments.push_back(name(plan_.attachments()->Get(i)->name()));
    Json others = Json::array();
    for (uint32_t i = 0; i < SizeOf(plan_.arenas()); ++i) {
      const fbs::Arena &arena = *plan_.arenas()->Get(i);
      others.push_back(
          {{"role", arena.role()}, {"space", fbs::EnumNameMemorySpace(arena.space())}, {"bytes", arena.bytes()}});
    }
    return {{"name", name(plan_.name())},
            {"compiler", name(plan_.compiler())},
            {"format", absl::StrCat(plan_.version()->major(), ".", plan_.version()->minor())},
            {"content_hash", ToHex(loaded_.content_hash())},
            {"file_bytes", loaded_.bytes().size()},
            {"target", absl::StrCat(name(plan_.target()->device()), " ", name(plan_.target()->arch()), " ",
                                    name(plan_.target()->cpu()))},
            {"threads", plan_.target()->threads()},
            {"mesh", mesh},
            {"seed", plan_.seed()},
            {"arena_bytes", plan_.arena_bytes()},
            {"other_arenas", others},
            {"image_bytes", imageBytes},
            {"has_code", HasCode(plan_)},
            {"states", plan_.states()->size()},
            {"attachments", attachments}};
  }

  Json port(const fbs::Port &port) const {
    const fbs::Buffer &buffer = *plan_.buffers()->Get(port.buffer());
    return {{"name", name(port.name())},
            {"buffer", name(buffer.name())},
            {"type", typeOf(buffer)},
            {"slots", buffer.slots()},
            {"limit", port.limit()}};
  }

  /// The name of the role whose entry it is; empty where all ranks run the same program.
  std::string roleOf(uint32_t entry) const {
    const fbs::Program &program = *plan_.programs()->Get(plan_.entries()->Get(entry)->program());
    return SizeOf(plan_.roles()) > 1 ? name(plan_.roles()->Get(program.role())->name()) : "";
  }

  Json entry(uint32_t index, bool memory) const {
    const fbs::Entry &entry = *plan_.entries()->Get(index);
    Json json = {{"name", name(entry.name())},
                 {"kind", fbs::EnumNameEntryKind(entry.kind())},
                 {"bucket", entry.bucket()},
                 {"role", roleOf(index)},
                 {"program", name(timeline_.programOf(index).name())},
                 {"commands", timeline_.commandCount(index)},
                 {"inputs", Json::array()},
                 {"outputs", Json::array()}};
    for (uint32_t i = 0; i < SizeOf(entry.inputs()); ++i)
      json["inputs"].push_back(port(*entry.inputs()->Get(i)));
    for (uint32_t i = 0; i < SizeOf(entry.outputs()); ++i)
      json["outputs"].push_back(port(*entry.outputs()->Get(i)));
    if (memory)
      json["memory"] = describeMemory(index);
    return json;
  }

  Json describeMemory(uint32_t index) const {
    const MemoryTimeline memory = computeMemoryTimeline(timeline_, index);
    Json json = {
        {"peak_bytes", memory.peakBytes()},
        {"always_live_bytes", memory.persistentBytes},
        {"peak_command", memory.peakCommand},
        {"peak_at", memory.liveBytes.empty() ? std::string("no command") : timeline_.describe(memory.peakSite)},
        {"plot", plotMemory(memory, 64, 10)},
        {"temporaries_at_peak", memory.atPeak.size()},
        {"largest_at_peak", Json::array()}};
    // Buffers that live throughout the entry are live at the peak too.
    std::vector<MemoryTimeline::Tensor> tensors(memory.atPeak.begin(), memory.atPeak.end());
    for (uint32_t i = 0; i < plan_.buffers()->size(); ++i) {
      const fbs::Buffer &buffer = *plan_.buffers()->Get(i);
      if (buffer.space() == fbs::MemorySpace::Device &&
          (IsPersistent(buffer.kind()) || buffer.kind() == fbs::BufferKind::Output))
        tensors.push_back({i, 0, buffer.bytes() * buffer.slots(), 0, 0});
    }
    std::sort(tensors.begin(), tensors.end(), [](const auto &a, const auto &b) {
      return std::tie(b.bytes, a.buffer, a.slot) < std::tie(a.bytes, b.buffer, b.slot);
    });
    for (size_t i = 0; i < std::min(tensors.size(), kMostTensors); ++i) {
      const fbs::Buffer &buffer = *plan_.buffers()->Get(tensors[i].buffer);
      json["largest_at_peak"].push_back({{"name", name(buffer.name())},
                                         {"kind", fbs::EnumNameBufferKind(buffer.kind())},
                                         {"type", typeOf(buffer)},
                                         {"bytes", tensors[i].bytes},
                                         {"source", DescribeSource(plan_, buffer.source())}});
    }
    return json;
  }

  Json describeProgram(const fbs::Program &program) const {
    std::vector<uint32_t> calls(SizeOf(program.segments()), 0);
    for (uint32_t i = 0; i < SizeOf(program.timeline()); ++i)
      ++calls[program.timeline()->Get(i)->segment()];
    Json json = {{"name", name(program.name())}, {"streams", Json::array()}, {"segments", Json::array()}};
    for (uint32_t i = 0; i < SizeOf(program.streams()); ++i)
      json["streams"].push_back(name(program.streams()->Get(i)));
    for (uint32_t i = 0; i < calls.size(); ++i) {
      const fbs::Segment &segment = *program.segments()->Get(i);
      json["segments"].push_back(
          {{"name", name(segment.name())}, {"commands", SizeOf(segment.commands())}, {"calls", calls[i]}});
    }
    return json;
  }

  Json kernels() const {
    std::vector<uint64_t> launches(plan_.kernels()->size(), 0);
    for (uint32_t i = 0; i < plan_.entries()->size(); ++i)
      timeline_.forEachCommand(i, [&](CommandSite, const fbs::Command &command, absl::Span<const OperandAccess>) {
        if (const fbs::Launch *launch = command.body_as_Launch())
          ++launches[launch->kernel()];
        return true;
      });
    Json json = Json::array();
    for (uint32_t i = 0; i < launches.size(); ++i) {
      const fbs::Kernel &kernel = *plan_.kernels()->Get(i);
      Json arguments = Json::array();
      for (uint32_t a = 0; a < SizeOf(kernel.arguments()); ++a) {
        const fbs::Argument &argument = *kernel.arguments()->Get(a);
        arguments.push_back(absl::StrCat(fbs::EnumNameAccess(argument.access()), " ",
                                         DescribeType(argument.dtype(), argument.shape())));
      }
      json.push_back({{"name", name(kernel.name())},
                      {"origin", fbs::EnumNameKernelOrigin(kernel.origin())},
                      {"launches", launches[i]},
                      {"flops", kernel.flops()},
                      {"bytes", kernel.bytes_moved()},
                      {"arguments", arguments}});
      for (uint32_t a = 0; a < SizeOf(kernel.attributes()); ++a) {
        const fbs::Attribute &attribute = *kernel.attributes()->Get(a);
        if (attribute.text() && attribute.name()->string_view() == kernels::kEpilogue)
          json.back()["epilogue"] = name(attribute.text());
      }
      // Before it is bound, it is not known that a registered kernel has the named arguments.
      if (const auto rows = validRowsOf(kernel))
        json.back()["valid_rows"] = {{"count", rows->count}, {"arguments", rows->arguments}};
    }
    return json;
  }

  const LoadedPlan &loaded_;
  const fbs::Plan &plan_;
  Timeline timeline_;
};
} // namespace

Json bowline::describePlan(const LoadedPlan &plan, bool memory) { return Inspector(plan).describe(memory); }

absl::StatusOr<Json> bowline::describeKernels(const LoadedPlan &plan) { return Inspector(plan).describeKernels(); }

static void appendPorts(std::string &out, const char *kind, const Json &ports) {
  for (const Json &port : ports) {
    absl::StrAppendFormat(&out, "    %-6s %-20s %-24s", kind, text(port["name"]), text(port["type"]));
    if (port["slots"] > 1)
      absl::StrAppendFormat(&out, " x %s slots", text(port["slots"]));
    if (port["limit"] > 0)
      absl::StrAppendFormat(&out, " %s %s", port["type"].get<std::string>().rfind("f32", 0) == 0 ? "up to" : "below",
                            text(port["limit"]));
    out += "\n";
  }
}

static void appendMemory(std::string &out, const Json &memory) {
  absl::StrAppendFormat(&out, "    peak %s bytes (%s always live), at %s\n%s", text(memory["peak_bytes"]),
                        text(memory["always_live_bytes"]), text(memory["peak_at"]), text(memory["plot"]));
  out += "    largest tensors at the peak:\n";
  for (const Json &tensor : memory["largest_at_peak"])
    absl::StrAppendFormat(&out, "    %14s  %-10s %-20s %-28s %s\n", text(tensor["bytes"]), text(tensor["kind"]),
                          text(tensor["type"]), text(tensor["name"]), text(tensor["source"]));
}

static std::string describeValidRows(const Json &rows) {
  return absl::StrCat("leaves out rows of arguments ", text(rows["arguments"]), " behind the last element of argument ",
                      text(rows["count"]));
}

std::string bowline::layOutKernels(const Json &kernels) {
  std::string out;
  for (const Json &kernel : kernels) {
    absl::StrAppendFormat(&out, "%s (%s): %s launches, %g flops and %g bytes each\n", text(kernel["name"]),
                          text(kernel["origin"]), text(kernel["launches"]), kernel["flops"].get<double>(),
                          kernel["bytes"].get<double>());
    if (kernel.contains("epilogue"))
      absl::StrAppend(&out, "  with the epilogue ", text(kernel["epilogue"]), " of a library\n");
    if (kernel.contains("grid"))
      absl::StrAppend(&out, "  blocks ", text(kernel["grid"]["blocks"]), " of threads ",
                      text(kernel["grid"]["threads"]), ", code: ", text(kernel["code"]), "\n");
    else if (kernel.contains("extent"))
      absl::StrAppend(&out, "  on ranges of ", text(kernel["extent"]), ", code: ", text(kernel["code"]), "\n");
    if (kernel.contains("registers"))
      absl::StrAppend(&out, "  ", text(kernel["registers"]), " registers and ", text(kernel["stack_bytes"]),
                      " bytes of stack a thread, ", text(kernel["shared_bytes"]), " bytes of shared memory a block\n");
    for (const Json &argument : kernel["arguments"])
      absl::StrAppend(&out, "  ", text(argument), "\n");
    if (kernel.contains("valid_rows"))
      absl::StrAppend(&out, "  ", describeValidRows(kernel["valid_rows"]), "\n");
  }
  return out;
}

std::string bowline::layOutPlan(const Json &plan, bool memory) {
  std::string out;
  for (const auto &[key, value] : plan["header"].items())
    absl::StrAppendFormat(&out, "%-14s %s\n", key, text(value));
  out += "\nentries\n";
  for (const Json &entry : plan["entries"]) {
    const std::string role = text(entry["role"]);
    absl::StrAppendFormat(&out, "  %s%s (%s%s): program %s, %s commands\n", text(entry["name"]),
                          role.empty() ? "" : " of role '" + role + "'", text(entry["kind"]),
                          entry["bucket"] > 0 ? " " + text(entry["bucket"]) : "", text(entry["program"]),
                          text(entry["commands"]));
    appendPorts(out, "input", entry["inputs"]);
    appendPorts(out, "output", entry["outputs"]);
    if (memory)
      appendMemory(out, entry["memory"]);
  }
  if (memory)
    return out;
  out += "\nprograms\n";
  for (const Json &program : plan["programs"]) {
    absl::StrAppendFormat(&out, "  %s: streams %s\n", text(program["name"]), text(program["streams"]));
    for (const Json &segment : program["segments"])
      absl::StrAppendFormat(&out, "    segment %-20s %s commands, called %s times\n", text(segment["name"]),
                            text(segment["commands"]), text(segment["calls"]));
  }
  out += "\nkernels (launches over all entries; flops and least bytes of one launch)\n";
  for (const Json &kernel : plan["kernels"])
    absl::StrAppendFormat(&out, "  %-40s %-10s %8s launches %12g flops %12g bytes%s\n", text(kernel["name"]),
                          text(kernel["origin"]), text(kernel["launches"]), kernel["flops"].get<double>(),
                          kernel["bytes"].get<double>(),
                          kernel.contains("valid_rows") ? ", " + describeValidRows(kernel["valid_rows"]) : "");
  out += "\nbuffers\n";
  for (const Json &buffer : plan["buffers"]) {
    absl::StrAppendFormat(&out, "  %14s +%-12s %-10s %-24s %s", text(buffer["offset"]), text(buffer["bytes"]),
                          text(buffer["kind"]), text(buffer["type"]), text(buffer["name"]));
    if (buffer["slots"] > 1)
      absl::StrAppendFormat(&out, " x %s slots", text(buffer["slots"]));
    if (buffer.contains("view"))
      absl::StrAppend(&out, " view of buffer ", text(buffer["view"]["of"]));
    if (buffer["space"] != fbs::EnumNameMemorySpace(fbs::MemorySpace::Device))
      absl::StrAppend(&out, " in ", text(buffer["space"]));
    out += "\n";
  }
  return out;
}
