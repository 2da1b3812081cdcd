#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "executor/device/device.h"
#include "executor/transformer/layer.h"
#include "planner/spec/json/reader.h"

namespace shardwise::exec {

/// The models of tests/golden/transformer.json.
const JsonValue& golden_models();
std::vector<std::string> golden_names();
/// The sizes that all of them were run with.
LayerShape golden_shape();
/// The model of one of them.
ModelSpec golden_model(const std::string& name);

/// tests/golden/make_transformer_golden.py's numbers of -1 to 1, exact in fp32.
std::vector<float> noise(const std::string& name, std::int64_t count);
std::vector<std::int64_t> golden_tokens(const ModelSpec& model, const LayerShape& shape);
std::vector<std::int64_t> golden_targets(const ModelSpec& model, const LayerShape& shape);

/// Expects a tensor to have the norm and the dot products that the file has of it, `expected`,
/// within a share of the norm.
void expect_golden_tensor(const std::string& name, const std::vector<float>& values,
                          const JsonValue& expected, double tolerance);

/// Where a model's weights come from, by the checkpoint's name.
using WeightsByName =
    std::function<std::vector<float>(const std::string& name, const ParameterSpec& parameter)>;
/// Those of tests/golden/make_transformer_golden.py.
std::vector<float> golden_weight(const std::string& name, const ParameterSpec& parameter);

/// One forward and backward of a whole model, in memory of exactly the sizes that its layers name.
struct ModelRun {
  LossSum loss;
  std::vector<float> logits;
  std::map<std::string, std::vector<float>> gradients;  // by the checkpoint's name
};
/// Platform that runs it; memory and streams are the device's.
struct Platform {
  Device& device;
  Compute& compute;
};
/// \param micro_batches  the same micro-batch so many times, all forward passes first
ModelRun run_model(const ModelSpec& model, const LayerShape& shape, const Platform& platform,
                   int micro_batches = 1);
/// On the CPU.
ModelRun run_model(const ModelSpec& model, const LayerShape& shape, int threads,
                   int micro_batches = 1);
/// [batch, sequence, vocabulary] for golden_tokens and fp32 weights.
std::vector<float> logits_of(const ModelSpec& model, const LayerShape& shape,
                             const WeightsByName& weights);

}  // namespace shardwise::exec
