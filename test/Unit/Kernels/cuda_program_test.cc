// Which launches compute a signature, and which signatures are refused.

#include <set>

#include "kernels/cuda/attention_program.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/epilogue_program.h"
#include "test/Unit/Kernels/kernel_testing.h"

namespace bowline::kernels::cuda {
namespace {

using testing::Float;
using testing::In;
using testing::Int;
using testing::Ints;
using testing::Out;

// The shared memory of a block that every device since sm_80 has, in bytes.
constexpr uint32_t kShared = 99u << 10;

Signature Attention(const char* kernel, std::vector<int64_t> q, std::vector<int64_t> k, DType dtype, int64_t causal = 1,
                    int64_t window = 0) {
  const std::vector<int64_t> lse = {q[0], q[2], q[1]};
  Signature signature = {kernel, {Int("causal", causal), Float("scale", 0.125)}, {}};
  if (window != 0) signature.attributes.push_back(Int("window", window));
  signature.arguments = {In(q, dtype), In(k, dtype), In(k, dtype)};
  if (signature.kernel == "attention_forward") {
    signature.arguments.insert(signature.arguments.end(), {Out(q, dtype), Out(lse)});
  } else {
    signature.arguments.insert(signature.arguments.end(),
                               {In(q, dtype), In(lse), In(q, dtype), Out(q, dtype), Out(k, dtype), Out(k, dtype)});
  }
  return signature;
}

Signature Random(const char* kernel, std::vector<int64_t> shape, DType dtype = DType::kF32) {
  const bool normal = std::string(kernel) == "random_normal";
  return {kernel,
          {Int("seed", 1), Int("key", 2), Float(normal ? "mean" : "lo", 0), Float(normal ? "stddev" : "hi", 1),
           Ints("global_shape", shape), Ints("offsets", std::vector<int64_t>(shape.size(), 0))},
          {Out(shape, dtype)}};
}

Signature Matmul(int64_t m, int64_t n, int64_t k, DType operands, DType result) {
  return {"matmul",
          {Int("batch", 1), Int("m", m), Int("n", n), Int("k", k), Ints("a_strides", {0, k, 1}),
           Ints("b_strides", {0, n, 1}), Ints("c_strides", {0, n, 1})},
          {In({m, k}, operands), In({k, n}, operands), Out({m, n}, result)}};
}

// With an epilogue of kProductEpilogues.
Signature WithEpilogue(const ProductEpilogue& epilogue, int64_t m, int64_t n, int64_t k, DType operands, DType result) {
  Signature signature = Matmul(m, n, k, operands, result);
  signature.attributes.back() = {"epilogue", {}, {}, std::string(epilogue.name)};
  const TensorSpec c = signature.arguments.back();
  signature.arguments.pop_back();
  if (epilogue.bias) signature.arguments.push_back(In({n}, result));
  if (epilogue.gradient) signature.arguments.push_back(In({m, n}, result));
  signature.arguments.push_back(c);
  if (epilogue.keeps) signature.arguments.push_back(Out({m, n}, result));
  if (epilogue.sums != 0) signature.arguments.push_back(Out({epilogue.sums == 'a' ? m : n}, result));
  return signature;
}

Signature WithEpilogue(std::string_view name, int64_t m, int64_t n, int64_t k, DType operands, DType result) {
  return WithEpilogue(*FindProductEpilogue(name), m, n, k, operands, result);
}

// Small ones and those of GPT-3 and Llama 405B.
std::vector<Signature> Signatures() {
  std::vector<Signature> all;
  constexpr DType kBoth[] = {DType::kF32, DType::kBF16};
  for (DType dtype : kBoth) {
    for (const char* kernel : {"attention_forward", "attention_backward"}) {
      for (int64_t dim : {1, 64, 80, 96, 128, 192, 256, 512, 1000}) {
        all.push_back(Attention(kernel, {2, 33, 4, dim}, {2, 40, 2, dim}, dtype));
      }
      all.push_back(Attention(kernel, {1, 8192, 128, 128}, {1, 8192, 8, 128}, dtype));
      all.push_back(Attention(kernel, {8, 2048, 96, 128}, {8, 2048, 96, 128}, dtype, 0));
      all.push_back(Attention(kernel, {1, 131072, 128, 128}, {1, 131072, 8, 128}, dtype, 1, 4096));
    }
    for (int64_t count : {int64_t{1}, int64_t{5001}, int64_t{1} << 40}) {
      all.push_back({"fill", {Float("value", 1)}, {Out({count}, dtype)}});
      all.push_back(Random("random_normal", {count}, dtype));
    }
    for (int64_t columns : {1, 7, 8, 16384}) {
      all.push_back({"gather_rows",
                     {},
                     {In({128256, columns}, dtype), In({4, 8192}, DType::kI32), Out({4, 8192, columns}, dtype)}});
      for (DType result : kBoth) {
        if (dtype == DType::kF32 && result == DType::kBF16) continue;
        all.push_back({"scatter_add_rows",
                       {},
                       {In({4, 8192, columns}, dtype), In({4, 8192}, DType::kI32), Out({128256, columns}, result)}});
      }
    }
    all.push_back({"rope_angles",
                   {Float("theta", 500000)},
                   {In({131072}, DType::kI32), Out({131072, 64}, dtype), Out({131072, 64}, dtype)}});
    for (DType result : kBoth) {
      if (dtype == DType::kF32 && result == DType::kBF16) continue;
      all.push_back(Matmul(3, 4, 5, dtype, result));
      for (auto [k, n] : {std::pair<int64_t, int64_t>{4096, 14336}, {7, 9}}) {
        for (int64_t transposed : {0, 1}) {
          const std::vector<int64_t> matrices = {8, transposed == 1 ? n : k, transposed == 1 ? k : n};
          all.push_back({"grouped_matmul",
                         {Int("transposed", transposed)},
                         {In({16384, k}, dtype), In(matrices, dtype), In({9}, DType::kI32), Out({16384, n}, result)}});
        }
        all.push_back({"grouped_outer",
                       {},
                       {In({16384, k}, dtype), In({16384, n}, dtype), In({9}, DType::kI32), Out({8, k, n}, result)}});
      }
    }
  }
  all.push_back({"fill", {Float("value", -3)}, {Out({3, 3}, DType::kI32)}});
  all.push_back({"check_ids", {Int("rows", 8)}, {In({3, 4}, DType::kI32), {Access::kReadWrite, DType::kI32, {2}}}});
  all.push_back({"check_offsets", {Int("rows", 40)}, {In({9}, DType::kI32), {Access::kReadWrite, DType::kI32, {2}}}});
  all.push_back({"gather_rows", {}, {In({8, 3}, DType::kI32), In({2}, DType::kI32), Out({2, 3}, DType::kI32)}});
  all.push_back(Random("random_uniform", {3, 4}));
  return all;
}

std::string Describe(const Signature& signature) {
  std::string text = signature.kernel;
  for (const TensorSpec& spec : signature.arguments) {
    text += " " + std::string(NameOf(spec.dtype)) + ::testing::PrintToString(spec.shape);
  }
  return text;
}

// Launches of epilogues that the library may lack, with the programs that then replace them.
void LaunchEpilogues(std::set<std::string>& launched) {
  for (const ProductEpilogue& epilogue : kProductEpilogues) {
    for (const auto& [m, n, k] :
         {std::tuple<int64_t, int64_t, int64_t>{5, 8, 1}, {300, 520, 7}, {8192, 49152, 12288}}) {
      for (const auto& [operands, result] :
           {std::pair(DType::kF32, DType::kF32), {DType::kBF16, DType::kF32}, {DType::kBF16, DType::kBF16}}) {
        for (const bool transposed : {false, true}) {
          Signature signature = WithEpilogue(epilogue, m, n, k, operands, result);
          if (transposed) {
            signature.attributes[4] = Ints("a_strides", {0, 1, m});
            signature.attributes[5] = Ints("b_strides", {0, 1, k});
          }
          const auto whole = ProgramOf(signature);
          if (!whole.ok()) continue;  // tested below
          SCOPED_TRACE(Describe(signature));
          const size_t scratch = whole->scratch_bytes;
          const auto program = ProgramWithoutLibraryEpilogue(whole->products.at(0), scratch);
          ASSERT_TRUE(program.ok()) << program.status();
          EXPECT_EQ(program->workspace_bytes % 256, 0);
          EXPECT_GE(program->workspace_bytes, scratch / 4);
          for (const EpilogueStep& step : program->steps) {
            EXPECT_EQ(step.product.epilogue, nullptr);
            launched.insert(step.launch.function);
            const absl::Status status = emulator::Check(step.launch, signature.arguments.size(), scratch);
            EXPECT_TRUE(status.ok()) << status;
          }
        }
      }
    }
  }
}

TEST(CudaProgram, EverySignatureHasAProgramThatADeviceCanLaunch) {
  const std::vector<std::string> functions = emulator::FunctionNames();
  std::set<std::string> launched;
  for (const Signature& signature : Signatures()) {
    SCOPED_TRACE(Describe(signature));
    ASSERT_TRUE(CreateKernel(signature).ok()) << CreateKernel(signature).status();
    const auto program = ProgramOf(signature);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(program->scratch_bytes % 256, 0);
    EXPECT_EQ(program->products.size(), signature.kernel == "matmul" ? 1 : 0);
    EXPECT_EQ(program->launches.empty(), signature.kernel == "matmul");
    for (const DeviceLaunch& launch : program->launches) {
      launched.insert(launch.function);
      const absl::Status status = emulator::Check(launch, signature.arguments.size(), program->scratch_bytes);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_LE(launch.shared_bytes, kShared) << launch.function;
    }
  }
  LaunchEpilogues(launched);
  for (const std::string& function : functions) {
    if (!function.starts_with("bowline_")) continue;  // of the emulator's own tests
    EXPECT_TRUE(launched.contains(function)) << function << " is launched by no program";
  }
}

// Kernels that CUDA devices have no program for.
const std::set<std::string_view> kOfProcessors = {"cache_write",       "pack_matrix",      "paged_attention",
                                                  "quantized_gather",  "quantized_matmul", "sample_tokens",
                                                  "sequence_positions"};

TEST(CudaProgram, KernelsOfTheProcessor) {
  const Signature pack = {
      "pack_matrix", {Int("k", 2), Int("n", 3), Ints("b_strides", {0, 3, 1})}, {In({2, 3}), Out({96})}};
  EXPECT_EQ(ProgramOf(pack).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ProgramOf(pack).status().message()), ::testing::HasSubstr("it has attention_backward"));
  for (const KernelDefinition& kernel : AllKernels()) {
    const absl::Status status = ProgramOf({std::string(kernel.name), {}, {}}).status();
    EXPECT_EQ(status.code(),
              kOfProcessors.contains(kernel.name) ? absl::StatusCode::kNotFound : absl::StatusCode::kInvalidArgument)
        << kernel.name;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(std::string(kernel.name)));
  }
}

void ExpectRefused(const Signature& signature, const std::string& message) {
  const auto program = ProgramOf(signature);
  EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument) << program.status();
  EXPECT_THAT(std::string(program.status().message()), ::testing::HasSubstr(message));
}

TEST(CudaProgram, Refuses) {
  ExpectRefused(Attention("attention_forward", {1, 9, 1, 8}, {1, 8, 1, 8}, DType::kF32), "the first queries would see");
  ExpectRefused(Attention("attention_backward", {1, 8, 1, 8000}, {1, 8, 1, 8000}, DType::kBF16), "head_dim is 8000");
  ExpectRefused(Attention("attention_forward", {1 << 20, 1 << 10, 64, 1}, {1 << 20, 1 << 10, 1, 1}, DType::kBF16),
                "more than 2^31 - 1 blocks");
  ExpectRefused({"rope_angles", {Float("theta", 1e-9)}, {In({4}, DType::kI32), Out({4, 2}), Out({4, 2})}},
                "needs at least 2^-18");
  Signature divided = Random("random_normal", {2, 2, 2, 2, 2});
  for (Attribute& attribute : divided.attributes) {
    if (attribute.name == "global_shape") attribute.ints = {4, 4, 4, 4, 4};
  }
  ExpectRefused(divided, "in 5 places");
  ExpectRefused(
      {"grouped_outer", {}, {In({1, 1 << 22}), In({1, 1 << 22}), In({2}, DType::kI32), Out({1, 1 << 22, 1 << 22})}},
      "more than 2^31 - 1 tiles of 64 x 64");
  Signature epilogue = Matmul(4, 4, 4, DType::kBF16, DType::kBF16);
  epilogue.has_epilogue = true;
  epilogue.attributes.erase(epilogue.attributes.end() - 1);
  ExpectRefused(epilogue, "has an epilogue");
  Signature packed = Matmul(4, 4, 4, DType::kF32, DType::kF32);
  packed.attributes.push_back(Int("b_packed", 1));
  ExpectRefused(packed, "'b_packed' is a form of matrices for processors");
}

// A new attribute of a signature is refused until a program computes it, even if no kernel reads the attribute yet.
TEST(CudaProgram, RefusesAnAttributeThatNoFunctionComputes) {
  std::set<std::string> kernels;
  for (Signature signature : Signatures()) {
    kernels.insert(signature.kernel);
    signature.attributes.push_back(Int("tilt", 1));
    ExpectRefused(signature, "kernel '" + signature.kernel + "': CUDA devices do not compute attribute 'tilt'");
  }
  EXPECT_EQ(kernels.size(), AllKernels().size() - kOfProcessors.size());
}

// Kernels of cuDNN 9.19 for sm_80, sm_90, sm_100 and sm_120 asked for at most these bytes, with the tensors between
// parts of the graph.
TEST(CudaProgram, WorkspaceOfAttentionIsWhatTheLibraryAsksForAtMost) {
  struct Asked {
    int64_t batch, queries, keys, heads, kv_heads, head_dim;
    size_t in_order, any_order;
  };
  for (const Asked& a : {Asked{2, 128, 128, 4, 4, 64, 262400 + 4096, 262272 + 266240},
                         {1, 4096, 4096, 32, 8, 128, 1140850944 + 524288, 134217856 + 67633152},
                         {3, 1023, 1023, 6, 2, 96, 44819968 + 73656, 14148992 + 7144632},
                         {2, 77, 301, 4, 4, 64, 786688 + 2464, 163968 + 160160},
                         {2, 500, 500, 4, 2, 256, 8290560 + 16000, 4096256 + 4112000},
                         {1, 33, 77, 4, 2, 64, 144640 + 528, 119936 + 34320},
                         {1, 100, 300, 4, 1, 72, 739072 + 1600, 465536 + 116800}}) {
    const AttentionShape s = {a.batch,    a.queries, a.keys,       a.heads, a.kv_heads,
                              a.head_dim, true,      DType::kBF16, 0.125f,  0};
    SCOPED_TRACE(::testing::Message() << a.queries << " queries, " << a.keys << " keys, " << a.head_dim);
    EXPECT_GE(BackwardWorkspace(s, true), a.in_order);
    EXPECT_GE(BackwardWorkspace(s, false), a.any_order);
    // Blocks of rows may be smaller for short sequences.
    EXPECT_LE(BackwardWorkspace(s, true), 2 * a.in_order + 1024);
    EXPECT_LE(BackwardWorkspace(s, false), 3 * a.any_order + 1024);
  }
}

TEST(CudaProgram, AttentionHasTheWorkspaceOfBothWays) {
  const auto scratch = [](const Signature& signature) {
    const auto program = ProgramOf(signature);
    EXPECT_TRUE(program.ok()) << program.status();
    return program.ok() ? program->scratch_bytes : 0;
  };
  const std::vector<int64_t> q = {2, 128, 4, 64}, k = {2, 128, 2, 64};
  const AttentionShape s = {2, 128, 128, 4, 2, 64, true, DType::kBF16, 0.125f, 0};
  const size_t wanted = BackwardWorkspace(s, true);
  EXPECT_EQ(scratch(Attention("attention_backward", q, k, DType::kBF16)), wanted);
  EXPECT_EQ(scratch(Attention("attention_forward", q, k, DType::kBF16)), kForwardWorkspace);
  // The own kernels have a number for each row of queries.
  constexpr size_t kDelta = 4 * 2 * 4 * 128;
  EXPECT_EQ(scratch(Attention("attention_backward", q, k, DType::kF32)), kDelta);
  EXPECT_EQ(scratch(Attention("attention_forward", q, k, DType::kF32)), 0u);
  // Plans of before, and those that shall have less, give less.
  Signature less = Attention("attention_backward", q, k, DType::kBF16);
  less.scratch_limit = 100000;
  EXPECT_EQ(scratch(less), 100000u / 256 * 256);
  less.scratch_limit = 0;
  EXPECT_EQ(scratch(less), kDelta);
  EXPECT_EQ(scratch(Attention("attention_backward", {8, 8192, 64, 128}, {8, 8192, 8, 128}, DType::kBF16)),
            kMostWorkspace);
}

TEST(CudaProgram, EpiloguesAreALibrarys) {
  for (const ProductEpilogue& epilogue : kProductEpilogues) {
    SCOPED_TRACE(std::string(epilogue.name));
    const DType result = epilogue.sums != 0 ? DType::kF32 : DType::kBF16;
    const Signature signature = WithEpilogue(epilogue, 5, 8, 3, DType::kBF16, result);
    const auto program = ProgramOf(signature);
    ASSERT_TRUE(program.ok()) << program.status();
    const LibraryProduct& product = program->products.at(0);
    EXPECT_EQ(*product.epilogue, epilogue);
    EXPECT_THAT(product.c, ::testing::ElementsAre(0, 8, 1));
    const auto is = [&](int index, Access access, int64_t elements) {
      ASSERT_GE(index, 2);
      EXPECT_EQ(signature.arguments[index].access, access);
      EXPECT_EQ(signature.arguments[index].ElementCount(), elements);
    };
    is(product.result_argument, Access::kWrite, 40);
    if (epilogue.bias) is(product.vector_argument, Access::kRead, 8);
    if (epilogue.sums != 0) is(product.vector_argument, Access::kWrite, epilogue.sums == 'a' ? 5 : 8);
    if (epilogue.gradient) is(product.matrix_argument, Access::kRead, 40);
    if (epilogue.keeps) is(product.matrix_argument, Access::kWrite, 40);
    EXPECT_EQ(product.vector_argument < 0, !epilogue.bias && epilogue.sums == 0);
    EXPECT_EQ(product.matrix_argument < 0, !epilogue.gradient && !epilogue.keeps);
  }
}

TEST(CudaProgram, RefusesEpiloguesThatTheLibraryLacks) {
  constexpr DType f32 = DType::kF32, bf16 = DType::kBF16;
  const auto bias = WithEpilogue("bias", 5, 7, 3, bf16, bf16);
  const auto with = [](Signature signature, auto change) {
    change(signature);
    return signature;
  };
  ExpectRefused(with(bias, [](Signature& s) { s.attributes.back().text = "softmax"; }),
                "attribute 'epilogue' is 'softmax'; it must be one of bias, bias_gelu, ");
  ExpectRefused(with(bias, [](Signature& s) { s.attributes.back() = Int("epilogue", 1); }), "'epilogue' is ''");
  ExpectRefused(with(bias, [](Signature& s) { s.arguments.pop_back(); }),
                "has 3 arguments; with the epilogue 'bias' it takes 4: A, B, bias, C");
  ExpectRefused(with(bias, [](Signature& s) { s.arguments[2].shape = {5}; }),
                "argument 'bias' has shape [5]; it must have the 7 elements of [7]");
  ExpectRefused(with(bias, [](Signature& s) { s.arguments[2].dtype = DType::kF32; }),
                "argument 'bias' is f32; it must have the type of C, bf16");
  ExpectRefused(with(bias, [](Signature& s) { s.arguments[2].access = Access::kReadWrite; }),
                "argument 'bias' must be read and nothing else");
  ExpectRefused(with(bias, [](Signature& s) { s.arguments[3].access = Access::kReadWrite; }), "'C' is declared");
  ExpectRefused(with(bias, [](Signature& s) { s.attributes.push_back(Ints("c_strides", {0, 7, 1})); }),
                "has attribute 'c_strides', and none with an 'epilogue' has it");
  ExpectRefused(with(bias, [](Signature& s) { s.attributes.push_back(Int("accumulate", 0)); }), "'accumulate'");
  ExpectRefused(with(bias, [](Signature& s) { s.attributes[0] = Int("batch", 2); }), "batch is 2");
  ExpectRefused(with(bias, [](Signature& s) { s.attributes[1] = Int("m", INT64_MAX); }), "attribute 'm' is");
  ExpectRefused(with(bias, [](Signature& s) { s.has_epilogue = true; }),
                "has an epilogue that is generated and one of a library");
  ExpectRefused(with(bias, [](Signature& s) { s.attributes[4] = Ints("a_strides", {0, 0, 1}); }),
                "the epilogue 'bias' needs an A with contiguous rows or columns; compile with --disable-step "
                "library-epilogues");
  ExpectRefused(with(bias, [](Signature& s) { s.attributes[5] = Ints("b_strides", {0, 1, 1}); }), "needs a B");
  ExpectRefused(WithEpilogue("gelu", 5, 8, 3, f32, f32), "is computed for a C of bf16 alone");
  ExpectRefused(WithEpilogue("gelu_gradient", 5, 8, 3, bf16, f32), "is computed for a C of bf16 alone");
  ExpectRefused(WithEpilogue("bias_gelu_kept", 5, 12, 3, bf16, bf16), "a multiple of 8 elements; n is 12");
  ExpectRefused(WithEpilogue("gelu_gradient", 5, 7, 3, bf16, bf16), "a multiple of 8 elements; n is 7");
  ExpectRefused(WithEpilogue("sum_a", 5, 7, 3, bf16, bf16), "needs a C of f32");
  EXPECT_TRUE(ProgramOf(WithEpilogue("bias_gelu", 5, 7, 3, bf16, bf16)).ok());
  // Processors have epilogues of their own.
  EXPECT_THAT(std::string(CreateKernel(bias).status().message()),
              ::testing::HasSubstr("this device has none: compile for this device"));
}

TEST(CudaProgram, ProductsAreALibrarys) {
  Signature signature = Matmul(512, 1024, 1024, DType::kBF16, DType::kF32);
  auto program = ProgramOf(signature);
  ASSERT_TRUE(program.ok());
  const LibraryProduct& product = program->products.at(0);
  EXPECT_EQ(program->scratch_bytes, (size_t{32} << 20) + 256);
  EXPECT_THAT((std::vector<int64_t>{product.batch, product.m, product.n, product.k}),
              ::testing::ElementsAre(1, 512, 1024, 1024));
  EXPECT_THAT(product.a, ::testing::ElementsAre(0, 1024, 1));
  EXPECT_EQ(product.operands, DType::kBF16);
  EXPECT_EQ(product.result, DType::kF32);
  EXPECT_FALSE(product.accumulate);
  EXPECT_EQ(ProgramOf(Matmul(3, 4, 5, DType::kF32, DType::kF32))->scratch_bytes, (size_t{4} << 20) + 256);
  signature.scratch_limit = 1000;
  EXPECT_EQ(ProgramOf(signature)->scratch_bytes, 768);
  signature.attributes.push_back(Int("accumulate", 1));
  signature.arguments[2].access = Access::kReadWrite;
  EXPECT_TRUE(ProgramOf(signature)->products.at(0).accumulate);
}

}  // namespace
}  // namespace bowline::kernels::cuda
