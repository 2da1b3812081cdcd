#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "executor/storage/safetensors_writer.h"
#include "executor/weights/config_json.h"
#include "executor/weights/hf_weights.h"
#include "planner/model/hf_config.h"
#include "planner/spec/json/catalogue.h"
#include "tests/executor/weights/stored_model.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::Scratch;
using testing::HasSubstr;

constexpr const char* kQwen = "tests/golden/weights/qwen3";

// Every model of the catalogue that runs.
TEST(ConfigJson, IsReadAsTheModelItWasWrittenFrom) {
  int models = 0;
  for (const std::string& name : catalogue_names("models")) {
    const Result<ModelSpec> model = load_model(name);
    ASSERT_TRUE(model) << name;
    JobSpec job;
    job.precision = DType::fp32;
    job.loss = LossKernel::chunked;
    if (!cannot_run(*model, job).empty()) continue;
    const Result<JsonValue> json = parse_json(config_json(*model), name);
    ASSERT_TRUE(json) << name;
    Result<ModelSpec> again = read_model(*json, name, model->name);
    ASSERT_TRUE(again) << to_string(again.problems());
    again->source = model->source;
    EXPECT_EQ(*again, *model) << name << "\n" << config_json(*model);
    ++models;
  }
  EXPECT_GT(models, 10);
}

float from(StoredType type, std::uint16_t bits) {
  float value = 0;
  to_floats(type, std::as_bytes(std::span(&bits, 1)), {&value, 1});
  return value;
}

// Source of the binary16 numbers: IEEE 754-2008, section 3.6, table 3.5, worked out by hand.
TEST(ToFloats, WidensEveryKindOfNumber) {
  EXPECT_EQ(from(StoredType::f16, 0x3C00), 1.0F);
  EXPECT_EQ(from(StoredType::f16, 0xC000), -2.0F);
  EXPECT_EQ(from(StoredType::f16, 0x7BFF), 65504.0F);
  EXPECT_EQ(from(StoredType::f16, 0x3555), 0.333251953125F);
  EXPECT_EQ(from(StoredType::f16, 0x0400), 0x1p-14F);
  EXPECT_EQ(from(StoredType::f16, 0x03FF), 1023 * 0x1p-24F);
  EXPECT_EQ(from(StoredType::f16, 0x8001), -0x1p-24F);
  EXPECT_TRUE(std::signbit(from(StoredType::f16, 0x8000)));
  EXPECT_EQ(from(StoredType::f16, 0x7C00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(from(StoredType::f16, 0x7E01)));
  EXPECT_EQ(from(StoredType::bf16, 0x3F80), 1.0F);
  EXPECT_EQ(from(StoredType::bf16, 0xC049), -3.140625F);
  const float wide = 1.2345678F;
  float same = 0;
  to_floats(StoredType::f32, std::as_bytes(std::span(&wide, 1)), {&same, 1});
  EXPECT_EQ(same, wide);
}

std::string refusal(const std::string& folder, const Plan& plan) {
  const auto weights = HfWeights::open(folder, plan);
  EXPECT_FALSE(weights);
  return weights ? "" : to_string(weights.problems());
}

TEST(HfWeights, NameEveryTensorThatIsMissingForeignOrOfAnotherShape) {
  const Plan plan = plan_of(kQwen);
  const Scratch scratch;
  SafetensorsWriter writer(scratch.path("model.safetensors"),
                           {{"model.norm.weight", StoredType::i32, {16}},
                            {"model.embed_tokens.weight", StoredType::f32, {16, 96}},
                            {"model.layers.2.mlp.up_proj.weight", StoredType::bf16, {24, 16}},
                            {"lm_head.weight", StoredType::bf16, {96, 16}}});
  writer.write(std::vector<std::byte>(64 + 4 * 16 * 96 + 2 * 24 * 16 + 2 * 96 * 16));
  writer.finish();
  const std::string said = refusal(scratch.folder(), plan);
  EXPECT_THAT(said, HasSubstr("model.norm.weight is I32\n    F32, BF16 and F16 are read"));
  EXPECT_THAT(said, HasSubstr("model.embed_tokens.weight is [16, 96], the plan's is [96, 16]"));
  EXPECT_THAT(said,
              HasSubstr("model.layers.2.mlp.up_proj.weight is no tensor of the plan's model"));
  EXPECT_THAT(said, HasSubstr("there is no tensor model.layers.1."));
  EXPECT_THAT(said, Not(HasSubstr("lm_head")));
}

// Weights that fit in every shape and would compute something else.
TEST(HfWeights, RefuseAConfigurationThatComputesSomethingElse) {
  Plan plan = plan_of(kQwen);
  plan.model.numerics.rope_theta = 5000;
  EXPECT_THAT(refusal(kQwen, plan),
              HasSubstr("tests/golden/weights/qwen3/config.json: --init-from: "
                        "is of a model with another norm_epsilon"));
  plan = plan_of(kQwen);
  plan.model.model_type = "qwen2";
  EXPECT_THAT(refusal(kQwen, plan), HasSubstr("another model_type"));
}

TEST(HfWeights, RefuseAFolderWithoutWeights) {
  const Scratch scratch;
  EXPECT_THAT(refusal(scratch.folder(), plan_of(kQwen)), HasSubstr("model.safetensors"));
  EXPECT_THAT(refusal("no/such/folder", plan_of(kQwen)), HasSubstr("no/such/folder"));
}

}  // namespace
}  // namespace shardwise::exec::test
