// Parameter counts of the catalogue, by two roads we did not make: Hugging Face's model code, and
// what the models' owners published.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "planner/model/build.h"
#include "planner/model/hf_config.h"
#include "planner/model/parameter_counts.h"
#include "planner/spec/json/catalogue.h"
#include "tests/planner/model/model_of_file.h"

namespace shardwise {
namespace {

const JsonValue& golden_file(const std::string& file) {
  static std::map<std::string, Result<JsonValue>> files;
  const auto at = files.try_emplace(file, read_json("tests/golden/" + file)).first;
  EXPECT_TRUE(at->second.ok());
  return *at->second;
}

/// The count of `model` that a published figure names.
std::int64_t counted(const ModelSpec& model, const std::string& convention) {
  const ParameterCounts counts = count_parameters(model);
  const std::map<std::string, std::int64_t> by_convention = {
      {"total", counts.total},
      {"main_model", counts.main_model()},
      // Blocks and norms: what scaling laws count (Kaplan et al., arXiv:2001.08361, section 2.1).
      {"non_embedding", counts.main_model() - counts.vocabulary - counts.positions},
      {"active", counts.active},
      {"active_without_embedding", counts.active - model.vocab_size * model.hidden_size},
  };
  return by_convention.at(convention);
}

/// Elements of the tensors that a published figure has and we have not ("beyond"), or the reverse.
std::int64_t listed(const JsonValue& row, const char* key) {
  const JsonValue* tensors = row.find(key);
  if (tensors == nullptr) return 0;
  std::int64_t sum = 0;
  for (const JsonValue& tensor : tensors->elements) {
    std::int64_t elements = 1;
    for (const JsonValue& extent : tensor.find("shape")->elements) elements *= extent.integer;
    sum += elements;
  }
  return sum;
}

TEST(ParameterCounts, AreThoseOfHuggingFaceForTheWholeCatalogue) {
  std::vector<std::string> names;
  for (const auto& [name, count] :
       golden_file("parameter_counts.json").find("parameters")->members) {
    names.push_back(name);
    // transformers leaves out multi-token-prediction layers.
    EXPECT_EQ(count_parameters(test::model_of_file(name)).main_model(), count.integer) << name;
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, catalogue_names("models"))
      << "run tests/golden/parameter_counts.py after a change of configs/models";
}

TEST(ParameterCounts, AreExactlyThePublishedOnes) {
  std::set<std::string> models;
  for (const JsonValue& row : golden_file("published_counts.json").find("exact")->elements) {
    const std::string& name = row.find("model")->string;
    models.insert(name);
    EXPECT_EQ(counted(test::model_of_file(name), row.find("counts")->string) +
                  listed(row, "beyond") - listed(row, "without"),
              row.find("published")->integer)
        << name << ": " << row.find("source")->string;
  }
  EXPECT_GE(models.size(), 60U);
}

// Cards round or cut the last digit: a figure is met when ours is less than one unit of it away.
TEST(ParameterCounts, AreTheRoundedOnesOfModelCards) {
  for (const JsonValue& row : golden_file("published_counts.json").find("rounded")->elements) {
    const std::string& name = row.find("model")->string;
    const double published = row.find("published_billions")->number;
    double unit = 1;
    while (std::abs(std::round(published / unit) - published / unit) > 1e-6) unit /= 10;
    const double ours =
        static_cast<double>(counted(test::model_of_file(name), row.find("counts")->string)) / 1e9;
    EXPECT_LT(std::abs(ours - published), unit) << name << ": " << row.find("source")->string;
  }
}

TEST(ParameterCounts, OfLlama31With8BIsThatOfItsCard) {
  EXPECT_EQ(test::model_of_file("llama-3.1-8b").parameter_count(), 8'030'261'248);
}

/// A GPT as Megatron-LM trains it.
TransformerConfig megatron_gpt(std::int64_t hidden, std::int64_t layers, std::int64_t heads) {
  TransformerConfig gpt;
  gpt.hidden_size = hidden;
  gpt.num_hidden_layers = layers;
  gpt.num_attention_heads = heads;
  gpt.intermediate_size = 4 * hidden;
  gpt.vocab_size = 51200;
  gpt.max_position_embeddings = 2048;
  gpt.tie_word_embeddings = true;
  gpt.norm = NormKind::layernorm;
  gpt.norm_bias = gpt.qkv_bias = gpt.attention_output_bias = gpt.mlp_bias = true;
  gpt.gated_mlp = false;
  gpt.position_embedding = PositionEmbedding::learned;
  return gpt;
}

// Narayanan et al., arXiv:2104.04473, Table 1 and equation 2.
TEST(ParameterCounts, OfModelsMadeByHandAreThoseOfMegatron) {
  struct Row {
    double billions;
    std::int64_t heads, hidden, layers;
  };
  const std::vector<Row> table = {{1.7, 24, 2304, 24},      {3.6, 32, 3072, 30},
                                  {7.5, 32, 4096, 36},      {18.4, 48, 6144, 40},
                                  {39.1, 64, 8192, 48},     {76.1, 80, 10240, 60},
                                  {145.6, 96, 12288, 80},   {310.1, 128, 16384, 96},
                                  {529.6, 128, 20480, 105}, {1008.0, 160, 25600, 128}};
  for (const Row& row : table) {
    const auto model = make_model(megatron_gpt(row.hidden, row.layers, row.heads), "gpt");
    ASSERT_TRUE(model.ok());
    const auto h = static_cast<double>(row.hidden);
    const auto l = static_cast<double>(row.layers);
    const double equation = 12 * l * h * h * (1 + 13 / (12 * h) + (51200 + 2048) / (12 * l * h));
    const auto count = static_cast<double>(model->parameter_count());
    EXPECT_NEAR(count / 1e9, row.billions, 0.05) << row.billions;
    // The equation leaves out the final norm.
    EXPECT_NEAR(count - 2 * h, equation, 1) << row.billions;
  }
}

// llm-foundry's benchmarks state exact counts: MPT with biases and learned positions, one row a
// length of sequence. Source:
// mosaicml/llm-foundry@8c8dd48f7216:scripts/train/benchmarking/README.md
TEST(ParameterCounts, OfMptMadeByHandAreThoseOfLlmFoundry) {
  struct Row {
    std::int64_t parameters, hidden, layers, heads, sequence_length;
  };
  const std::vector<Row> table = {
      {64'862'437'376, 8192, 80, 64, 2048},  {30'019'254'272, 7168, 48, 56, 8192},
      {13'011'240'960, 5120, 40, 40, 32768}, {6'918'905'856, 4096, 32, 32, 65536},
      {2'651'837'440, 2560, 32, 20, 2048},   {1'315'950'592, 2048, 24, 16, 2048},
      {760'470'528, 1536, 24, 12, 2048},     {354'412'544, 1024, 24, 16, 512},
      {124'131'840, 768, 12, 12, 512}};
  for (const Row& row : table) {
    TransformerConfig mpt = megatron_gpt(row.hidden, row.layers, row.heads);
    mpt.vocab_size = 50368;
    mpt.max_position_embeddings = row.sequence_length;
    mpt.fused_qkv = true;
    const auto model = make_model(mpt, "mpt");
    ASSERT_TRUE(model.ok());
    EXPECT_EQ(model->parameter_count(), row.parameters);
  }
}

}  // namespace
}  // namespace shardwise
