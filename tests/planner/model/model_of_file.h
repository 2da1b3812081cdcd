#pragma once

#include <gtest/gtest.h>

#include <string>

#include "planner/model/hf_config.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise::test {

/// One of configs/models.
inline ModelSpec model_of_file(const std::string& name) {
  Result<ModelSpec> model = load_model("configs/models/" + name + ".json");
  EXPECT_TRUE(model.ok()) << name << (model.ok() ? "" : "\n" + to_string(model.problems()));
  return model.ok() ? *model : ModelSpec{};
}

}  // namespace shardwise::test
