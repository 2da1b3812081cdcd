#include "tests/executor/support/tiny_model.h"

#include <gtest/gtest.h>

#include <memory>

#include "executor/kernels/linear.h"
#include "executor/transformer/norm_of.h"
#include "planner/model/hf_config.h"

namespace shardwise::exec {
namespace {

constexpr std::uint64_t kMask = 0xFFFFFFFF;

std::uint64_t name_hash(const std::string& name) {
  std::uint64_t value = 0x811C9DC5;
  for (const char each : name) {
    value = ((value ^ static_cast<unsigned char>(each)) * 0x01000193) & kMask;
  }
  return value;
}

std::vector<std::byte> stored(const std::vector<float>& values, DType storage) {
  const std::size_t each = storage == DType::fp32 ? 4 : 2;
  std::vector<std::byte> bytes(values.size() * each);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (storage == DType::fp32) {
      reinterpret_cast<float*>(bytes.data())[i] = values[i];
    } else {
      reinterpret_cast<Bf16*>(bytes.data())[i] = from_float<Bf16>(values[i]);
    }
  }
  return bytes;
}

float element(const std::vector<std::byte>& bytes, std::size_t index, DType storage) {
  return storage == DType::fp32 ? reinterpret_cast<const float*>(bytes.data())[index]
                                : to_float(reinterpret_cast<const Bf16*>(bytes.data())[index]);
}

/// A layer with its tensors.
struct Part {
  std::unique_ptr<Layer> layer;
  std::vector<std::string> names;
  std::vector<std::vector<std::byte>> weights;
  std::vector<std::vector<std::byte>> gradients;
  std::vector<const std::byte*> weight_places;
  std::vector<std::byte*> gradient_places;
};

std::string numbered(std::string name, int block) {
  const std::size_t at = name.find("{layer}");
  return at == std::string::npos ? name : name.replace(at, 7, std::to_string(block));
}

class Model {
 public:
  Model(const ModelSpec& model, const LayerShape& shape, const WeightsByName& weights)
      : model_(model), shape_(shape), weights_(weights) {
    int block = 0;
    for (const int kind : model.layers) {
      const LayerSpec& spec = model.kinds[static_cast<std::size_t>(kind)];
      parts_.push_back(make(spec, block));
      if (spec.role == LayerRole::block) ++block;
    }
    std::int64_t tables = 0;
    for (const Part& part : parts_) tables = std::max(tables, part.layer->bytes().tables);
    tables_.resize(static_cast<std::size_t>(tables));
    if (tables > 0) fill_tables(model, shape, tables_.data());
    tokens_ = golden_tokens(model, shape);
    targets_ = golden_targets(model, shape);
  }

  void forward(Workers& workers, std::vector<std::vector<std::byte>>& saved) {
    stream_.assign(static_cast<std::size_t>(shape_.tokens() * model_.hidden_size) * element_bytes(),
                   std::byte{});
    for (const Part& part : parts_) {
      const LayerBytes bytes = part.layer->bytes();
      saved.emplace_back(static_cast<std::size_t>(bytes.saved));
      std::vector<std::byte> workspace(static_cast<std::size_t>(bytes.forward_workspace));
      ForwardPass pass;
      pass.weights = part.weight_places;
      pass.stream = stream_.data();
      pass.inputs = tokens_.data();
      pass.saved = saved.back().data();
      pass.workspace = workspace.data();
      pass.tables = tables_.data();
      part.layer->forward(pass, workers);
    }
  }

  void backward(Workers& workers, std::vector<std::vector<std::byte>>& saved, LossSum& loss) {
    for (std::size_t i = parts_.size(); i-- > 0;) {
      const Part& part = parts_[i];
      const LayerBytes bytes = part.layer->bytes();
      std::vector<std::byte> workspace(static_cast<std::size_t>(bytes.backward_workspace));
      BackwardPass pass;
      pass.weights = part.weight_places;
      pass.gradients = part.gradient_places;
      pass.stream = stream_.data();
      pass.saved = saved[i].data();
      pass.workspace = workspace.data();
      pass.tables = tables_.data();
      pass.targets = targets_.data();
      pass.loss = &loss;
      part.layer->recompute(pass, workers);
      part.layer->backward(pass, workers);
    }
  }

  /// From the stream that forward left: in fp32, as nobody needs them whole but this test.
  std::vector<float> logits(Workers& workers) const {
    const Part& head = parts_.back();
    const LayerSpec& spec = model_.kinds[static_cast<std::size_t>(model_.layers.back())];
    const std::int64_t tokens = shape_.tokens();
    const std::int64_t hidden = model_.hidden_size;
    std::vector<float> x(static_cast<std::size_t>(tokens * hidden));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = element(stream_, i, shape_.storage);
    std::vector<std::vector<std::byte>> wide;
    std::vector<const std::byte*> places;
    for (const std::byte* place : head.weight_places) {
      const std::size_t index = places.size();
      const bool own = index < head.weights.size();
      const auto& bytes = own ? head.weights[index] : parts_.front().weights.front();
      std::vector<float> values(bytes.size() / element_bytes());
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = element(bytes, i, shape_.storage);
      EXPECT_EQ(place, bytes.data());
      wide.push_back(stored(values, DType::fp32));
      places.push_back(wide.back().data());
    }
    const Weights<float> weights(places);
    const NormShape shape = {tokens, 1,      hidden,
                             hidden, hidden, static_cast<float>(model_.numerics.norm_epsilon)};
    std::vector<float> statistics(static_cast<std::size_t>(2 * tokens));
    norm_forward<float>(spec.operations.front().rms, shape, parameters_of(spec, "final_norm"),
                        weights, x.data(), x.data(), statistics.data(), workers);
    std::vector<float> logits(static_cast<std::size_t>(tokens * model_.vocab_size));
    linear_forward<float>({tokens, hidden, model_.vocab_size, hidden, model_.vocab_size, false},
                          x.data(), weights.weight(parameters_of(spec, "lm_head")), nullptr,
                          logits.data(), false, workers);
    return logits;
  }

  std::map<std::string, std::vector<float>> gradients() const {
    std::map<std::string, std::vector<float>> result;
    for (const Part& part : parts_) {
      for (std::size_t i = 0; i < part.names.size(); ++i) {
        std::vector<float>& values = result[part.names[i]];
        const std::size_t each = shape_.gradients == DType::fp32 ? 4 : 2;
        values.resize(part.gradients[i].size() / each);
        for (std::size_t k = 0; k < values.size(); ++k) {
          values[k] = element(part.gradients[i], k, shape_.gradients);
        }
      }
    }
    return result;
  }

 private:
  Part make(const LayerSpec& spec, int block) {
    Part part;
    part.layer = make_layer(model_, spec, shape_);
    for (const ParameterSpec& parameter : spec.parameters) {
      const std::string name = numbered(parameter.name, block);
      part.names.push_back(name);
      part.weights.push_back(stored(weights_(name, parameter), shape_.storage));
      part.gradients.emplace_back(
          static_cast<std::size_t>(parameter.elements() * bytes_of(shape_.gradients)));
      part.weight_places.push_back(part.weights.back().data());
      part.gradient_places.push_back(part.gradients.back().data());
    }
    if (spec.role == LayerRole::head && model_.tie_word_embeddings) {
      part.weight_places.push_back(parts_.front().weight_places.front());
      part.gradient_places.push_back(parts_.front().gradient_places.front());
    }
    return part;
  }
  std::size_t element_bytes() const { return shape_.storage == DType::fp32 ? 4 : 2; }

  const ModelSpec& model_;
  LayerShape shape_;
  const WeightsByName& weights_;
  std::vector<Part> parts_;
  std::vector<std::byte> tables_;
  std::vector<std::byte> stream_;
  std::vector<std::int64_t> tokens_;
  std::vector<std::int64_t> targets_;
};

}  // namespace

const JsonValue& golden_models() {
  static const Result<JsonValue> kGolden = read_json("tests/golden/transformer.json");
  EXPECT_TRUE(kGolden.ok()) << (kGolden.ok() ? "" : to_string(kGolden.problems()));
  return *kGolden;
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& [name, value] : golden_models().find("models")->members) names.push_back(name);
  return names;
}

LayerShape golden_shape() {
  LayerShape shape;
  shape.batch = golden_models().find("batch")->integer;
  shape.sequence = golden_models().find("sequence")->integer;
  return shape;
}

ModelSpec golden_model(const std::string& name) {
  const JsonValue* entry = golden_models().find("models")->find(name);
  Result<ModelSpec> model = read_model(*entry->find("config"), "transformer.json", name);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : to_string(model.problems()));
  return *model;
}

std::vector<float> noise(const std::string& name, std::int64_t count) {
  const std::uint64_t seed = name_hash(name);
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t x = (static_cast<std::uint64_t>(i) * 0x85EBCA77 + seed) & kMask;
    x ^= x >> 15U;
    x = (x * 0x2C1B3C6D) & kMask;
    x ^= x >> 12U;
    x = (x * 0x297A2D39) & kMask;
    x ^= x >> 15U;
    values.push_back(static_cast<float>(static_cast<double>(x >> 8U) / 8388608.0 - 1.0));
  }
  return values;
}

std::vector<float> golden_weight(const std::string& name, const ParameterSpec& parameter) {
  std::vector<float> values = noise(name, parameter.elements());
  for (float& each : values) {
    if (parameter.shape.size() > 1) {
      each /= 4;
    } else {
      each = name.ends_with(".bias") ? each / 8 : 1 + each / 4;
    }
  }
  return values;
}

std::vector<std::int64_t> golden_tokens(const ModelSpec& model, const LayerShape& shape) {
  std::vector<std::int64_t> tokens;
  for (const float each : noise("tokens", shape.tokens())) {
    const double share = (static_cast<double>(each) + 1) / 2;
    tokens.push_back(static_cast<std::int64_t>(share * static_cast<double>(model.vocab_size)));
  }
  return tokens;
}

std::vector<std::int64_t> golden_targets(const ModelSpec& model, const LayerShape& shape) {
  const std::vector<std::int64_t> tokens = golden_tokens(model, shape);
  std::vector<std::int64_t> targets;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    targets.push_back(i % 5 == 0 ? kIgnored : tokens[(i + 1) % tokens.size()]);
  }
  return targets;
}

ModelRun run_model(const ModelSpec& model, const LayerShape& shape, int threads,
                   int micro_batches) {
  Workers workers(threads);
  const WeightsByName weights = golden_weight;
  Model running(model, shape, weights);
  ModelRun run;
  std::vector<std::vector<std::vector<std::byte>>> saved(static_cast<std::size_t>(micro_batches));
  for (auto& each : saved) running.forward(workers, each);
  run.logits = running.logits(workers);
  for (auto& each : saved) running.backward(workers, each, run.loss);
  run.gradients = running.gradients();
  return run;
}

std::vector<float> logits_of(const ModelSpec& model, const LayerShape& shape,
                             const WeightsByName& weights) {
  Workers workers(1);
  Model running(model, shape, weights);
  std::vector<std::vector<std::byte>> saved;
  running.forward(workers, saved);
  return running.logits(workers);
}

}  // namespace shardwise::exec
