#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "planner/export/facts/plan_facts.h"
#include "planner/model/hf_config.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/json/reader.h"

namespace shardwise {
namespace {

std::string number_of(const nlohmann::json& config, const std::string& key) {
  return fmt::format("{}", config.at(key).get<double>());
}

// Of each model that says them: what Megatron-LM is told is what config.json has.
TEST(ModelFacts, HaveTheNumericsOfTheirFile) {
  int known = 0;
  for (const std::string& name : catalogue_names("models")) {
    const Result<ModelSpec> model = load_model(name);
    ASSERT_TRUE(model) << name;
    const Values facts = model_facts(*model);
    if (facts.at("model.numerics_known") != "true") continue;
    const auto config = nlohmann::json::parse(*read_file(find_in_catalogue("models", name)->path));
    if (!config.contains("rms_norm_eps") || !config.contains("rope_theta")) continue;
    ++known;
    EXPECT_EQ(facts.at("model.norm_epsilon"), number_of(config, "rms_norm_eps")) << name;
    EXPECT_EQ(facts.at("model.rope_theta"), number_of(config, "rope_theta")) << name;
    const bool scaled = config.contains("rope_scaling") && config.at("rope_scaling").is_object();
    EXPECT_EQ(facts.at("model.rope_scaling") != "none", scaled) << name;
  }
  EXPECT_GE(known, 40);
}

}  // namespace
}  // namespace shardwise
