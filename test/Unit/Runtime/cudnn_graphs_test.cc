// The graphs of attention before cuDNN's own eyes, without a card: the library compiles them for cards whose properties
// it is told, within the workspace that plans reserve. Where it is not installed, the tests are skipped.

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/attention_program.h"
#include "runtime/drivers/cuda/cudnn/attention_graph.h"
#include "runtime/drivers/cuda/cudnn/cudnn_plan.h"

namespace bowline {
namespace {

using kernels::AttentionShape;

struct Card {
  const char* name;
  int version, processors, shared_bytes;
};
constexpr Card kCards[] = {{"A100", 800, 108, 166912}, {"H100", 900, 132, 232448}, {"B200", 1000, 148, 232448}};

absl::StatusOr<CudnnDescriptor> PropertiesOf(const CudnnApi& api, const Card& card) {
  const std::string text = absl::StrCat(
      R"({"deviceVer":)", card.version, R"(,"multiProcessorCount":)", card.processors,
      R"(,"maxSharedMemoryPerBlockOptin":)", card.shared_bytes, R"(,"deviceName":")", card.name,
      R"(","driverVer":13000,"cudaDeviceId":0,"totalGlobalMem":80000000000,"maxGridSize":[2147483647,65535,65535],)",
      R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"maxRegistersPerSM":65536,"warpSize":32,)",
      R"("maxSharedMemoryPerBlock":49152,"reservedSharedMemoryPerBlock":1024,"maxCtasPerSM":32,)",
      R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,)",
      R"("smClockRateKHz":1980000,"memClockRateKHz":2619000,"l2CacheSize":52428800})");
  BOWLINE_ASSIGN_OR_RETURN(CudnnDescriptor made, CudnnDescriptor::Create(api, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR));
  BOWLINE_RETURN_IF_ERROR(
      made.Set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, absl::MakeConstSpan(text)));
  BOWLINE_RETURN_IF_ERROR(made.Finalize());
  return made;
}

class CudnnGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<const CudnnApi*> loaded = LoadCudnn({BOWLINE_TEST_CUDNN_FOLDER});
    if (!loaded.ok()) GTEST_SKIP() << loaded.status();
    api_ = *loaded;
  }

  absl::Status Compile(const Card& card, const AttentionShape& s, AttentionPart part, bool backward, bool in_order) {
    const std::string why_not = WhyNotByCudnn(s, backward, card.version / 100);
    if (!why_not.empty()) return absl::FailedPreconditionError(why_not);
    BOWLINE_ASSIGN_OR_RETURN(const CudnnDescriptor properties, PropertiesOf(*api_, card));
    const std::unique_ptr<AttentionGraph> described =
        backward ? DescribeAttentionBackward(*api_, s, part, in_order) : DescribeAttentionForward(*api_, s, part);
    BOWLINE_ASSIGN_OR_RETURN(const CudnnDescriptor* const graph, described->graph.Finalize());
    AttentionShape of_part = s;
    of_part.batch = part.batches;
    of_part.heads = s.heads / s.kv_heads * part.kv_heads;
    of_part.kv_heads = part.kv_heads;
    size_t limit = backward ? kernels::cuda::BackwardWorkspace(of_part, in_order) : kernels::cuda::kForwardWorkspace;
    for (const auto& [number, bytes] : described->between) limit -= (bytes + 255) / 256 * 256;
    return CudnnPlan::Create(*api_, properties, *graph, limit).status();
  }

  const CudnnApi* api_ = nullptr;
};

AttentionShape Shape(int64_t batch, int64_t queries, int64_t keys, int64_t heads, int64_t kv_heads, int64_t head_dim,
                     bool causal, int64_t window) {
  return {batch, queries, keys, heads, kv_heads, head_dim, causal, ElementType::kBF16, 0.125f, window};
}

TEST_F(CudnnGraphs, HaveKernelsThatFitTheWorkspaceOfPlans) {
  for (const Card& card : kCards) {
    for (const AttentionShape& s : {Shape(2, 128, 128, 4, 4, 64, true, 0), Shape(3, 1023, 1023, 6, 2, 96, true, 100),
                                    Shape(1, 77, 301, 4, 1, 128, true, 40), Shape(2, 40, 30, 4, 2, 72, false, 0),
                                    Shape(2, 1, 33, 4, 2, 64, true, 7), Shape(1, 500, 500, 4, 2, 256, true, 0)}) {
      // Other cards have some of them: each is compiled, for about half a second.
      if (card.version != 900 && s.queries > 100) continue;
      SCOPED_TRACE(absl::StrCat(card.name, ": ", s.queries, " queries, ", s.keys, " keys, heads of ", s.head_dim));
      const AttentionPart whole = {s.batch, s.kv_heads};
      EXPECT_EQ(Compile(card, s, whole, false, true), absl::OkStatus());
      for (const bool in_order : {true, false}) {
        const absl::Status status = Compile(card, s, whole, true, in_order);
        EXPECT_EQ(status, absl::OkStatus()) << "in order: " << in_order;
      }
    }
  }
}

TEST_F(CudnnGraphs, HaveKernelsForPartsOfTensors) {
  const AttentionShape s = Shape(4, 1024, 1024, 8, 4, 128, true, 300);
  for (const Card& card : {kCards[1]}) {
    for (const AttentionPart part : {AttentionPart{2, 4}, {1, 2}}) {
      SCOPED_TRACE(absl::StrCat(card.name, ": ", part.batches, " batches of ", part.kv_heads, " heads"));
      EXPECT_EQ(Compile(card, s, part, false, true), absl::OkStatus());
      EXPECT_EQ(Compile(card, s, part, true, true), absl::OkStatus());
    }
  }
}

TEST_F(CudnnGraphs, OfLargeHeadsHaveGradientsOnOneArchitectureAlone) {
  const AttentionShape s = Shape(1, 500, 500, 4, 2, 256, true, 0);
  EXPECT_EQ(Compile(kCards[0], s, {1, 2}, true, true).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Compile(kCards[2], s, {1, 2}, true, true).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CudnnGraphs, SayWhatWorkspaceIsMissing) {
  const AttentionShape s = Shape(2, 128, 128, 4, 4, 64, true, 0);
  const absl::StatusOr<CudnnDescriptor> properties = PropertiesOf(*api_, kCards[1]);
  ASSERT_TRUE(properties.ok()) << properties.status();
  const auto described = DescribeAttentionBackward(*api_, s, {s.batch, s.kv_heads}, true);
  const auto graph = described->graph.Finalize();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::Status refused = CudnnPlan::Create(*api_, *properties, **graph, 1000).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("bytes of workspace for it, and 1000 are there"), std::string::npos) << refused;
}

}  // namespace
}  // namespace bowline
