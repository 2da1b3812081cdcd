// Plans of everything in the catalogue; here because models and engines are above the vocabulary.
#include "planner/spec/plan/plan.h"

#include <gtest/gtest.h>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/planner/search/reread.h"

namespace shardwise {
namespace {

Plan sample_plan() {
  Plan plan;
  plan.model = *load_model("gpt2-tiny");
  plan.cluster = *find_cluster("dgx-h100");
  plan.engine = *find_engine("megatron_ddp");
  plan.job.global_batch_size = 32;
  return plan;
}

void expect_survives(const Plan& plan) {
  const std::string text = to_json(plan);
  const Result<Plan> read = reread(text);
  ASSERT_TRUE(read.ok()) << to_string(read.problems());
  EXPECT_EQ(read->layout, plan.layout);
  EXPECT_EQ(read->job, plan.job);
  EXPECT_EQ(read->engine, plan.engine);
  EXPECT_EQ(read->cluster, plan.cluster);
  EXPECT_EQ(read->model, plan.model);
  EXPECT_EQ(to_json(*read), text);
  EXPECT_EQ(digest(*read), digest(plan));
}

TEST(Plan, OfEveryModelSurvivesJson) {
  Plan plan = sample_plan();
  for (const std::string& name : catalogue_names("models")) {
    SCOPED_TRACE(name);
    plan.model = *load_model(name);
    expect_survives(plan);
  }
}

TEST(Plan, OnEveryClusterSurvivesJson) {
  Plan plan = sample_plan();
  for (const std::string& name : catalogue_names("clusters")) {
    SCOPED_TRACE(name);
    plan.cluster = *find_cluster(name);
    expect_survives(plan);
  }
}

TEST(Plan, WithEveryEngineSurvivesJson) {
  Plan plan = sample_plan();
  for (const std::string& name : engine_names()) {
    SCOPED_TRACE(name);
    plan.engine = *find_engine(name);
    expect_survives(plan);
  }
}

TEST(Plan, NeedsNoCatalogue) {
  Plan plan = sample_plan();
  plan.model.name = plan.cluster.name = plan.cluster.gpu.name = plan.engine.name = "unheard-of";
  expect_survives(plan);
}

TEST(Plan, DigestChangesWithEveryPart) {
  const Plan plan = sample_plan();
  Plan other = plan;
  other.layout.micro_batch_size = 2;
  EXPECT_NE(digest(plan), digest(other));
  other = plan;
  other.job.sequence_length = 8;
  EXPECT_NE(digest(plan), digest(other));
  other = plan;
  other.cluster.gpu.tdp_watts += 1;
  EXPECT_NE(digest(plan), digest(other));
  EXPECT_EQ(digest(plan).size(), 64U);
}

TEST(Plan, ReaderRefusesUnknownKeysAndMissingParts) {
  const Result<Plan> read =
      reread("{\n\"schema\": \"shardwise.plan/1\",\n\"layuot\": {},\n\"job\": {\"seq\": 1}}");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(to_string(read.problems()),
            "plan.json:1:1: /layout: missing\n"
            "plan.json:1:1: /engine: missing\n"
            "plan.json:1:1: /cluster: missing\n"
            "plan.json:1:1: /model: missing\n"
            "plan.json:3:11: /layuot: unknown field\n"
            "    did you mean layout?\n"
            "plan.json:4:16: /job/seq: unknown field\n"
            "6 problems, nothing was run\n");
}

TEST(Plan, ReaderNamesThePlaceOfAProblemInsideTheGpu) {
  std::string text = to_json(sample_plan());
  const std::string key = "\"tdp_watts\": ";
  text.insert(text.find(key) + key.size(), "-");
  const Result<Plan> read = reread(text);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.problems().front().path, "/cluster/gpu/tdp_watts");
  EXPECT_EQ(read.problems().front().message, "-700 is too small");
}

}  // namespace
}  // namespace shardwise
