// GGUF files, good and hostile, and the values of blocks.

#include "runtime/base/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "runtime/base/gguf_model.h"
#include "test/Unit/Base/gguf_bytes.h"
#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<GgufFile> Parse(const std::string& bytes) {
  return GgufFile::FromBytes({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "m.gguf");
}

std::string ErrorOf(const std::string& bytes) {
  const absl::Status status = Parse(bytes).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("'m.gguf'"));
  return std::string(status.message());
}

struct BlockCase {
  uint32_t type;
  size_t scales_at;
  int scales;
  uint64_t hash;              // FNV-1a, 64 bits, of the bytes of all elements
  std::vector<float> values;  // of 32 elements at equal distances
};

// From gguf 0.19.0 of PyPI, gguf.quants.dequantize: byte i of a block is (37 i + 11) mod 256, apart from the scales of
// f16, which are 0.5 and -1.25.
const std::vector<BlockCase>& BlockCases() {
  // clang-format off
  static const auto& cases = *new std::vector<BlockCase>{
    {2, 0, 1, 0x24d7a5f44c5dca08ULL, {-1.5f, 1.0f, 3.5f, -2.0f, 0.5f, 3.0f, -2.5f, 0.0f, 2.5f, -3.0f, -0.5f, 2.0f, -3.5f, -1.0f, 1.5f, -4.0f, -1.5f, -0.5f, 0.5f, 2.0f, 3.0f, -4.0f, -2.5f, -1.5f, -0.5f, 1.0f, 2.0f, 3.0f, -3.5f, -2.5f, -1.5f, 0.0f}},
    {3, 0, 2, 0x743480c3d07678f8ULL, {6.25f, 0.75f, 3.25f, 5.75f, 0.25f, 2.75f, 5.25f, -0.25f, 2.25f, 4.75f, -0.75f, 1.75f, 4.25f, -1.25f, 1.25f, 3.75f, 3.25f, 4.75f, 5.75f, -1.25f, 0.25f, 1.25f, 2.25f, 3.75f, 4.75f, 5.75f, -0.75f, 0.25f, 1.25f, 2.75f, 3.75f, 4.75f}},
    {8, 0, 1, 0x7975e9a986d3bd44ULL, {42.5f, 61.0f, -48.5f, -30.0f, -11.5f, 7.0f, 25.5f, 44.0f, 62.5f, -47.0f, -28.5f, -10.0f, 8.5f, 27.0f, 45.5f, -64.0f, -45.5f, -27.0f, -8.5f, 10.0f, 28.5f, 47.0f, -62.5f, -44.0f, -25.5f, -7.0f, 11.5f, 30.0f, 48.5f, -61.0f, -42.5f, -24.0f}},
    {12, 0, 2, 0xe0ef0bad3a5269f4ULL, {234.25f, 110.25f, 234.25f, 110.25f, 40.0f, 46.0f, 50.0f, 56.0f, 301.75f, 137.75f, 301.75f, 137.75f, 147.5f, 56.5f, 70.5f, 91.5f, 229.5f, 73.5f, 229.5f, 73.5f, 307.5f, 397.5f, 457.5f, 67.5f, 290.75f, 94.75f, 290.75f, 94.75f, 52.75f, 61.75f, 67.75f, 76.75f}},
    {14, 208, 1, 0xdc22ba59d66b0185ULL, {-715.5f, -503.5f, -216.0f, -152.0f, 115.5f, -304.5f, 319.0f, -841.0f, -1520.0f, 902.5f, 682.0f, 1488.0f, -435.0f, -565.5f, -775.0f, 750.0f, -175.5f, -123.5f, 324.0f, 228.0f, 335.5f, -884.5f, 539.0f, -1421.0f, -242.0f, 544.5f, -1050.0f, -504.0f, 423.0f, 352.5f, 65.0f, -30.0f}},
  };
  // clang-format on
  return cases;
}

TEST(GgufBlocksTest, AreTheValuesOfGgml) {
  for (const BlockCase& c : BlockCases()) {
    const GgufType* const type = FindGgufType(c.type);
    ASSERT_NE(type, nullptr);
    SCOPED_TRACE(std::string(type->name));
    std::vector<uint8_t> block(type->block_bytes);
    for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<uint8_t>(37 * i + 11);
    const uint8_t scales[] = {0x00, 0x38, 0x00, 0xbd};
    std::memcpy(block.data() + c.scales_at, scales, 2 * static_cast<size_t>(c.scales));
    std::vector<float> out(type->block_elements);
    ReadGgufBlocks(*type, block, absl::MakeSpan(out));
    for (size_t i = 0; i < c.values.size(); ++i) EXPECT_EQ(out[i * out.size() / 32], c.values[i]) << i;
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < out.size() * sizeof(float); ++i) {
      hash = (hash ^ reinterpret_cast<const uint8_t*>(out.data())[i]) * 0x100000001b3;
    }
    EXPECT_EQ(hash, c.hash);
  }
}

TEST(GgufBlocksTest, SingleElements) {
  float value;
  const uint8_t half[] = {0x00, 0xbd}, brain[] = {0xa0, 0xbf};
  ReadGgufBlocks(*FindGgufType(1), half, {&value, 1});
  EXPECT_EQ(value, -1.25f);
  ReadGgufBlocks(*FindGgufType(30), brain, {&value, 1});
  EXPECT_EQ(value, -1.25f);
}

TEST(GgufTest, ReadsKeysAndTensors) {
  const std::string strings = Little<uint32_t>(8) + Little<uint64_t>(2) + GgufString("a") + GgufString("");
  const std::string bytes = GgufBytes(
      {GgufKey("n", 4, Little<uint32_t>(7)), GgufKey("i", 1, Little<int8_t>(-3)), GgufKey("x", 6, Little(0.5f)),
       GgufKey("b", 7, Little<uint8_t>(1)), GgufKey("s", 8, GgufString("text")), GgufKey("a", 9, strings),
       GgufKey("big", 10, Little<uint64_t>(UINT64_MAX))},
      {GgufTensorLine("t", {3, 2}, 0, 0), GgufTensorLine("u", {1}, 0, 32)},
      Little(1.0f) + Little(2.0f) + Little(3.0f) + Little(4.0f) + Little(5.0f) + Little(6.0f) + std::string(8, '\0') +
          Little(7.0f));
  const absl::StatusOr<GgufFile> file = Parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*file->Integer("n"), 7);
  EXPECT_EQ(*file->Integer("i"), -3);
  EXPECT_EQ(*file->Number("x"), 0.5);
  EXPECT_EQ(*file->Boolean("b"), true);
  EXPECT_EQ(*file->String("s"), "text");
  EXPECT_EQ(file->metadata().at("a").count, 2u);
  EXPECT_TRUE(absl::IsNotFound(file->Integer("none").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(file->Integer("s").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(file->Integer("big").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(file->Number("n").status()));
  const GgufTensor* const tensor = file->Find("t");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(DescribeTensor(*tensor), "F32 [2, 3]");
  std::vector<float> row(3);
  file->ReadRow(*tensor, 1, absl::MakeSpan(row));
  EXPECT_THAT(row, ElementsAre(4, 5, 6));
}

TEST(GgufTest, EveryBeginningOfAFileIsRefused) {
  const std::string bytes =
      GgufBytes({GgufKey("s", 8, GgufString("text"))}, {GgufTensorLine("t", {8}, 0, 0)}, std::string(32, 'x'));
  ASSERT_TRUE(Parse(bytes).ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(Parse(bytes.substr(0, size)).status())) << size;
  }
}

TEST(GgufTest, ChangedBytesNeverReachOutside) {
  const std::string bytes =
      GgufBytes({GgufKey("s", 8, GgufString("text"))},
                {GgufTensorLine("t", {32, 2}, 2, 0), GgufTensorLine("u", {8}, 0, 64)}, std::string(96, 'x'));
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string changed = bytes;
    for (int i = 0; i < 2; ++i) changed[random() % changed.size()] = static_cast<char>(random());
    const absl::StatusOr<GgufFile> file = Parse(changed);
    if (!file.ok()) continue;
    for (const GgufTensor& tensor : file->tensors()) {
      ASSERT_LE(tensor.offset + tensor.bytes, changed.size());
      ASSERT_EQ(file->Find(tensor.name), &tensor);
    }
  }
}

TEST(GgufTest, HostileNumbers) {
  const std::string head = std::string("GGUF") + Little<uint32_t>(3);
  EXPECT_THAT(ErrorOf("GGML" + std::string(60, '\0')), HasSubstr("no GGUF file"));
  EXPECT_THAT(ErrorOf(GgufBytes({}, {}, "", 1)), HasSubstr("version 1"));
  EXPECT_THAT(ErrorOf(head + Little<uint64_t>(UINT64_MAX) + Little<uint64_t>(0)), HasSubstr("at most"));
  EXPECT_THAT(ErrorOf(head + Little<uint64_t>(0) + Little<uint64_t>(1) + Little<uint64_t>(60000)),
              HasSubstr("ends after 0"));
  const auto array = [](uint32_t type, uint64_t count) { return GgufKey("a", 9, Little(type) + Little(count)); };
  EXPECT_THAT(ErrorOf(GgufBytes({array(10, UINT64_MAX / 8 + 2)}, {}, "")), HasSubstr("more than the file can hold"));
  EXPECT_THAT(ErrorOf(GgufBytes({array(8, UINT64_MAX)}, {}, "")), HasSubstr("'a'"));
  EXPECT_THAT(ErrorOf(GgufBytes({array(9, 1)}, {}, "")), HasSubstr("array of type 9"));
  EXPECT_THAT(ErrorOf(GgufBytes({GgufKey("k", 13, "")}, {}, "")), HasSubstr("unknown type 13"));
  EXPECT_THAT(ErrorOf(GgufBytes({GgufKey("k", 7, "\2")}, {}, "")), HasSubstr("0 or 1"));
  const std::string key = GgufKey("k", 0, "x");
  EXPECT_THAT(ErrorOf(GgufBytes({key, key}, {}, "")), HasSubstr("the key 'k' twice"));
  for (const uint32_t alignment : {0u, 4u, 12u, 0x80000000u}) {
    EXPECT_THAT(ErrorOf(GgufBytes({GgufKey("general.alignment", 4, Little(alignment))}, {}, "")),
                HasSubstr("alignment"));
  }
}

TEST(GgufTest, HostileTensors) {
  const auto error = [](const std::vector<std::string>& lines) {
    return ErrorOf(GgufBytes({}, lines, std::string(96, 'x')));
  };
  EXPECT_THAT(error({GgufTensorLine("t", {}, 0, 0)}), HasSubstr("0 dimensions"));
  EXPECT_THAT(error({GgufTensorLine("t", {1, 1, 1, 1, 1}, 0, 0)}), HasSubstr("5 dimensions"));
  EXPECT_THAT(error({GgufTensorLine("t", {0}, 0, 0)}), HasSubstr("empty or too large"));
  EXPECT_THAT(error({GgufTensorLine("t", {uint64_t{1} << 32, uint64_t{1} << 32}, 0, 0)}), HasSubstr("too large"));
  EXPECT_THAT(error({GgufTensorLine("t", {uint64_t{1} << 60}, 0, 0)}), HasSubstr("too large"));
  EXPECT_THAT(error({GgufTensorLine("t", {33}, 8, 0)}), HasSubstr("no multiple of the 32 elements"));
  EXPECT_THAT(error({GgufTensorLine("t", {32}, 39, 0)}), HasSubstr("type MXFP4, which is not read"));
  EXPECT_THAT(error({GgufTensorLine("t", {256}, 16, 0)}), HasSubstr("type IQ2_XXS, which is not read"));
  EXPECT_THAT(error({GgufTensorLine("t", {8}, 0, 8)}), HasSubstr("no multiple of 32"));
  EXPECT_THAT(error({GgufTensorLine("t", {8}, 0, 96)}), HasSubstr("beyond the end"));
  EXPECT_THAT(error({GgufTensorLine("t", {8}, 0, UINT64_MAX - 31)}), HasSubstr("beyond the end"));
  EXPECT_THAT(error({GgufTensorLine("t", {8}, 0, 0), GgufTensorLine("t", {8}, 0, 32)}), HasSubstr("'t' twice"));
  EXPECT_THAT(error({GgufTensorLine("t", {9}, 0, 0), GgufTensorLine("u", {8}, 0, 32)}), HasSubstr("overlaps"));
  EXPECT_THAT(error({GgufTensorLine(std::string(65, 't'), {8}, 0, 0)}), HasSubstr("at most 64"));
}

std::vector<std::string> ModelKeys(const std::string& family) {
  std::vector<std::string> keys = {GgufKey("general.architecture", 8, GgufString(family))};
  for (const auto& [key, value] : std::vector<std::pair<std::string, uint32_t>>{{"context_length", 16},
                                                                                {"embedding_length", 8},
                                                                                {"block_count", 1},
                                                                                {"feed_forward_length", 12},
                                                                                {"attention.head_count", 2}}) {
    keys.push_back(GgufKey(absl::StrCat(family, ".", key), 4, Little(value)));
  }
  keys.push_back(GgufKey(family + ".attention.layer_norm_rms_epsilon", 6, Little(1e-5f)));
  return keys;
}

absl::StatusOr<GgufModel> ModelOf(const std::string& bytes) {
  absl::StatusOr<GgufFile> file = Parse(bytes);
  if (!file.ok()) return file.status();
  return GgufModel::FromFile(*std::move(file));
}

TEST(GgufModelTest, RowsOfLlamasQueriesAreInTheirOrder) {
  std::string data;
  for (int i = 0; i < 64; ++i) data += Little(static_cast<float>(i));
  const std::vector<std::string> lines = {GgufTensorLine("blk.0.attn_q.weight", {8, 8}, 0, 0),
                                          GgufTensorLine("token_embd.weight", {8, 1}, 0, 256)};
  for (const std::string family : {"llama", "qwen2"}) {
    const std::string bytes = GgufBytes(ModelKeys(family), lines, data + std::string(32, 'x'));
    const absl::StatusOr<GgufModel> model = ModelOf(bytes);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->config()["model_type"], family);
    EXPECT_EQ(model->config()["num_key_value_heads"], 2);
    EXPECT_EQ(model->config()["head_dim"], 4);
    EXPECT_EQ(model->config()["vocab_size"], 1);
    EXPECT_EQ(model->config()["tie_word_embeddings"], true);
    const GgufModel::Tensor& queries = model->tensors()[1];
    EXPECT_EQ(queries.key, "model.layers.0.self_attn.q_proj.weight");
    std::vector<float> row(8);
    std::vector<int> order;
    for (int64_t i = 0; i < 8; ++i) {
      model->ReadRows(queries, i, 1, absl::MakeSpan(row));
      order.push_back(static_cast<int>(row[0]) / 8);
    }
    if (family == "llama") {
      EXPECT_THAT(order, ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
    } else {
      EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
    }
  }
}

std::vector<std::string> Gpt2Keys() {
  std::vector<std::string> keys = {GgufKey("general.architecture", 8, GgufString("gpt2"))};
  for (const auto& [key, value] : std::vector<std::pair<std::string, uint32_t>>{{"context_length", 16},
                                                                                {"embedding_length", 3},
                                                                                {"block_count", 1},
                                                                                {"feed_forward_length", 5},
                                                                                {"attention.head_count", 1}}) {
    keys.push_back(GgufKey("gpt2." + key, 4, Little(value)));
  }
  keys.push_back(GgufKey("gpt2.attention.layer_norm_epsilon", 6, Little(1e-5f)));
  return keys;
}

TEST(GgufModelTest, Gpt2sProjectionsAreTransposed) {
  std::string data;
  for (int i = 0; i < 15; ++i) data += Little(static_cast<float>(i));
  data.resize(64);
  data += std::string(32, '\0');
  const std::vector<std::string> lines = {GgufTensorLine("blk.0.ffn_up.weight", {3, 5}, 0, 0),
                                          GgufTensorLine("token_embd.weight", {3, 2}, 0, 64)};
  const absl::StatusOr<GgufModel> model = ModelOf(GgufBytes(Gpt2Keys(), lines, data));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->config()["model_type"], "gpt2");
  EXPECT_EQ(model->config()["n_positions"], 16);
  EXPECT_EQ(model->config()["n_inner"], 5);
  EXPECT_EQ(model->config()["vocab_size"], 2);
  EXPECT_EQ(model->config()["activation_function"], "gelu_new");
  EXPECT_EQ(model->config()["tie_word_embeddings"], true);
  const GgufModel::Tensor& up = model->tensors()[0];
  EXPECT_EQ(up.key, "transformer.h.0.mlp.c_fc.weight");
  EXPECT_THAT(up.shape, ElementsAre(3, 5));
  std::vector<float> rows(10);
  model->ReadRows(up, 1, 2, absl::MakeSpan(rows));
  EXPECT_THAT(rows, ElementsAre(1, 4, 7, 10, 13, 2, 5, 8, 11, 14));
  const GgufModel::Tensor& embedding = model->tensors()[1];
  EXPECT_EQ(embedding.key, "transformer.wte.weight");
  EXPECT_THAT(embedding.shape, ElementsAre(2, 3));
}

TEST(GgufModelTest, Gpt2RefusesWhatItDoesNotKnow) {
  const auto error = [](const std::string& key, const std::string& tensor) {
    std::vector<std::string> keys = Gpt2Keys();
    if (!key.empty()) keys.push_back(key);
    std::vector<std::string> lines = {GgufTensorLine("token_embd.weight", {8, 1}, 0, 0)};
    if (!tensor.empty()) lines.push_back(GgufTensorLine(tensor, {8}, 0, 32));
    return std::string(ModelOf(GgufBytes(keys, lines, std::string(64, 'x'))).status().message());
  };
  EXPECT_EQ(error("", ""), "");
  EXPECT_EQ(error(GgufKey("gpt2.attention.head_count_kv", 4, Little<uint32_t>(1)), ""), "");
  EXPECT_THAT(error(GgufKey("gpt2.attention.head_count_kv", 4, Little<uint32_t>(2)), ""), HasSubstr("as many heads"));
  EXPECT_THAT(error(GgufKey("gpt2.attention.layer_norm_rms_epsilon", 6, Little(1e-5f)), ""),
              HasSubstr("gpt2.attention.layer_norm_rms_epsilon"));
  EXPECT_THAT(error("", "blk.0.attn_q.weight"), HasSubstr("is not known of gpt2"));
  EXPECT_THAT(error("", "blk.0.ffn_gate.weight"), HasSubstr("is not known of gpt2"));
  EXPECT_THAT(error("", "rope_freqs.weight"), HasSubstr("is not known of gpt2"));
  EXPECT_THAT(error("", "blk.0.attn_qkv.weight"), HasSubstr("should be a matrix"));
}

// The configuration of a file with one key more and, if any are given, factors of frequencies.
absl::StatusOr<nlohmann::json> ConfigWith(const std::vector<std::string>& more,
                                          const std::vector<float>& factors = {}) {
  std::vector<std::string> keys = ModelKeys("llama");
  keys.insert(keys.end(), more.begin(), more.end());
  std::vector<std::string> lines = {GgufTensorLine("token_embd.weight", {8, 1}, 0, 0)};
  std::string data(32, 'x');
  if (!factors.empty()) lines.push_back(GgufTensorLine("rope_freqs.weight", {factors.size()}, 0, 32));
  for (const float factor : factors) data += Little(factor);
  const absl::StatusOr<GgufModel> model = ModelOf(GgufBytes(keys, lines, data + std::string(32, 'x')));
  if (!model.ok()) return model.status();
  EXPECT_EQ(model->tensors().size(), 1u);
  return model->config();
}

TEST(GgufModelTest, ScaledPositions) {
  const std::string linear = GgufKey("llama.rope.scaling.type", 8, GgufString("linear"));
  const std::string none = GgufKey("llama.rope.scaling.type", 8, GgufString("none"));
  const std::string four = GgufKey("llama.rope.scaling.factor", 6, Little(4.0f));
  const nlohmann::json by_four = {{"rope_type", "linear"}, {"factor", 4}};
  EXPECT_EQ((*ConfigWith({linear, four}))["rope_scaling"], by_four);
  EXPECT_EQ((*ConfigWith({four}))["rope_scaling"], by_four) << "the type is linear by default";
  EXPECT_EQ((*ConfigWith({}, {4, 4}))["rope_scaling"], by_four);
  EXPECT_FALSE(ConfigWith({none, four})->contains("rope_scaling"));
  EXPECT_FALSE(ConfigWith({linear})->contains("rope_scaling"));
  EXPECT_FALSE(ConfigWith({linear, GgufKey("llama.rope.scaling.factor", 6, Little(0.0f))})->contains("rope_scaling"));
  EXPECT_FALSE(ConfigWith({}, {1, 1})->contains("rope_scaling"));
  EXPECT_THAT(std::string(ConfigWith({linear, four}, {4, 4}).status().message()), HasSubstr("beside a factor"));
  EXPECT_THAT(std::string(ConfigWith({}, {1, 4, 4}).status().message()), HasSubstr("a factor for each pair"));
  EXPECT_THAT(std::string(ConfigWith({}, {4, 1}).status().message()), HasSubstr("holds other factors"));
}

TEST(GgufModelTest, MistralsAreLlamasWithAWindow) {
  EXPECT_EQ((*ConfigWith({}))["model_type"], "llama");
  EXPECT_EQ((*ConfigWith({GgufKey("llama.attention.sliding_window", 4, Little<uint32_t>(0))}))["model_type"], "llama");
  const auto config = ConfigWith({GgufKey("llama.attention.sliding_window", 4, Little<uint32_t>(7))});
  EXPECT_EQ((*config)["model_type"], "mistral");
  EXPECT_EQ((*config)["architectures"], nlohmann::json({"MistralForCausalLM"}));
  EXPECT_EQ((*config)["sliding_window"], 7);
}

TEST(GgufModelTest, RefusesWhatItDoesNotKnow) {
  const auto error = [](const std::string& key, const std::string& tensor, const std::string& family = "llama") {
    std::vector<std::string> keys = ModelKeys(family);
    if (!key.empty()) keys.push_back(key);
    std::vector<std::string> lines = {GgufTensorLine("token_embd.weight", {8, 1}, 0, 0)};
    if (!tensor.empty()) lines.push_back(GgufTensorLine(tensor, {8, 1}, 0, 32));
    return std::string(ModelOf(GgufBytes(keys, lines, std::string(64, 'x'))).status().message());
  };
  EXPECT_EQ(error("", ""), "");
  EXPECT_THAT(error("", "", "gemma"),
              HasSubstr("general.architecture \"gemma\" is not read; llama, qwen2, qwen3 and gpt2 are"));
  EXPECT_THAT(error(GgufKey("split.count", 2, Little<uint16_t>(3)), ""), HasSubstr("one of 3 parts"));
  EXPECT_THAT(error(GgufKey("llama.expert_count", 4, Little<uint32_t>(8)), ""), HasSubstr("llama.expert_count"));
  EXPECT_THAT(error(GgufKey("llama.rope.scaling.type", 8, GgufString("yarn")), ""), HasSubstr("\"yarn\""));
  EXPECT_THAT(error(GgufKey("llama.rope.dimension_count", 4, Little<uint32_t>(2)), ""), HasSubstr("heads have 4"));
  EXPECT_THAT(error("", "rope_freqs.weight"), HasSubstr("a factor for each pair of the 4 elements of a head"));
  EXPECT_THAT(error(GgufKey("qwen2.attention.sliding_window", 4, Little<uint32_t>(8)), "", "qwen2"),
              HasSubstr("qwen2.attention.sliding_window"));
  EXPECT_THAT(error("", "blk.00.attn_q.weight"), HasSubstr("is not known"));
  EXPECT_THAT(error("", "blk.0.attn_q.weight"), HasSubstr("does not divide into 2 heads"));
}

}  // namespace
}  // namespace bowline
