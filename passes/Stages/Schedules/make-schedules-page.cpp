//===- make-schedules-page.cpp - Writes docs/schedules.md from the code
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/PublishedFigures.h"
#include "passes/Stages/Schedules/ScheduleChoice.h"
#include "passes/Stages/Schedules/ScheduleTable.h"
#include "passes/Stages/Schedules/Timeline.h"
#include "passes/Stages/Schedules/Validator.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

using namespace bowline;

namespace {

/// The facts about a schedule that cannot be computed.
struct Section {
  const char *choice;
  const char *title;
  const char *text;
  const char *bubble, *activations, *conditions;
  const char *source;
};

constexpr Section kSections[] = {
    {"gpipe", "GPipe", "All forwards, then all backwards. Simple, and holds the activations of every microbatch.",
     "(P-1)(F+B)", "M", "all costs",
     "Huang et al. 2019, *GPipe*, [arXiv:1811.06965](https://arxiv.org/abs/1811.06965), section 2.3: a share of "
     "(P-1)/(M+P-1) of the step"},
    {"1f1b", "1F1B",
     "As soon as the first microbatch is through, each rank does one backward for each forward. The bubble is that of "
     "GPipe; the activations no longer grow with M.",
     "(P-1)(F+B)", "min(M, P-r) on rank r", "all costs",
     "Narayanan et al. 2021, *Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM*, "
     "[arXiv:2104.04473](https://arxiv.org/abs/2104.04473), section 2.2.1 (PipeDream-Flush)"},
    {"interleaved:2", "Interleaved 1F1B",
     "Each rank holds V chunks, each a V-th of its layers, so that the bubble of P-1 chunks is V times shorter. There "
     "are "
     "V times as many transfers. M must be a multiple of P.",
     "(P-1)(F+B)", "min(MV, PV+P-1-2r) on rank r", "all costs",
     "The same paper, section 2.2.2; activations: Korthikanti et al. 2022, *Reducing Activation Recomputation in Large "
     "Transformer Models*, [arXiv:2205.05198](https://arxiv.org/abs/2205.05198), section 4.2.3"},
    {"breadth_first:2", "Breadth-first",
     "As interleaved, but all microbatches go through a chunk before the next chunk's turn: with fully sharded "
     "parameters "
     "each chunk is gathered and reduced once a step. Holds the activations of every microbatch.",
     "(P-1)(F+B), and (V-1)(P-M)(F+B) more with M < P", "MV", "all costs",
     "Lamy-Poirier 2023, *Breadth-First Pipeline Parallelism*, "
     "[arXiv:2211.05953](https://arxiv.org/abs/2211.05953)"},
    {"zb_h1", "ZB-H1",
     "Backwards are split: I, the gradient that the stage before waits for, and W, those of the parameters, which fill "
     "idle "
     "time. The memory of 1F1B's first rank, on every rank, and a third of its bubble.",
     "(P-1)(F+I-W)", "P, until W", "F = W <= I and M >= P",
     "Qi et al. 2023, *Zero Bubble Pipeline Parallelism*, [arXiv:2401.10241](https://arxiv.org/abs/2401.10241), "
     "section 2"},
    {"zb_h2", "ZB-H2",
     "As ZB-H1, with more forwards before the first backward. A rank never idles between its first and its last "
     "action; "
     "ranks begin and end one after the other, which costs nothing where a step follows the one before without a "
     "barrier.",
     "(P-1)(F+I-2W), inner", "2P-1, until W", "F = W <= I and M >= 2P-1", "The same paper, section 2"},
    {"zb_v", "ZB-V",
     "Two chunks per rank in the shape of a V: rank 0 has the first stage and the last. No inner bubble with the "
     "memory of "
     "1F1B's first rank (2P activations of half the layers). The order is made for F = I = W.",
     "0, inner", "2P, until W", "F = I = W and M >= 2P-1",
     "Qi et al. 2024, *Pipeline Parallelism with Controllable Memory*, "
     "[arXiv:2405.15362](https://arxiv.org/abs/2405.15362); section 6 of the paper above"},
    {"dualpipe_v", "DualPipeV",
     "The V again; each forward of the steady state is a pair with a backward of the other chunk (`=` in the picture), "
     "and "
     "the two may be interleaved so that the communication of one hides behind the computation of the other. F&B is "
     "the "
     "time of a pair. M must be at least 2P.",
     "(P-1)(F&B+B-3W), the largest of the ranks", "2P+1, until W", "F = I = W and F&B <= F+B",
     "DeepSeek-AI 2024, *DeepSeek-V3 Technical Report*, [arXiv:2412.19437](https://arxiv.org/abs/2412.19437), section "
     "3.2.1, "
     "with PP = 2P; the half of it with one copy of the parameters: Sea AI Lab's \"cut in half\", adopted in "
     "[deepseek-ai/DualPipe](https://github.com/deepseek-ai/DualPipe)"},
};

} // namespace

template <typename T> static T valueOf(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "make-schedules-page: error: %s\n", std::string(value.status().message()).c_str());
    std::exit(1);
  }
  return *std::move(value);
}

static const char kBegin[] = R"(<!-- Written by make-schedules-page from passes/Stages/Schedules; edit it there. -->
# Pipeline schedules

A pipeline of P ranks divides a batch into M microbatches. The schedule is the order in which each rank runs the
forwards and backwards of its stages. `--schedule` takes these names:

```text
%s
```

The code that makes the schedules also makes the pictures and numbers of this page. A simulation runs the schedules,
and the tables compare its measurements with the formulas of the papers. Tests compare the two for many P, M and V.

**Terms.** F is a forward and B a backward. A backward may be split into two halves: I computes the gradients of the
input and W those of the weights, B = I + W. A *chunk* is the stage that a rank holds, or one of its V stages. F, I, W
and B also stand for their times per chunk. The *bubble* is the time that a rank idles in a step. The *inner* bubble is
the idle time between the first and the last action of the rank. *Activations* are the largest number, at any time, of
pairs of chunk and microbatch whose forward ran and whose B (or I; or W) did not. Transfers take no time here, as in the
papers; the simulation can give them some.

## All of them

This table compares the schedules for one model on 4 ranks with 8 microbatches. The forward of a rank's layers takes 2
ticks (1 tick for each of two chunks), and I and W take as long as F. The unit of activations is the values that a
rank's layers keep of one microbatch.

| schedule | ticks per step | idle | inner bubble | activations | hangs without streams |
|---|---:|---:|---:|---:|---|
)";

/// Words on lines of at most 120 letters, as in pages written by hand.
static std::string wrap(absl::string_view text, absl::string_view indent = "") {
  constexpr size_t kColumns = 120;
  std::string wrapped, line;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    if (!line.empty() && line.size() + 1 + word.size() > kColumns) {
      absl::StrAppend(&wrapped, line, "\n");
      line = std::string(indent);
    } else if (!line.empty()) {
      line += ' ';
    }
    absl::StrAppend(&line, word);
  }
  return wrapped + line;
}

static std::string compareSchedules() {
  constexpr int kRanks = 4, kMicrobatches = 8;
  std::string rows;
  for (const Section &section : kSections) {
    ScheduleChoice choice = valueOf(parseScheduleChoice(section.choice));
    Schedule schedule = valueOf(makeSchedule(choice, kRanks, kMicrobatches));
    int64_t tick = 2 / choice.chunks;
    SimulatedStep step = valueOf(simulateSchedule(schedule, {{{tick, tick, tick, {}}}, 0, {}}));
    absl::StrAppendFormat(&rows, "| `%s` | %d | %.1f %% | %d | %.1f | %s |\n", section.choice, step.makespan,
                          100.0 * step.maxBubble() / step.makespan, step.maxInnerBubble(),
                          static_cast<double>(step.maxPeak().untilWeight) / choice.chunks,
                          validateWithoutStreams(schedule).ok() ? "no" : "yes");
  }
  return rows;
}

static std::string drawExample(const char *name, int ranks, int microbatches) {
  Schedule schedule = valueOf(makeSchedule(valueOf(parseScheduleChoice(name)), ranks, microbatches));
  return drawTimeline(schedule, valueOf(simulateSchedule(schedule)));
}

static std::string measure(const ScheduleChoice &choice, int ranks, int microbatches) {
  ScheduleCosts costs;
  SimulatedStep step = valueOf(simulateSchedule(valueOf(makeSchedule(choice, ranks, microbatches)), costs));
  std::optional<PublishedFigures> published = findPublishedFigures(choice, ranks, microbatches, costs);
  std::string bubble = "-", activations = "-";
  if (published) {
    bubble = absl::StrCat(published->bubble, published->isInner ? " (inner)" : "");
    activations = absl::StrCat(*std::max_element(published->activations.begin(), published->activations.end()));
  }
  return absl::StrFormat("| %d | %d | %s | %d | %d | %s | %d | %d |\n", ranks, microbatches, bubble, step.maxBubble(),
                         step.maxInnerBubble(), activations, step.maxPeak().untilWeight, step.makespan);
}

static std::string describeSection(const Section &section) {
  ScheduleChoice choice = valueOf(parseScheduleChoice(section.choice));
  std::string text = absl::StrCat("\n## ", section.title, ": `", section.choice, "`\n\n", wrap(section.text),
                                  "\n\n```text\n", drawExample(section.choice, 4, 8), "```\n\n");
  absl::StrAppend(&text, "- Bubble: ", section.bubble, "\n- Activations: ", section.activations,
                  "\n- Holds for: ", section.conditions, "\n",
                  wrap(absl::StrCat("- Published: ", section.source), "  "), "\n\n");
  absl::StrAppend(&text, "With F = I = W = 1:\n\n| P | M | bubble, published | bubble | inner bubble | activations, "
                         "published | activations | ticks |\n|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (auto [ranks, microbatches] : {std::pair{2, 4}, {4, 8}, {4, 32}, {8, 16}, {16, 64}})
    text += measure(choice, ranks, microbatches);
  return text;
}

/// The table, and the message about it with two cells of a rank swapped.
static std::string describeTables() {
  Schedule schedule = valueOf(makeSchedule(valueOf(parseScheduleChoice("1f1b")), 2, 3));
  std::string table = formatScheduleTable(schedule);
  std::swap(schedule.ranks[1][0], schedule.ranks[1][1]);
  absl::Status refused = parseScheduleTable(formatScheduleTable(schedule), "mine.csv", 2, 3).status();
  std::string stages = formatScheduleTable(valueOf(makeSchedule(valueOf(parseScheduleChoice("zb_v")), 2, 1)));
  valueOf(parseScheduleTable(table, "mine.csv", 2, 3));
  return absl::StrCat(R"(
## Your own: `FILE.csv`

One line per rank, cells from left to right; `F0` is the forward of microbatch 0. An empty cell is idle time: it
changes nothing, an action runs as soon as it can. This is 1F1B for 2 ranks and 3 microbatches:

```text
)",
                      table, R"(```

With several chunks per rank, `F0.1` is that of chunk 1, and chunk c of rank r is stage c * P + r of the model. For
any other placement the stage comes first, as here in ZB-V of 2 ranks and 1 microbatch:

```text
)",
                      stages, R"(```

That is the form in which PyTorch's pipeline schedules are written to CSV and read (`compute_only`), so those files
work too. `F1.0&B0.1`, or PyTorch's `(0F1;3B0)OVERLAP_F_B`, is a forward and a backward that overlap. Lines that begin
with `#` are skipped. A table is checked before anything is compiled; the first table with the first two cells of rank
1 swapped:

```text
)",
                      refused.message(), R"(
```

## Checks of a schedule

The compiler checks every schedule, published or your own: each forward and each backward (or both of its halves) occurs
once; every action gets its inputs, so that ranks do not deadlock; and each rank receives messages in the order in which
another rank sends them, so that rendezvous without buffers cannot hang either. The last column of the first table is
about executors without streams for communication: between two actions, such a rank sends the result of the first,
receives the input of the second, and waits for both. Bowline does not work in this way; the column shows the reason.
)");
}

static std::string makePage() {
  std::string page = absl::StrFormat(kBegin, kScheduleSyntax);
  absl::StrAppend(
      &page, compareSchedules(), "\n",
      wrap("In the pictures below time goes right, a column per tick. A letter and a number are a kind and a "
           "microbatch, small letters are chunk 1, `-` goes on with the action before, `.` is idle."),
      "\n");
  for (const Section &section : kSections)
    page += describeSection(section);
  return page + describeTables();
}

static std::string readFile(const char *path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// 0 when the file is the page.
static int check(const char *path, const std::string &page) {
  std::string file = readFile(path);
  if (file == page)
    return 0;
  std::vector<std::string> expected = absl::StrSplit(page, '\n'), found = absl::StrSplit(file, '\n');
  size_t line = 0;
  while (line < expected.size() && line < found.size() && expected[line] == found[line])
    ++line;
  std::fprintf(stderr, "%s:%zu: differs from the code; run make-schedules-page %s\n  file: %s\n  code: %s\n", path,
               line + 1, path, line < found.size() ? found[line].c_str() : "(ends)",
               line < expected.size() ? expected[line].c_str() : "(ends)");
  return 1;
}

int main(int argc, char **argv) {
  std::string page = makePage();
  if (argc == 3 && absl::string_view(argv[1]) == "--check")
    return check(argv[2], page);
  if (argc != 2) {
    std::fprintf(stderr, "usage: make-schedules-page [--check] docs/schedules.md\n");
    return 1;
  }
  std::ofstream file(argv[1]);
  file << page;
  file.close();
  if (!file) {
    std::fprintf(stderr, "make-schedules-page: error: cannot write '%s'; check the path\n", argv[1]);
    return 1;
  }
  return 0;
}
