// Weights that transformers stored give the logits that it computes from them
// (tests/golden/make_weights_golden.py).

#include <gtest/gtest.h>

#include <cmath>

#include "tests/executor/support/tiny_model.h"
#include "tests/executor/weights/stored_model.h"

namespace shardwise::exec::test {
namespace {

// As for the models of tests/golden/transformer.json: fp32 against double.
constexpr double kTolerance = 2e-5;

class StoredWeights : public testing::TestWithParam<const char*> {};

TEST_P(StoredWeights, GiveTheLogitsOfTransformers) {
  const std::string name = GetParam();
  const Result<JsonValue> golden = read_json("tests/golden/weights.json");
  ASSERT_TRUE(golden);
  const JsonValue* const expected = golden->find("logits")->find(name);
  const std::vector<float> logits = stored_logits("tests/golden/weights/" + name, golden_shape());
  const double norm = expected->find("norm")->number;
  double squares = 0;
  for (const float each : logits) squares += static_cast<double>(each) * static_cast<double>(each);
  EXPECT_NEAR(std::sqrt(squares), norm, kTolerance * norm);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::vector<float> vector =
        noise("logits/" + std::to_string(i), static_cast<std::int64_t>(logits.size()));
    double dot = 0;
    for (std::size_t k = 0; k < logits.size(); ++k) {
      dot += static_cast<double>(logits[k]) * static_cast<double>(vector[k]);
    }
    EXPECT_NEAR(dot, expected->find("dots")->elements[i].number, kTolerance * norm) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, StoredWeights, testing::Values("gpt2", "llama", "qwen3"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace shardwise::exec::test
