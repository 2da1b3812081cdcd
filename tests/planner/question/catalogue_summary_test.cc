// Models, clusters and GPUs for lists and menus.
#include "planner/question/catalogue_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/spec/json/catalogue.h"

namespace shardwise {
namespace {

template <class Summary>
const Summary& named(const std::vector<Summary>& all, const std::string& name) {
  const auto at = std::ranges::find(all, name, &Summary::name);
  EXPECT_NE(at, all.end()) << name;
  return *at;
}

// Every file of ours can be read.
TEST(CatalogueSummary, HasEveryEntry) {
  EXPECT_EQ(model_summaries().size(), catalogue_names("models").size());
  EXPECT_EQ(cluster_summaries().size(), catalogue_names("clusters").size());
  EXPECT_EQ(gpu_summaries().size(), catalogue_names("gpus").size());
  EXPECT_EQ(collectives_summaries().size(), catalogue_names("collectives").size());
  EXPECT_EQ(engine_summaries().size(), engine_names().size());
}

// mistralai/Mixtral-8x7B-v0.1: 46.7 B parameters, 12.9 B active, says its model card.
TEST(CatalogueSummary, HasALineForEachModel) {
  const std::vector<ModelSummary> models = model_summaries();
  EXPECT_EQ(line_of(named(models, "mixtral-8x7b")), "46.7 B parameters, 12.9 B active, mixtral");
  EXPECT_EQ(line_of(named(models, "llama-3.1-8b")), "8.03 B parameters, llama");
}

TEST(CatalogueSummary, HasALineForEachClusterAndGpu) {
  const std::vector<ClusterSummary> clusters = cluster_summaries();
  const ClusterSummary& dgx = named(clusters, "dgx-h100");
  EXPECT_EQ(dgx.gpus_per_node, 8);
  EXPECT_THAT(line_of(dgx), testing::StartsWith("8 x " + dgx.gpu + " a node"));
  const std::vector<GpuSummary> gpus = gpu_summaries();
  const GpuSummary& h100 = named(gpus, dgx.gpu);
  EXPECT_THAT(line_of(h100), testing::HasSubstr(" in bf16, " + h100.label));
  for (const ClusterSummary& each : clusters) named(gpus, each.gpu);
  EXPECT_EQ(line_of(ClusterSummary{"mine", "", "h100", 4, 2.5}),
            "4 x h100 a node, $2.50 a GPU-hour");
}

TEST(CatalogueSummary, HasTheAxesOfEachEngine) {
  for (const EngineSummary& each : engine_summaries()) {
    const std::string& name = each.engine->name;
    EXPECT_EQ(std::ranges::count(each.axes, "pp") == 1, each.engine->pipeline) << name;
    if (name == "shardwise" || name == "deepspeed") {
      EXPECT_EQ(each.executed, name == "shardwise");
    }
  }
}

}  // namespace
}  // namespace shardwise
