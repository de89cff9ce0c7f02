// Pictures of plans: their scales, texts and boxes, and the facts that they show.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "checker/MemoryOverTime.h"
#include "checker/PictureBoxes.h"
#include "checker/PlanPicture.h"
#include "checker/StepActivities.h"
#include "checker/SvgText.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SvgText, EscapesXml) {
  EXPECT_EQ(escapeXml("a<b & \"c\">d'\n"), "a&lt;b &amp; &quot;c&quot;&gt;d'\n");
  EXPECT_EQ(escapeXml("gr\xC3\xB6\xC3\x9F"
                      "e \xE2\x82\xAC \xF0\x9F\xAA\xA2"),
            "gr\xC3\xB6\xC3\x9F"
            "e \xE2\x82\xAC \xF0\x9F\xAA\xA2");
  const std::string bad = "\xEF\xBF\xBD";
  // No UTF-8: a lone byte, a cut character, an overlong '/', a surrogate, a character behind the last one.
  EXPECT_EQ(escapeXml("\xFF"), bad);
  EXPECT_EQ(escapeXml("\xE2\x82"), bad + bad);
  EXPECT_EQ(escapeXml("\xC0\xAF"), bad + bad);
  EXPECT_EQ(escapeXml("\xE0\x80\xAF"), bad + bad + bad);
  EXPECT_EQ(escapeXml("\xED\xA0\x80"), bad + bad + bad);
  EXPECT_EQ(escapeXml("\xF4\x90\x80\x80"), bad + bad + bad + bad);
  // Characters that XML 1.0 forbids.
  EXPECT_EQ(escapeXml(std::string("a\0b\x01", 4)), "a" + bad + "b" + bad);
  EXPECT_EQ(escapeXml("\xEF\xBF\xBF"), bad + bad + bad);
}

TEST(SvgText, ShortensByCharacters) {
  EXPECT_EQ(shortened("abcd", 4), "abcd");
  EXPECT_EQ(shortened("abcde", 4), "abc\xE2\x80\xA6");
  EXPECT_EQ(shortened("\xC3\xB6\xC3\xB6\xC3\xB6", 3), "\xC3\xB6\xC3\xB6\xC3\xB6");
  EXPECT_EQ(shortened("\xC3\xB6\xC3\xB6\xC3\xB6", 2), "\xC3\xB6\xE2\x80\xA6");
  EXPECT_EQ(shortened("", 1), "");
  EXPECT_EQ(shortened("a", 0), "");
}

TEST(SvgText, WritesQuantitiesForPeople) {
  EXPECT_EQ(pixels(12), "12");
  EXPECT_EQ(pixels(12.46), "12.5");
  EXPECT_EQ(pixels(-0.01), "0");
  EXPECT_EQ(describeBytes(0), "0 B");
  EXPECT_EQ(describeBytes(1023), "1023 B");
  EXPECT_EQ(describeBytes(1536), "1.50 KiB");
  EXPECT_EQ(describeBytes(1048575), "1.00 MiB");
  EXPECT_EQ(describeBytes(uint64_t{29} << 30), "29.00 GiB");
  EXPECT_EQ(describeBytes(std::numeric_limits<uint64_t>::max()), "16.00 EiB");
  EXPECT_EQ(describeSeconds(0), "0 s");
  EXPECT_EQ(describeSeconds(2.5e-8), "25 ns");
  EXPECT_EQ(describeSeconds(1.234e-4), "123 \xC2\xB5s");
  EXPECT_EQ(describeSeconds(9.996e-4), "1 ms");
  EXPECT_EQ(describeSeconds(0.0125), "12.5 ms");
  EXPECT_EQ(describeSeconds(1.5), "1.5 s");
  EXPECT_EQ(describeSeconds(1e300), "1e+300 s");
}

TEST(SvgText, MarksAreRoundNumbers) {
  EXPECT_DOUBLE_EQ(distanceOfMarks(0.97, 10), 0.1);
  EXPECT_DOUBLE_EQ(distanceOfMarks(1.01, 10), 0.2);
  EXPECT_DOUBLE_EQ(distanceOfMarks(3.3e-4, 10), 5e-5);
  EXPECT_DOUBLE_EQ(distanceOfMarks(90, 10), 10);
  EXPECT_EQ(distanceOfMarks(0, 10), 0);
  EXPECT_EQ(distanceOfMarks(std::nan(""), 10), 0);
  for (int i = -60; i < 60; ++i) {
    const double length = std::pow(1.37, i);
    EXPECT_LE(length / distanceOfMarks(length, 7), 7) << length;
  }
}

TEST(SvgText, EscapesTextsAndTitles) {
  SvgText svg(10, 20, "<t>", ".a { fill: red }\n");
  svg.rectangle("a", 1, 2, 3, 4, "x & y");
  svg.text("a", 1, 2, "<b>");
  const std::string text = std::move(svg).finish();
  EXPECT_THAT(text, HasSubstr("<title>&lt;t&gt;</title>"));
  EXPECT_THAT(
      text, HasSubstr("<rect class=\"a\" x=\"1\" y=\"2\" width=\"3\" height=\"4\"><title>x &amp; y</title></rect>\n"));
  EXPECT_THAT(text, HasSubstr("<text class=\"a\" x=\"1\" y=\"2\">&lt;b&gt;</text>\n</svg>\n"));
}

TEST(PictureBoxes, WideIntervalsStayApart) {
  const TimeScale scale{100, 10, 10};  // a pixel for each second
  const std::vector<TimeRange> intervals = {{0, 2}, {2, 3}, {5, 10}};
  const auto boxes = boxesOf(intervals, scale, 1);
  ASSERT_EQ(boxes.size(), 3u);
  EXPECT_EQ(boxes[1].first, 1u);
  EXPECT_EQ(boxes[1].last, 2u);
  EXPECT_DOUBLE_EQ(boxes[1].x, 102);
  EXPECT_DOUBLE_EQ(boxes[1].width, 1);
}

TEST(PictureBoxes, NarrowIntervalsShareABox) {
  const TimeScale scale{0, 10, 10};
  // Two narrow ones in one pixel, a wide one, one narrow one, and one that begins a pixel later.
  const std::vector<TimeRange> intervals = {{0, 0.25}, {0.5, 0.75}, {0.75, 4}, {4, 4.5}, {5, 5.5}};
  const auto boxes = boxesOf(intervals, scale, 1);
  ASSERT_EQ(boxes.size(), 4u);
  EXPECT_EQ(boxes[0].last, 2u);
  EXPECT_DOUBLE_EQ(boxes[0].width, 0.75);
  EXPECT_EQ(boxes[1].first, 2u);
  EXPECT_EQ(boxes[2].first, 3u);
  EXPECT_EQ(boxes[3].first, 4u);
}

TEST(PictureBoxes, AreFewHoweverManyIntervals) {
  const size_t count = 100001;
  const TimeScale scale{164, 900, count * 1.0};
  std::vector<TimeRange> intervals;
  for (size_t i = 0; i < count; ++i) intervals.push_back({i * 1.0, i + 0.5});
  const auto boxes = boxesOf(intervals, scale, 1);
  EXPECT_LE(boxes.size(), 901u);
  EXPECT_GE(boxes.size(), 850u);
  // Each interval is in one box.
  size_t next = 0;
  for (const PictureBox& box : boxes) {
    EXPECT_EQ(box.first, next);
    next = box.last;
  }
  EXPECT_EQ(next, count);
  EXPECT_TRUE(boxesOf({}, scale, 1).empty());
  EXPECT_EQ(boxesOf(intervals, {164, 900, 0}, 1).size(), 1u);
}

TEST(MemoryOverTime, ColumnsShowTheirMost) {
  MemoryOverTime memory;
  memory.memory.liveBytes = {1, 9, 2, 5};
  memory.issued = {0, 1, 1, 3};
  EXPECT_THAT(mostBytesByColumn(memory, 4, 4), ElementsAre(1, 9, 2, 5));
  EXPECT_THAT(mostBytesByColumn(memory, 4, 2), ElementsAre(9, 5));
  EXPECT_THAT(mostBytesByColumn(memory, 0, 2), ElementsAre(9, 5));
  EXPECT_THAT(mostBytesByColumn(MemoryOverTime(), 4, 2), ElementsAre());
}

// A plan, and its properties without a picture.
struct Case {
  explicit Case(fbs::PlanT plan) : bytes(testing::BytesOf(plan)) {}

  const std::vector<uint8_t> bytes;
  const Timeline timeline{testing::PlanIn(bytes)};
  const targets::CostModel model = *costModelOf(testing::PlanIn(bytes));
};

TEST(StepActivities, IdleIsWhenTheFirstStreamRunsNothing) {
  const Case pipeline(testing::MakePipeline(3, 2, 5));
  const std::string entry = testing::PlanIn(pipeline.bytes).entries()->Get(0)->name()->str();
  const auto entries = *entriesOf(pipeline.timeline, entry);
  const auto predicted = *predictTimeline(pipeline.timeline, entry, pipeline.model);
  const auto activities = StepActivities::of(pipeline.timeline, entries, predicted);
  ASSERT_TRUE(activities.ok()) << activities.status();
  size_t rows = 0;
  double end = 0;
  for (uint32_t role = 0; role < 3; ++role) {
    rows += pipeline.timeline.programOf(entries[role]).streams()->size();
    for (const PredictedCommand& command : predicted[role]) end = std::max(end, command.end);
  }
  EXPECT_EQ(activities->rows().size(), rows);
  EXPECT_EQ(activities->seconds(), end);
  for (uint32_t role = 0; role < 3; ++role) {
    double idle = end;
    for (const PredictedCommand& command : predicted[role]) {
      const fbs::Command& body = pipeline.timeline.commandAt(command.site);
      if (body.stream() == 0 && body.body_type() != fbs::CommandBody::Wait) idle -= command.end - command.begin;
    }
    EXPECT_NEAR(activities->idleShare(role), idle / end, 1e-12) << role;
    EXPECT_GT(activities->idleShare(role), 0) << role;
  }
}

TEST(StepActivities, CommunicationIsExposedWhereNothingComputes) {
  for (const Case& plan : {Case(testing::MakePipeline(3, 2, 5)), Case(testing::MakeShardedLoop(2, 3, 4))}) {
    const std::string entry = testing::PlanIn(plan.bytes).entries()->Get(0)->name()->str();
    const auto entries = *entriesOf(plan.timeline, entry);
    const auto predicted = *predictTimeline(plan.timeline, entry, plan.model);
    const auto activities = *StepActivities::of(plan.timeline, entries, predicted);
    EXPECT_TRUE(activities.communicates());
    for (uint32_t role = 0; role < predicted.size(); ++role) {
      std::set<double> times;
      for (const PredictedCommand& command : predicted[role]) times.insert({command.begin, command.end});
      double exposed = 0, before = 0;
      for (const double time : times) {
        bool communicates = false, computes = false;
        for (const PredictedCommand& command : predicted[role]) {
          const auto activity = activityOf(plan.timeline, command.site);
          if (!activity || command.begin > before || command.end < time) continue;
          (*activity == Activity::Communication ? communicates : computes) = true;
        }
        if (communicates && !computes) exposed += time - before;
        before = time;
      }
      EXPECT_GT(exposed, 0) << role;
      EXPECT_NEAR(activities.exposedShare(role), exposed / activities.seconds(), 1e-12) << role;
    }
  }
}

TEST(StepActivities, BlocksHoldEachCommandOnce) {
  const Case loop(testing::MakeShardedLoop(2, 3, 4));
  const std::string entry = testing::PlanIn(loop.bytes).entries()->Get(0)->name()->str();
  const auto entries = *entriesOf(loop.timeline, entry);
  const auto predicted = *predictTimeline(loop.timeline, entry, loop.model);
  const auto activities = *StepActivities::of(loop.timeline, entries, predicted);
  size_t commands = 0;
  for (const ActivityRow& row : activities.rows()) {
    double end = 0;
    for (const ActivityBlock& block : row.blocks) {
      EXPECT_LE(end, block.begin);
      end = block.end;
      commands += block.commands.size();
      for (const PredictedCommand& command : block.commands) {
        EXPECT_EQ(loop.timeline.commandAt(command.site).stream(), row.stream);
        EXPECT_EQ(*activityOf(loop.timeline, command.site), block.activity);
      }
    }
  }
  EXPECT_EQ(commands, static_cast<size_t>(std::count_if(predicted[0].begin(), predicted[0].end(), [&](const auto& c) {
              return loop.timeline.commandAt(c.site).body_type() != fbs::CommandBody::Wait;
            })));
}

// The activity of the first launch of the fixture's `step`, in a segment and from a source of these names.
Activity ActivityOf(fbs::EntryKind kind, const std::string& segment, const std::string& source) {
  fbs::PlanT plan = testing::MakePlan();
  plan.entries[1]->kind = kind;
  plan.programs[1]->segments[0]->name = segment;
  plan.sources[plan.programs[1]->segments[0]->commands[0]->source]->location = source;
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fbs::Plan::Pack(builder, &plan));
  const Timeline timeline(*fbs::GetPlan(builder.GetBufferPointer()));
  return *activityOf(timeline, {1, 0, 0});
}

TEST(StepActivities, TellsActivitiesApart) {
  const auto train = fbs::EntryKind::TrainStep;
  EXPECT_EQ(ActivityOf(train, "forward.3", "gradient of x"), Activity::Forward);
  EXPECT_EQ(ActivityOf(train, "backward.0", "x"), Activity::Backward);
  EXPECT_EQ(ActivityOf(train, "backward_input.12", "x"), Activity::BackwardInput);
  EXPECT_EQ(ActivityOf(train, "backward_weight.1", "x"), Activity::BackwardWeight);
  EXPECT_EQ(ActivityOf(train, "train_update", "gradient of x"), Activity::Update);
  EXPECT_EQ(ActivityOf(train, "train_begin", "x"), Activity::Other);
  EXPECT_EQ(ActivityOf(train, "train_microbatch", "lm_head"), Activity::Forward);
  EXPECT_EQ(ActivityOf(train, "train_microbatch", "gradient of lm_head"), Activity::Backward);
  EXPECT_EQ(ActivityOf(fbs::EntryKind::EvalStep, "loss", "x"), Activity::Forward);
  EXPECT_EQ(ActivityOf(fbs::EntryKind::Init, "initialize", "x"), Activity::Other);
}

TEST(PlanPicture, IsTheSameEachTimeAndShowsThePeak) {
  const Case plan(testing::MakePlan());
  const auto picture = drawPlan(plan.timeline, "step", plan.model);
  ASSERT_TRUE(picture.ok()) << picture.status();
  EXPECT_EQ(*drawPlan(Timeline(testing::PlanIn(plan.bytes)), "step", plan.model), *picture);
  const uint64_t peak = computeMemoryTimeline(plan.timeline, 1).peakBytes();
  EXPECT_THAT(*picture, HasSubstr(absl::StrCat("(", peak, " bytes) in launch of 'matmul', model.head")));
  EXPECT_THAT(*picture, HasSubstr("workspace"));
  EXPECT_THAT(*picture, Not(HasSubstr("nan")));
}

TEST(PlanPicture, EscapesNames) {
  fbs::PlanT owned = testing::MakePlan();
  owned.name = "<script>&\"\xFF";
  for (auto& buffer : owned.buffers) buffer->name += "<b>";
  for (auto& source : owned.sources) source->location += "<s>\xFF\x01";
  for (auto& program : owned.programs) {
    for (auto& stream : program->streams) stream += "<q>";
  }
  for (auto& segment : owned.programs[1]->segments) segment->name += "<g>";
  const Case plan(owned);
  const auto picture = drawPlan(plan.timeline, "step", plan.model);
  ASSERT_TRUE(picture.ok()) << picture.status();
  for (const char* raw : {"<script>", "<b>", "<s>", "<q>", "<g>", "\xFF", "\x01"}) {
    EXPECT_THAT(*picture, Not(HasSubstr(raw)));
  }
  EXPECT_THAT(*picture, HasSubstr("&lt;script&gt;&amp;\\&quot;\xEF\xBF\xBD: step"));
}

TEST(PlanPicture, OfAnEntryWithoutCommands) {
  fbs::PlanT owned = testing::MakePlan();
  for (auto& segment : owned.programs[1]->segments) segment->commands.clear();
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fbs::Plan::Pack(builder, &owned));
  const Timeline timeline(*fbs::GetPlan(builder.GetBufferPointer()));
  const auto picture = drawPlan(timeline, "step", *costModelOf(timeline.plan()));
  ASSERT_TRUE(picture.ok()) << picture.status();
  EXPECT_THAT(*picture, HasSubstr("no commands"));
  EXPECT_THAT(*picture, HasSubstr("A run takes 0 s"));
  EXPECT_THAT(*picture, Not(HasSubstr("nan")));
}

TEST(PlanPicture, RefusesWhatHasNoPicture) {
  const Case plan(testing::MakePlan());
  const auto unknown = drawPlan(plan.timeline, "stop", plan.model);
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("it has 'init', 'step'"));
  fbs::PlanT owned = testing::MakePlan();
  owned.kernels[testing::kMatmul]->flops = std::numeric_limits<double>::infinity();
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fbs::Plan::Pack(builder, &owned));
  const auto endless = drawPlan(Timeline(*fbs::GetPlan(builder.GetBufferPointer())), "step", plan.model);
  EXPECT_EQ(endless.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(endless.status().message()),
              AllOf(HasSubstr("launch of 'matmul'"), HasSubstr("no finite time")));
}

}  // namespace
}  // namespace bowline
