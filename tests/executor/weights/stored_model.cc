#include "tests/executor/weights/stored_model.h"

#include <gtest/gtest.h>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/executor/support/tiny_model.h"

namespace shardwise::exec::test {

Plan plan_of(const std::string& folder) {
  Plan plan;
  const Result<ModelSpec> model = read_model_file(folder + "/config.json");
  EXPECT_TRUE(model) << (model ? "" : to_string(model.problems()));
  plan.model = *model;
  plan.engine = *find_engine("shardwise");
  plan.cluster = *with_gpus(*find_cluster("laptop"), 1);
  plan.job.precision = DType::fp32;
  plan.job.loss = LossKernel::chunked;
  plan.job.sequence_length = golden_shape().sequence;
  return plan;
}

std::vector<float> stored_logits(const std::string& folder, const LayerShape& shape) {
  const Plan plan = plan_of(folder);
  const Result<HfWeights> weights = HfWeights::open(folder, plan);
  EXPECT_TRUE(weights) << (weights ? "" : to_string(weights.problems()));
  const WeightSource source = weights->source();
  return logits_of(plan.model, shape, [&](const std::string& name, const ParameterSpec& parameter) {
    UnitTensor tensor;
    tensor.name = name;
    std::vector<float> values(static_cast<std::size_t>(parameter.elements()));
    source(tensor, 0, values);
    return values;
  });
}

}  // namespace shardwise::exec::test
