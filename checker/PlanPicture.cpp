//===- PlanPicture.cpp - a picture of time and memory of an entry ---------===//

#include "checker/PlanPicture.h"

#include "checker/MemoryOverTime.h"
#include "checker/PictureBoxes.h"
#include "checker/StepActivities.h"
#include "checker/SvgText.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

namespace bowline {
namespace {

// Pixels.
constexpr double kWidth = 1200, kMargin = 20;
constexpr double kLeft = 164, kRight = 1064; // of the time from 0 to the end
constexpr double kStreamLabels = kLeft - 8, kFigures = kRight + 12;
constexpr double kStreamHeight = 11, kRoleGap = 7, kLabelDistance = 11.5;
constexpr double kMarkRoom = 24; // to the right of a mark of the axis, for the heading "Idle"
constexpr double kPanelGap = 30;
constexpr double kNarrow = 3; // boxes without a border, whose titles are short: a picture may have thousands

constexpr absl::string_view kStyles =
    "text { font-size: 11px; fill: #24292f }\n"
    ".title { font-size: 18px; font-weight: bold }\n"
    ".heading { font-size: 13px; font-weight: bold }\n"
    ".role { font-weight: bold }\n"
    ".soft { fill: #57606a }\n"
    ".stream { font-size: 9.5px; fill: #57606a; text-anchor: end }\n"
    ".mark { font-size: 10px; fill: #57606a; text-anchor: middle }\n"
    ".right { text-anchor: end; fill: #57606a }\n"
    ".middle { text-anchor: middle; fill: #57606a }\n"
    ".number { font-size: 10px; text-anchor: middle; pointer-events: none }\n"
    ".idle { fill: #eef0f3 }\n"
    ".grid { stroke: #d5dae0; stroke-width: 1 }\n"
    ".command { fill: #ffffff; fill-opacity: 0; stroke: #ffffff; stroke-opacity: .45; stroke-width: .5 }\n"
    ".persistent { fill: #c2cbd6 }\n"
    ".temporary { fill: #7fb8b5 }\n"
    ".arena { stroke: #24292f; stroke-width: 1; stroke-dasharray: 5 3 }\n"
    ".peak { fill: #c62828 }\n"
    ".box { stroke: #ffffff; stroke-width: .6 }\n"
    ".a0 { fill: #82b1e8 }\n"
    ".a1 { fill: #f29e6d }\n"
    ".a2 { fill: #f29e6d }\n"
    ".a3 { fill: #f5cf6b }\n"
    ".a4 { fill: #8ccf8c }\n"
    ".a5 { fill: #a98bd0 }\n"
    ".a6 { fill: #d996b8 }\n"
    ".a7 { fill: #a3adb8 }\n"
    ".later { fill-opacity: .55 }\n";

constexpr std::array<const char *, kActivities> kNames = {
    "forward", "backward", "backward (input)", "backward (weight)", "update", "communication", "copy", "other"};

/// The colour of an activity, as a class of kStyles.
std::string classOf(Activity activity) { return absl::StrCat("a", static_cast<size_t>(activity)); }

bool isOfMicrobatch(Activity activity) { return activity <= Activity::BackwardWeight; }

/// A name of the plan, which may hold any bytes.
std::string printable(const flatbuffers::String *text) { return absl::Utf8SafeCEscape(TextOf(text)); }

std::string percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

std::string countOf(uint64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

/// A rough width of a text, of letters as wide as those of Helvetica are on average.
double widthOf(absl::string_view text, double size) { return 0.54 * size * static_cast<double>(text.size()); }

class PlanPicture {
public:
  PlanPicture(const Timeline &timeline, std::vector<uint32_t> entries, const StepActivities &activities,
              std::vector<MemoryOverTime> memory)
      : timeline_(timeline), plan_(timeline.plan()), entries_(std::move(entries)), activities_(activities),
        memory_(std::move(memory)), scale_{kLeft, kRight - kLeft, activities.seconds()},
        rowHeight_(roles() <= 4   ? 24
                   : roles() <= 8 ? 20
                                  : 16),
        panelHeight_(roles() == 1   ? 190
                     : roles() <= 4 ? 84
                     : roles() <= 8 ? 58
                                    : 44),
        svg_(kWidth, layOut(), title(), kStyles) {
    findChunks();
  }

  std::string draw() && {
    drawHead();
    drawGrid();
    double y = timelineTop_;
    for (const ActivityRow &row : activities_.rows())
      y = drawRow(row, y);
    drawMemoryHead();
    for (uint32_t role = 0; role < roles(); ++role)
      drawMemory(role, panelTop(role));
    svg_.text(
        "soft", kMargin, height_ - 14,
        "Times come from the compiler's cost model. Live bytes are drawn at the time at which a command is issued. "
        "A rank is idle while its first stream runs no command.");
    return std::move(svg_).finish();
  }

private:
  uint32_t roles() const { return static_cast<uint32_t>(entries_.size()); }
  const fbs::Entry &entryOf(uint32_t role) const { return *plan_.entries()->Get(entries_[role]); }
  const fbs::Program &programOf(uint32_t role) const { return timeline_.programOf(entries_[role]); }

  uint64_t countRanks() const {
    uint64_t ranks = 1;
    for (uint32_t i = 0; i < SizeOf(plan_.mesh()); ++i)
      ranks *= plan_.mesh()->Get(i)->size();
    return ranks;
  }

  std::string roleName(uint32_t role) const {
    if (SizeOf(plan_.roles()) > 1)
      return printable(plan_.roles()->Get(role)->name());
    return countRanks() > 1 ? "each rank" : "one rank";
  }

  std::string title() const { return absl::StrCat(printable(plan_.name()), ": ", printable(entryOf(0).name())); }

  /// Sets the vertical places, and returns the height.
  double layOut() {
    timelineTop_ = 122;
    double y = timelineTop_;
    for (const ActivityRow &row : activities_.rows())
      y += row.stream == 0 ? (row.role > 0 ? kRoleGap : 0) + rowHeight_ : kStreamHeight;
    memoryTop_ = y + 36;
    height_ = panelTop(roles()) + 18;
    return height_;
  }

  double panelTop(uint32_t role) const { return memoryTop_ + kPanelGap + role * (panelHeight_ + kPanelGap); }

  /// The places of each role's stages among the stages that it holds: a role of an interleaved schedule has several.
  void findChunks() {
    for (uint32_t role = 0; role < roles(); ++role) {
      std::set<uint32_t> stages;
      for (const ActivityRow &row : activities_.rows())
        for (const ActivityBlock &block : row.blocks)
          if (row.role == role && isOfMicrobatch(block.activity))
            if (const auto stage = stageOf(segmentOf(block)))
              stages.insert(*stage);
      firstStage_.push_back(stages.empty() ? 0 : *stages.begin());
      hasChunks_ |= stages.size() > 1;
      const fbs::Program &program = programOf(role);
      for (uint32_t i = 0; i < SizeOf(program.timeline()); ++i)
        hasMicrobatches_ |= program.timeline()->Get(i)->slot() > 0;
    }
  }

  const fbs::SegmentCall &callOf(CommandSite site) const {
    return *timeline_.programOf(site.entry).timeline()->Get(site.call);
  }
  const fbs::Segment &segmentOf(const ActivityBlock &block) const {
    const CommandSite site = block.commands.front().site;
    return *timeline_.programOf(site.entry).segments()->Get(callOf(site).segment());
  }

  void drawHead() {
    svg_.text("title", kMargin, 32, shortened(title(), 80));
    double idle = 0, exposed = 0;
    for (uint32_t role = 0; role < roles(); ++role) {
      idle += activities_.idleShare(role) / roles();
      exposed += activities_.exposedShare(role) / roles();
    }
    const bool isTraining = entryOf(0).kind() == fbs::EntryKind::TrainStep;
    svg_.text(
        "soft", kMargin, 54,
        absl::StrCat(isTraining ? "A step" : "A run", " takes ", describeSeconds(activities_.seconds()), ", ",
                     percent(idle), " of it idle",
                     activities_.communicates() ? absl::StrCat(", ", percent(exposed), " exposed communication") : "",
                     roles() > 1 ? absl::StrCat(", on average over ", roles(), " roles") : ""));
    const fbs::Target &target = *plan_.target();
    svg_.text("right", kWidth - kMargin, 32,
              shortened(absl::StrCat(printable(target.device()), " ", printable(target.cpu()), ", ",
                                     countOf(target.threads(), "thread"), " per rank"),
                        70));
    svg_.text("right", kWidth - kMargin, 54, shortened(DescribeMesh(plan_), 70));
    drawLegend();
  }

  void drawLegend() {
    std::array<bool, kActivities> isUsed{};
    for (const ActivityRow &row : activities_.rows())
      for (const ActivityBlock &block : row.blocks)
        isUsed[static_cast<size_t>(block.activity)] = true;
    double x = kMargin;
    const auto swatch = [&](const std::string &style, absl::string_view name) {
      svg_.rectangle(style, x, 69, 12, 12);
      svg_.text("", x + 17, 79, name);
      x += 17 + widthOf(name, 11) + 18;
    };
    for (size_t i = 0; i < kActivities; ++i)
      if (isUsed[i])
        swatch(classOf(static_cast<Activity>(i)), kNames[i]);
    swatch("idle", "idle");
    std::string note = hasMicrobatches_ ? "numbers: microbatches" : "";
    if (hasChunks_)
      absl::StrAppend(&note, note.empty() ? "" : "; ", "paler: later chunks of a rank's layers");
    if (!note.empty())
      svg_.text("soft", x, 79, note);
  }

  void drawGrid() {
    svg_.text("heading", kMargin, timelineTop_ - 12, "Timeline");
    svg_.text("heading", kFigures, timelineTop_ - 12, "Idle");
    const double distance = distanceOfMarks(scale_.seconds, 10);
    const double bottom = panelTop(roles()) - kPanelGap;
    for (unsigned i = 0; distance > 0 && i * distance <= scale_.seconds * (1 + 1e-9); ++i) {
      const double x = scale_.at(std::min(i * distance, scale_.seconds));
      svg_.line("grid", x, timelineTop_ - 6, x, bottom);
      if (x < kRight - kMarkRoom)
        svg_.text("mark", x, timelineTop_ - 12, describeSeconds(i * distance));
    }
  }

  double drawRow(const ActivityRow &row, double y) {
    const fbs::Program &program = programOf(row.role);
    const bool isFirst = row.stream == 0;
    const double height = isFirst ? rowHeight_ : kStreamHeight;
    if (isFirst && row.role > 0)
      y += kRoleGap;
    svg_.beginGroup("row", roleName(row.role));
    const double middle = y + height / 2;
    if (isFirst) {
      svg_.text("role", kMargin, middle + 4, shortened(roleName(row.role), 10), roleName(row.role));
      svg_.text("", kFigures, middle + 4, percent(activities_.idleShare(row.role)));
    }
    const std::string stream = printable(program.streams()->Get(row.stream));
    svg_.text("stream", kStreamLabels, middle + 3.2, shortened(stream, 15), stream);
    svg_.rectangle("idle", kLeft, y, scale_.width, height - 1);
    if (isFirst && timeline_.commandCount(entries_[row.role]) == 0)
      svg_.text("middle", (kLeft + kRight) / 2, middle + 4, "no commands");
    std::vector<TimeRange> intervals;
    for (const ActivityBlock &block : row.blocks)
      intervals.push_back({block.begin, block.end});
    for (const PictureBox &box : boxesOf(intervals, scale_, 1))
      drawBlocks(absl::MakeConstSpan(row.blocks).subspan(box.first, box.last - box.first), box, y, height - 1);
    svg_.endGroup();
    return y + height;
  }

  void drawBlocks(absl::Span<const ActivityBlock> blocks, const PictureBox &box, double y, double height) {
    const ActivityBlock &block = blocks.front();
    std::string style = classOf(mainActivity(blocks));
    if (box.width > kNarrow)
      absl::StrAppend(&style, " box");
    if (const auto stage = stageOf(segmentOf(block));
        hasChunks_ && isOfMicrobatch(block.activity) && stage && *stage != firstStage_[roleOf(block)])
      absl::StrAppend(&style, " later");
    svg_.rectangle(style, box.x, y, std::max(box.width, 0.4), height, describeBlocks(blocks));
    if (blocks.size() == 1)
      drawCommands(block, box, y, height);
    const std::string number = absl::StrCat(callOf(block.commands.front().site).slot());
    if (blocks.size() == 1 && hasMicrobatches_ && isOfMicrobatch(block.activity) && height > 12 &&
        box.width > widthOf(number, 10) + 3)
      svg_.text("number", box.x + box.width / 2, y + height / 2 + 3.5, number);
  }

  uint32_t roleOf(const ActivityBlock &block) const {
    return timeline_.programOf(block.commands.front().site.entry).role();
  }

  /// The activity that takes most of the time.
  static Activity mainActivity(absl::Span<const ActivityBlock> blocks) {
    std::array<double, kActivities> seconds{};
    for (const ActivityBlock &block : blocks)
      seconds[static_cast<size_t>(block.activity)] += block.end - block.begin;
    if (*std::max_element(seconds.begin(), seconds.end()) == 0)
      return blocks.front().activity;
    return static_cast<Activity>(std::max_element(seconds.begin(), seconds.end()) - seconds.begin());
  }

  static std::string describeTime(double begin, double end) {
    return absl::StrCat(describeSeconds(end - begin), " from ", describeSeconds(begin));
  }

  std::string describeBlocks(absl::Span<const ActivityBlock> blocks) const {
    const ActivityBlock &block = blocks.front();
    if (blocks.size() > 1)
      return absl::StrCat("mostly ", kNames[static_cast<size_t>(mainActivity(blocks))], ", ",
                          describeTime(block.begin, blocks.back().end));
    std::string text = kNames[static_cast<size_t>(block.activity)];
    if (hasMicrobatches_ && isOfMicrobatch(block.activity))
      absl::StrAppend(&text, " of microbatch ", callOf(block.commands.front().site).slot());
    absl::StrAppend(&text, ", ", describeTime(block.begin, block.end));
    if (scale_.at(block.end) - scale_.at(block.begin) < kNarrow)
      return text;
    if (block.commands.size() == 1)
      return absl::StrCat(text, "\n", describeCommand(block.commands.front()));
    return absl::StrCat(text, "\n", countOf(block.commands.size(), "command"), " of segment ",
                        printable(segmentOf(block).name()));
  }

  std::string describeCommand(const PredictedCommand &command) const {
    const fbs::Command &body = timeline_.commandAt(command.site);
    const std::string from = printable(plan_.sources()->Get(body.source())->location());
    return shortened(absl::StrCat(DescribeCommand(plan_, body), from.empty() ? "" : ", ", from), 200);
  }

  /// The commands of a block that are wide enough, or groups of those that are not; more rows leave less for each.
  void drawCommands(const ActivityBlock &block, const PictureBox &box, double y, double height) {
    const double least = std::max(4.0, 2.0 * static_cast<double>(activities_.rows().size()));
    if (block.commands.size() == 1 || box.width < 2 * least)
      return;
    std::vector<TimeRange> intervals;
    for (const PredictedCommand &command : block.commands)
      intervals.push_back({command.begin, command.end});
    for (const PictureBox &part : boxesOf(intervals, scale_, least)) {
      const PredictedCommand &first = block.commands[part.first], &last = block.commands[part.last - 1];
      const std::string time = describeTime(first.begin, last.end);
      const std::string text = part.last - part.first == 1 ? absl::StrCat(describeCommand(first), "\n", time)
                                                           : absl::StrCat(countOf(part.last - part.first, "command"),
                                                                          " from ", describeCommand(first), "\n", time);
      svg_.rectangle("command", part.x, y, part.width, height, text);
    }
  }

  void drawMemoryHead() {
    svg_.text("heading", kMargin, memoryTop_, "Memory");
    double x = kLeft;
    for (const auto &[style, name] :
         {std::pair("persistent", "persistent, and outputs"), std::pair("temporary", "temporaries")}) {
      svg_.rectangle(style, x, memoryTop_ - 10, 12, 12);
      svg_.text("", x + 17, memoryTop_, name);
      x += 17 + widthOf(name, 11) + 18;
    }
    svg_.line("arena", x, memoryTop_ - 4, x + 20, memoryTop_ - 4);
    svg_.text("", x + 25, memoryTop_, "arena");
    svg_.circle("peak", x + 25 + widthOf("arena", 11) + 22, memoryTop_ - 4, 3.5);
    svg_.text("", x + 25 + widthOf("arena", 11) + 30, memoryTop_, "peak");
  }

  /// The largest number of bytes that a panel has to show; all panels have one scale.
  double mostBytes() const {
    uint64_t most = 1;
    for (const MemoryOverTime &each : memory_)
      most = std::max({most, each.arenaBytes, each.memory.peakBytes()});
    return 1.04 * static_cast<double>(most);
  }

  void drawMemory(uint32_t role, double top) {
    const MemoryOverTime &each = memory_[role];
    const MemoryTimeline &memory = each.memory;
    const double bottom = top + panelHeight_;
    const double most = mostBytes();
    const auto yOf = [&](uint64_t bytes) { return bottom - static_cast<double>(bytes) / most * panelHeight_; };
    svg_.beginGroup("memory", roleName(role));
    svg_.text("role", kMargin, top - 4, shortened(roleName(role), 20), roleName(role));
    svg_.text("soft", kLeft, top - 4, shortened(describePeak(memory), 150), describePeak(memory));
    const std::string tensors = describeTensors(memory);
    drawTemporaries(each, bottom, yOf, tensors);
    svg_.rectangle("persistent", kLeft, yOf(memory.persistentBytes), scale_.width, bottom - yOf(memory.persistentBytes),
                   absl::StrCat(memory.persistentBytes, " bytes of persistent tensors and outputs"));
    svg_.line("grid", kLeft, bottom, kRight, bottom);
    svg_.line("arena", kLeft, yOf(each.arenaBytes), kRight, yOf(each.arenaBytes));
    if (!memory.liveBytes.empty())
      svg_.circle("peak", scale_.at(each.issued[memory.peakCommand]), yOf(memory.peakBytes()), 3.5,
                  absl::StrCat(describePeak(memory), "\n", tensors));
    drawLevels(each, bottom, yOf);
    svg_.endGroup();
  }

  template <typename Scale>
  void drawTemporaries(const MemoryOverTime &each, double bottom, const Scale &yOf, const std::string &title) {
    const std::vector<uint64_t> columns = mostBytesByColumn(each, scale_.seconds, static_cast<size_t>(kRight - kLeft));
    std::string path = absl::StrCat("M", pixels(kLeft), " ", pixels(bottom));
    for (size_t i = 0; i < columns.size(); ++i)
      if (i == 0 || pixels(yOf(columns[i])) != pixels(yOf(columns[i - 1])))
        absl::StrAppend(&path, "H", pixels(kLeft + static_cast<double>(i)), "V", pixels(yOf(columns[i])));
    if (!columns.empty())
      svg_.path("temporary", absl::StrCat(path, "H", pixels(kRight), "V", pixels(bottom), "Z"), title);
  }

  /// The sizes beside the levels that they belong to, apart from each other.
  template <typename Scale> void drawLevels(const MemoryOverTime &each, double bottom, const Scale &yOf) {
    const std::array<std::pair<const char *, uint64_t>, 3> levels = {
        {{"arena", each.arenaBytes}, {"peak", each.memory.peakBytes()}, {"persistent", each.memory.persistentBytes}}};
    std::array<double, 3> places{};
    for (size_t i = 0; i < levels.size(); ++i) {
      places[i] = yOf(levels[i].second) + 4;
      if (i > 0)
        places[i] = std::max(places[i], places[i - 1] + kLabelDistance);
    }
    double lowest = bottom + 4;
    for (size_t i = levels.size(); i > 0; --i, lowest -= kLabelDistance)
      places[i - 1] = std::min(places[i - 1], lowest);
    for (size_t i = 0; i < levels.size(); ++i)
      svg_.text("", kFigures, places[i], absl::StrCat(levels[i].first, " ", describeBytes(levels[i].second)));
  }

  std::string describePeak(const MemoryTimeline &memory) const {
    std::string text = absl::StrCat("peak ", describeBytes(memory.peakBytes()), " (", memory.peakBytes(), " bytes)");
    if (memory.liveBytes.empty())
      return text;
    absl::StrAppend(&text, " in ", describeCommand({memory.peakSite, 0, 0}));
    if (hasMicrobatches_)
      absl::StrAppend(&text, ", microbatch ", callOf(memory.peakSite).slot());
    return text;
  }

  std::string describeTensors(const MemoryTimeline &memory) const {
    constexpr size_t kMost = 5;
    std::string text = "largest temporaries at the peak:";
    for (size_t i = 0; i < std::min(kMost, memory.atPeak.size()); ++i) {
      const fbs::Buffer &buffer = *plan_.buffers()->Get(memory.atPeak[i].buffer);
      absl::StrAppend(&text, "\n", describeBytes(memory.atPeak[i].bytes), " ", shortened(printable(buffer.name()), 80),
                      " ", DescribeType(buffer.dtype(), buffer.shape()));
    }
    return memory.atPeak.empty() ? "no temporaries at the peak" : text;
  }

  const Timeline &timeline_;
  const fbs::Plan &plan_;
  const std::vector<uint32_t> entries_; ///< by role
  const StepActivities &activities_;
  const std::vector<MemoryOverTime> memory_; ///< by role
  const TimeScale scale_;
  const double rowHeight_, panelHeight_;
  double timelineTop_ = 0, memoryTop_ = 0, height_ = 0;
  std::vector<uint32_t> firstStage_; ///< by role
  bool hasChunks_ = false, hasMicrobatches_ = false;
  SvgText svg_;
};

} // namespace

absl::StatusOr<std::string> drawPlan(const Timeline &timeline, absl::string_view entry,
                                     const targets::CostModel &model) {
  BOWLINE_ASSIGN_OR_RETURN(std::vector<uint32_t> entries, entriesOf(timeline, entry));
  BOWLINE_ASSIGN_OR_RETURN(const auto predicted, predictTimeline(timeline, entry, model));
  BOWLINE_ASSIGN_OR_RETURN(const StepActivities activities, StepActivities::of(timeline, entries, predicted));
  std::vector<MemoryOverTime> memory;
  for (uint32_t role = 0; role < entries.size(); ++role)
    memory.push_back(computeMemoryOverTime(timeline, entries[role], predicted[role]));
  return PlanPicture(timeline, std::move(entries), activities, std::move(memory)).draw();
}

} // namespace bowline
