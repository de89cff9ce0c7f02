#ifndef BOWLINE_TEST_UNIT_PLAN_PLAN_FIXTURE_H_
#define BOWLINE_TEST_UNIT_PLAN_PLAN_FIXTURE_H_

// A small sound plan, made by hand, that uses every part of the format; and tools to break it.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/plan/plan_generated.h"

namespace bowline::testing {

// Indices into MakePlan().buffers.
enum BufferIndex : uint32_t {
  kTable,                   // Parameter f32[32, 16]
  kSteps,                   // State f32[1]
  kWeight,                  // Constant f32[16, 8]
  kTokens,                  // Input i32[5], 2 slots
  kResult,                  // Output f32[5, 8]
  kRows,                    // Temporary f32[5, 16]
  kProduct,                 // Temporary f32[5, 8]
  kDoubled,                 // Temporary f32[5, 8], in bytes of kRows, which is dead by then
  kSum,                     // Temporary f32[5, 8]: accumulates over the slots
  kWorkspace,               // Scratch u8[65536]
  kCopied,                  // MakePlanWithPrepare: State f32[32, 16] that is no state of a checkpoint
  kSecondTokens = kCopied,  // MakePlanWithTwoRuns
  kSecondResult,
};

// Indices into MakePlan().kernels.
enum KernelIndex : uint32_t {
  kRandom,     // random_normal -> kTable
  kZeroSteps,  // fill -> f32[1]
  kZeroSum,    // fill -> f32[5, 8]
  kGather,     // gather_rows
  kMatmul,     // matmul, with scratch
  kAdd,        // generated: out = a + b; out may be b
  kIncrement,  // generated: x += 1
};

// Entries: 0 "init", 1 "step", which computes, over both slots of tokens,
//   result = sum over slots of 2 * gather(table, tokens) x weight;  steps += 1
// Segments of program 1: "zero", "micro" (gather, matmul, add, add), "finish" (copy, increment).
// `image` is the ELF image with the generated kernels; any bytes will do for plans that are never run on a CPU.
fbs::PlanT MakePlan(absl::Span<const uint8_t> image = {});
// The same with two runs of the entry `step` in flight, whose outputs are the result alone: buffers kSecondTokens and
// kSecondResult are those of every other run.
fbs::PlanT MakePlanWithTwoRuns(absl::Span<const uint8_t> image = {});
// Gives each port of an entry a second buffer, at the end of the arena.
void AllowTwoRuns(fbs::PlanT& plan, fbs::EntryT& entry);
// The kernel is called on ranges of [0, extent).
void SetExtent(fbs::KernelT& kernel, uint64_t extent);
// Has kAdd launched by a grid instead.
fbs::GridT& GridOf(fbs::PlanT& plan, std::vector<uint32_t> blocks, std::vector<uint32_t> threads);

// The same with an entry 2 "pack" of kind Prepare that copies the table, in program 2; "step" gathers from the copy.
fbs::PlanT MakePlanWithPrepare(absl::Span<const uint8_t> image = {});

// The same whose entry `step` has the inputs 1 to 3 "begins", "lengths" and "blocks" as well, about which callers
// promise where three sequences are. Command 0 of its segment "zero" computes the positions of their rows.
fbs::PlanT MakePlanWithSequences(absl::Span<const uint8_t> image = {});

fbs::LaunchT& LaunchAt(fbs::PlanT& plan, size_t program, size_t segment, size_t command);
fbs::CopyT& CopyAt(fbs::PlanT& plan, size_t program, size_t segment, size_t command);

// Says of each code for which kernels it was made: for those of the plan that call it.
void SealCodes(fbs::PlanT& plan);

// WritePlan, which must succeed. BytesOf seals the codes first.
std::vector<uint8_t> BytesOf(fbs::PlanT& plan);
std::vector<uint8_t> BytesAsTheyAre(fbs::PlanT& plan);

// Writes the content hash that the bytes have.
void FixContentHash(std::vector<uint8_t>& bytes);

const fbs::Plan& PlanIn(const std::vector<uint8_t>& bytes);

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_PLAN_PLAN_FIXTURE_H_
