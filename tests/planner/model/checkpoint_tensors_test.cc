// Names and shapes of every tensor, against the state dict of Hugging Face's own model classes.
#include "planner/model/checkpoint_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "planner/model/hf_config.h"

namespace shardwise {
namespace {

using Shapes = std::map<std::string, std::vector<std::int64_t>>;

/// What tests/golden/parameter_counts.py --tensors saw transformers build.
const JsonValue& golden_tensors() {
  static const Result<JsonValue> kText = read_json("tests/golden/checkpoint_tensors.json");
  EXPECT_TRUE(kText.ok());
  return *kText;
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const JsonMember& member : golden_tensors().find("families")->members)
    names.push_back(member.key);
  return names;
}

class CheckpointTensors : public testing::TestWithParam<std::string> {};

TEST_P(CheckpointTensors, AreThoseOfHuggingFace) {
  const JsonValue& entry = *golden_tensors().find("families")->find(GetParam());
  Shapes expected;
  for (const auto& [name, shape] : entry.find("tensors")->members) {
    for (const JsonValue& extent : shape.elements) expected[name].push_back(extent.integer);
  }

  const Result<ModelSpec> model = read_model(*entry.find("config"), "small.json", GetParam());
  ASSERT_TRUE(model.ok()) << to_string(model.problems());
  Shapes built;
  for (const CheckpointTensor& tensor : checkpoint_tensors(*model)) {
    EXPECT_TRUE(built.emplace(tensor.name, tensor.shape).second) << tensor.name << " twice";
  }
  EXPECT_EQ(built, expected);
}

INSTANTIATE_TEST_SUITE_P(Families, CheckpointTensors, testing::ValuesIn(cases()),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace shardwise
