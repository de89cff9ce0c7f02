// Rules of kernels and of images with code.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Plan/verifier_rules.h"

namespace bowline {
namespace {

using namespace testing;  // the fixture: bowline::testing
using P = fbs::PlanT;

fbs::DependenceT& DependenceOf(fbs::PlanT& plan, uint32_t kernel = kAdd) {
  auto& dependences = plan.kernels[kernel]->dependences;
  dependences.push_back(std::make_unique<fbs::DependenceT>());
  dependences.back()->output = 2;
  dependences.back()->inputs = {1};
  return *dependences.back();
}

TEST(VerifyKernelsGood, AcceptsFactsAboutCode) {
  fbs::PlanT plan = MakePlan();
  DependenceOf(plan);
  fbs::CodeT& code = *plan.images[0]->codes[0];
  plan.images[0]->codes.push_back(std::make_unique<fbs::CodeT>(code));
  code.target = "x86-64-v4";
  ExpectAccepted(plan);
}

// Code that was made for the fixture's kernels, and kernels that were changed afterwards.
struct BrokenSeal {
  const char* name;
  void (*breaks)(P&);
  const char* message;
};

class VerifyContracts : public ::testing::TestWithParam<BrokenSeal> {};

TEST_P(VerifyContracts, Refuses) {
  P plan = MakePlan();
  SealCodes(plan);
  GetParam().breaks(plan);
  const auto bytes = BytesAsTheyAre(plan);
  const absl::Status status = VerifyPlan(PlanIn(bytes));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(GetParam().message));
}

constexpr char kNotForIt[] = "kernel 5 'fixture_add': the code of image 0 was not made for it";
const BrokenSeal kBrokenSeals[] = {
    {"Symbol", [](P& p) { p.kernels[kAdd]->name = "fixture_sub"; },
     "kernel 5 'fixture_sub': the code of image 0 was not made for it"},
    {"Extent", [](P& p) { SetExtent(*p.kernels[kAdd], 1); }, kNotForIt},
    {"InPlacePair", [](P& p) { p.kernels[kAdd]->in_place.emplace_back(2, 0); }, kNotForIt},
    {"Alignment", [](P& p) { p.kernels[kAdd]->arguments[0]->alignment = 64; }, kNotForIt},
    {"Access", [](P& p) { p.kernels[kAdd]->arguments[0]->access = fbs::Access::ReadWrite; }, kNotForIt},
    {"Hash", [](P& p) { p.images[0]->codes[0]->hash = std::make_unique<fbs::Hash256>(); },
     "image 0: code 0: the hash is not that of the data and the contracts"},
    {"Data", [](P& p) { p.images[0]->codes[0]->data.push_back(0); },
     "image 0: code 0: the hash is not that of the data and the contracts"},
    {"Contract", [](P& p) { p.images[0]->codes[0]->contracts[0] = fbs::ValueDigest(1, 2); },
     "image 0: code 0: the hash is not that of the data and the contracts"},
    {"NoHash", [](P& p) { p.images[0]->codes[0]->hash = nullptr; },
     "image 0: code 0: it has contracts without a hash that covers them"},
};
INSTANTIATE_TEST_SUITE_P(Seals, VerifyContracts, ::testing::ValuesIn(kBrokenSeals),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(VerifyKernelsGood, AcceptsGrids) {
  const std::pair<std::vector<uint32_t>, std::vector<uint32_t>> grids[] = {
      {{}, {}}, {{1}, {1}}, {{7, 5, 3}, {32, 4, 2}}, {{2147483647}, {1024}}, {{1, 2147483647, 1}, {1, 1, 1024}}};
  for (const auto& [blocks, threads] : grids) {
    fbs::PlanT plan = MakePlan();
    fbs::GridT& grid = GridOf(plan, blocks, threads);
    grid.shared_bytes = 49152;
    grid.constants = {1, ~uint64_t{0}};
    ExpectAccepted(plan);
  }
}
const Rule kKernelRules[] = {
    {"EmptyFormat", [](P& p) { p.images[0]->codes[0]->format = ""; }, "image 0: code 0: the format is empty"},
    {"EmptyImage", [](P& p) { p.images[0]->codes[0]->data.clear(); }, "image 0: code 0: there is no data"},
    {"CodeThatIsNone", [](P& p) { p.images[0]->codes[0]->format = "none"; },
     "image 0: code 0: it has data, but its format says that"},
    {"EmptyKernelName", [](P& p) { p.kernels[kAdd]->name = ""; }, "kernel 5 '': the name is empty"},
    {"UnknownOrigin", [](P& p) { p.kernels[kAdd]->origin = static_cast<fbs::KernelOrigin>(2); },
     "kernel 5 'fixture_add': unknown origin 2"},
    {"Image", [](P& p) { p.kernels[kAdd]->image = 1; }, "kernel 5 'fixture_add': image 1 does not exist; there are 1"},
    {"NoCode", [](P& p) { p.images[0]->codes.clear(); }, "image 0: there is no code"},
    {"CodeTwice", [](P& p) { p.images[0]->codes.push_back(std::make_unique<fbs::CodeT>(*p.images[0]->codes[0])); },
     "image 0: code 1: format 'elf' for the plan's target is there twice"},
    {"CodeBesideNone",
     [](P& p) {
       p.images[0]->codes.push_back(std::make_unique<fbs::CodeT>());
       p.images[0]->codes[1]->format = "none";
     },
     "image 0: code 1: its format says that there is no code, but the image has others"},
    {"NoExtent", [](P& p) { SetExtent(*p.kernels[kAdd], 0); }, "the extent of its launches 0 must be 1 to"},
    {"ExtentTooLarge", [](P& p) { SetExtent(*p.kernels[kAdd], uint64_t{1} << 63); }, "must be 1 to 2^63 - 1"},
    {"NoGeometry", [](P& p) { p.kernels[kAdd]->geometry.Reset(); },
     "kernel 5 'fixture_add': the geometry of its launches is absent"},
    {"DependenceOfARegisteredKernel", [](P& p) { DependenceOf(p, kMatmul); },
     "kernel 4 'matmul': it has dependences of its results, which only generated code may"},
    {"DependenceOfAnOperand", [](P& p) { DependenceOf(p).output = 0; },
     "kernel 5 'fixture_add': dependence 0: argument 0 is not written"},
    {"DependenceOfNoArgument", [](P& p) { DependenceOf(p).output = 3; }, "dependence 0: argument 3 is not written"},
    {"DependenceTwice", [](P& p) { DependenceOf(p), DependenceOf(p); }, "dependence 1: argument 2 has another one"},
    {"DependenceOnAResult", [](P& p) { DependenceOf(p).inputs = {2}; }, "dependence 0: argument 2 is not read"},
    {"GridOfARegisteredKernel",
     [](P& p) { GridOf(p, {1}, {32}), p.kernels[kAdd]->origin = fbs::KernelOrigin::Registered; },
     "kernel 5 'fixture_add': it says how it is launched, but a registered kernel knows that itself"},
    {"GridOfFourExtents", [](P& p) { GridOf(p, {1, 1, 1, 1}, {32}); },
     "its grid has more than three extents of blocks"},
    {"BlocksOfFourExtents", [](P& p) { GridOf(p, {1}, {1, 1, 1, 1}); },
     "its grid has more than three extents of threads"},
    {"GridWithoutBlocks", [](P& p) { GridOf(p, {4, 0}, {32}); },
     "kernel 5 'fixture_add': its grid has 0 blocks along an axis; it must be 1 to 2147483647"},
    {"GridWithoutThreads", [](P& p) { GridOf(p, {4}, {0}); },
     "its grid has 0 threads along an axis; it must be 1 to 1024"},
    {"TooManyBlocks", [](P& p) { GridOf(p, {2147483648}, {32}); }, "its grid has 2147483648 blocks along an axis"},
    {"TooManyBlocksTogether", [](P& p) { GridOf(p, {65536, 32768}, {32}); },
     "its grid has more than 2147483647 blocks"},
    {"BlocksThatOverflow", [](P& p) { GridOf(p, {2147483647, 2147483647, 2147483647}, {32}); },
     "its grid has more than 2147483647 blocks"},
    {"TooManyThreads", [](P& p) { GridOf(p, {1}, {1025}); }, "its grid has 1025 threads along an axis"},
    {"TooManyThreadsTogether", [](P& p) { GridOf(p, {1}, {64, 17}); }, "its grid has more than 1024 threads"},
    {"SymbolWithNul", [](P& p) { p.kernels[kAdd]->name = std::string("a\0b", 3); }, "the symbol contains a NUL"},
    {"EpilogueOfAGeneratedKernel", [](P& p) { p.kernels[kAdd]->epilogue = "tile"; },
     "kernel 5 'fixture_add': it has an epilogue, but only a registered kernel may"},
    {"EpilogueOfNoImage",
     [](P& p) {
       p.kernels[kMatmul]->epilogue = "tile";
       p.kernels[kMatmul]->image = 1;
     },
     "kernel 4 'matmul': image 1 does not exist; there are 1"},
    {"EpilogueWithNul", [](P& p) { p.kernels[kMatmul]->epilogue = std::string("a\0b", 3); },
     "kernel 4 'matmul': the symbol of its epilogue contains a NUL"},
    {"Flops", [](P& p) { p.kernels[kAdd]->flops = -1; }, "cost -1 must be finite and not negative"},
    {"BytesMoved", [](P& p) { p.kernels[kAdd]->bytes_moved = std::nan(""); }, "cost nan must be finite"},
    {"EmptyAttribute", [](P& p) { p.kernels[kMatmul]->attributes[0]->name = ""; },
     "kernel 4 'matmul': the attribute name is empty"},
    {"AttributeTwice", [](P& p) { p.kernels[kMatmul]->attributes[1]->name = "batch"; },
     "kernel 4 'matmul': the attribute name 'batch' is used twice"},
    {"AttributeOfTwoTypes", [](P& p) { p.kernels[kMatmul]->attributes[0]->text = "x"; },
     "attribute 'batch' has more than one of ints, floats and text"},
    {"UnknownAccess", [](P& p) { p.kernels[kAdd]->arguments[1]->access = static_cast<fbs::Access>(4); },
     "kernel 5 'fixture_add': argument 1: unknown access 4"},
    {"NoAccess", [](P& p) { p.kernels[kAdd]->arguments[1]->access = static_cast<fbs::Access>(0); },
     "argument 1: unknown access 0"},
    {"ArgumentDType", [](P& p) { p.kernels[kAdd]->arguments[1]->dtype = static_cast<fbs::DType>(99); },
     "argument 1: unknown dtype 99"},
    {"ArgumentShape", [](P& p) { p.kernels[kAdd]->arguments[1]->shape[0] = -1; },
     "argument 1: extent -1 of dimension 0"},
    {"RowsOfARegisteredKernel", [](P& p) { p.kernels[kMatmul]->valid_rows = std::make_unique<fbs::ValidRowsT>(); },
     "kernel 4 'matmul': it says which rows it leaves out, but of a registered kernel the registry knows that"},
    {"InPlaceOutput", [](P& p) { p.kernels[kAdd]->in_place[0] = fbs::InPlace(3, 1); },
     "in_place pair 0: output argument 3 does not exist; there are 3"},
    {"InPlaceInput", [](P& p) { p.kernels[kAdd]->in_place[0] = fbs::InPlace(2, 3); },
     "in_place pair 0: input argument 3 does not exist"},
    {"InPlaceOutputRead", [](P& p) { p.kernels[kAdd]->in_place[0] = fbs::InPlace(0, 1); },
     "argument 0 must have access Write"},
    {"InPlaceInputWritten", [](P& p) { p.kernels[kAdd]->in_place[0] = fbs::InPlace(2, 2); },
     "argument 2 must have access Read"},
    {"InPlaceSize", [](P& p) { p.kernels[kAdd]->arguments[1]->shape[0] = 1; }, "arguments 2 and 1 differ in size"},
};

class VerifyKernels : public ::testing::TestWithParam<Rule> {};
TEST_P(VerifyKernels, Refuses) { ExpectRefused(MakePlan(), GetParam()); }
INSTANTIATE_TEST_SUITE_P(Rules, VerifyKernels, ::testing::ValuesIn(kKernelRules), NameOfRule);

}  // namespace
}  // namespace bowline
