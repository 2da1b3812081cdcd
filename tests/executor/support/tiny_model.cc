#include "tests/executor/support/tiny_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "executor/device/cpu/cpu_device.h"
#include "executor/kernels/compute/cpu_compute.h"
#include "executor/transformer/weights.h"
#include "planner/model/hf_config.h"

namespace shardwise::exec {
namespace {

constexpr float kLossScale = 1;
constexpr std::uint64_t kMask = 0xFFFFFFFF;

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

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

/// A layer with its tensors.
struct Part {
  std::unique_ptr<Layer> layer;
  std::vector<std::string> names;
  std::vector<DeviceMemory> weights;
  std::vector<DeviceMemory> gradients;
  std::vector<const std::byte*> weight_places;
  std::vector<std::byte*> gradient_places;
};

std::string numbered(std::string name, int block) {
  const std::size_t at = name.find("{layer}");
  return at == std::string::npos ? name : name.replace(at, 7, std::to_string(block));
}

class Model {
 public:
  /// What forward left of a micro-batch, by layer.
  using Saved = std::vector<DeviceMemory>;

  Model(const ModelSpec& model, const LayerShape& shape, const WeightsByName& weights,
        const Platform& platform)
      : model_(model),
        shape_(shape),
        weights_(weights),
        device_(platform.device),
        compute_(platform.compute) {
    int block = 0;
    for (const int kind : model.layers) {
      const LayerSpec& spec = model.kinds[static_cast<std::size_t>(kind)];
      parts_.push_back(make(spec, block));
      if (spec.role == LayerRole::block) ++block;
    }
    std::int64_t tables = 0;
    for (const Part& part : parts_) tables = std::max(tables, part.layer->bytes().tables);
    tables_ = unwritten(tables);
    if (tables > 0) fill_tables(model, shape, tables_.at(), to_);
    tokens_ = given(golden_tokens(model, shape));
    targets_ = given(golden_targets(model, shape));
    loss_scale_ = given(std::vector<float>{kLossScale});
    loss_ = given(std::vector<LossSum>(1));
    stream_ = unwritten(shape_.tokens() * model_.hidden_size * bytes_of(shape_.storage));
  }

  void forward(Saved& saved) {
    for (const Part& part : parts_) {
      const LayerBytes bytes = part.layer->bytes();
      saved.push_back(unwritten(bytes.saved));
      const DeviceMemory workspace = unwritten(bytes.forward_workspace);
      ForwardPass pass;
      pass.weights = part.weight_places;
      pass.stream = stream_.at();
      pass.inputs = reinterpret_cast<const std::int64_t*>(tokens_.at());
      pass.saved = saved.back().at();
      pass.workspace = workspace.at();
      pass.tables = tables_.at();
      part.layer->forward(pass, to_);
      device_.synchronize(*queue_);
    }
  }

  void backward(const Saved& saved) {
    for (std::size_t i = parts_.size(); i-- > 0;) {
      const Part& part = parts_[i];
      const LayerBytes bytes = part.layer->bytes();
      const DeviceMemory workspace = unwritten(bytes.backward_workspace);
      BackwardPass pass;
      pass.weights = part.weight_places;
      pass.gradients = part.gradient_places;
      pass.stream = stream_.at();
      pass.saved = saved[i].at();
      pass.workspace = workspace.at();
      pass.tables = tables_.at();
      pass.targets = reinterpret_cast<const std::int64_t*>(targets_.at());
      pass.loss = reinterpret_cast<LossSum*>(loss_.at());
      pass.loss_scale = reinterpret_cast<const float*>(loss_scale_.at());
      part.layer->recompute(pass, to_);
      part.layer->backward(pass, to_);
      device_.synchronize(*queue_);
    }
  }

  LossSum loss() { return taken<LossSum>(loss_).front(); }

  /// From the stream that forward left: in fp32, as nobody needs them whole but this test.
  std::vector<float> logits() {
    const Part& head = parts_.back();
    const LayerSpec& spec = model_.kinds[static_cast<std::size_t>(model_.layers.back())];
    const std::int64_t tokens = shape_.tokens();
    const std::int64_t hidden = model_.hidden_size;
    const DeviceMemory x = given(widened(stream_, shape_.storage));
    std::vector<DeviceMemory> wide;
    std::vector<const std::byte*> places;
    for (const std::byte* place : head.weight_places) {
      const std::size_t index = places.size();
      const bool own = index < head.weights.size();
      const DeviceMemory& weight = own ? head.weights[index] : parts_.front().weights.front();
      EXPECT_EQ(place, weight.at());
      wide.push_back(given(widened(weight, shape_.storage)));
      places.push_back(wide.back().at());
    }
    const Weights weights(places);
    const ParameterIndex norm = parameters_of(spec, "final_norm");
    const DeviceMemory statistics = unwritten(2 * tokens * bytes_of(DType::fp32));
    const auto epsilon = static_cast<float>(model_.numerics.norm_epsilon);
    compute_.norm({.shape = {tokens, 1, hidden, hidden, hidden, epsilon},
                   .rms = spec.operations.front().rms,
                   .x = x.at(),
                   .weight = weights.weight(norm),
                   .bias = weights.bias(norm),
                   .y = x.at(),
                   .statistics = reinterpret_cast<float*>(statistics.at())},
                  *queue_);
    const DeviceMemory logits = unwritten(tokens * model_.vocab_size * bytes_of(DType::fp32));
    compute_.linear({.shape = {tokens, hidden, model_.vocab_size, hidden, model_.vocab_size, false},
                     .x = x.at(),
                     .weight = weights.weight(parameters_of(spec, "lm_head")),
                     .y = logits.at()},
                    *queue_);
    return taken<float>(logits);
  }

  std::map<std::string, std::vector<float>> gradients() {
    std::map<std::string, std::vector<float>> result;
    for (const Part& part : parts_) {
      for (std::size_t i = 0; i < part.names.size(); ++i) {
        result[part.names[i]] = widened(part.gradients[i], shape_.gradients);
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
      part.weights.push_back(given(stored(weights_(name, parameter), shape_.storage)));
      part.gradients.push_back(
          device_.allocate(parameter.elements() * bytes_of(shape_.gradients), MemorySpace::device));
      part.weight_places.push_back(part.weights.back().at());
      part.gradient_places.push_back(part.gradients.back().at());
    }
    if (spec.role == LayerRole::head && model_.tie_word_embeddings) {
      part.weight_places.push_back(parts_.front().weight_places.front());
      part.gradient_places.push_back(parts_.front().gradient_places.front());
    }
    return part;
  }

  /// The device's copy of `values`.
  template <class T>
  DeviceMemory given(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    DeviceMemory memory = device_.allocate(std::ssize(bytes), MemorySpace::device);
    device_.upload(memory.at(), bytes, *queue_);
    return memory;
  }
  /// NaN in fp32 and in bf16.
  DeviceMemory unwritten(std::int64_t bytes) {
    return given(std::vector<std::byte>(static_cast<std::size_t>(bytes), std::byte{0xff}));
  }
  template <class T>
  std::vector<T> taken(const DeviceMemory& memory) {
    std::vector<T> values(static_cast<std::size_t>(memory.bytes()) / sizeof(T));
    device_.download(std::as_writable_bytes(std::span(values)), memory.at(), *queue_);
    return values;
  }
  std::vector<float> widened(const DeviceMemory& memory, DType dtype) {
    if (dtype == DType::fp32) return taken<float>(memory);
    std::vector<float> values;
    for (const Bf16 each : taken<Bf16>(memory)) values.push_back(to_float(each));
    return values;
  }

  const ModelSpec& model_;
  LayerShape shape_;
  const WeightsByName& weights_;
  Device& device_;
  Compute& compute_;
  std::unique_ptr<DeviceStream> queue_ = device_.stream(StreamPriority::normal);
  Issue to_{compute_, *queue_};
  std::vector<Part> parts_;
  DeviceMemory tables_;
  DeviceMemory stream_;
  DeviceMemory tokens_;
  DeviceMemory targets_;
  DeviceMemory loss_scale_;
  DeviceMemory loss_;
};

/// The host, and the CPU's kernels on so many threads.
struct OnCpu {
  explicit OnCpu(int threads) : workers(threads) {}
  Workers workers;
  CpuDevice device;
  CpuCompute compute{workers};
  Platform platform{device, compute};
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

void expect_golden_tensor(const std::string& name, const std::vector<float>& values,
                          const JsonValue& expected, double tolerance) {
  const double norm = expected.find("norm")->number;
  EXPECT_NEAR(std::sqrt(dot(values, values)), norm, tolerance * norm) << name;
  const auto& dots = expected.find("dots")->elements;
  ASSERT_EQ(dots.size(), 4U);
  for (std::size_t i = 0; i < dots.size(); ++i) {
    const std::vector<float> direction =
        noise(name + "/" + std::to_string(i), static_cast<std::int64_t>(values.size()));
    EXPECT_NEAR(dot(values, direction), dots[i].number, tolerance * norm) << name << " " << i;
  }
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

ModelRun run_model(const ModelSpec& model, const LayerShape& shape, const Platform& platform,
                   int micro_batches) {
  const WeightsByName weights = golden_weight;
  Model running(model, shape, weights, platform);
  ModelRun run;
  std::vector<Model::Saved> saved(static_cast<std::size_t>(micro_batches));
  for (Model::Saved& each : saved) running.forward(each);
  run.logits = running.logits();
  for (const Model::Saved& each : saved) running.backward(each);
  run.loss = running.loss();
  run.gradients = running.gradients();
  return run;
}

ModelRun run_model(const ModelSpec& model, const LayerShape& shape, int threads,
                   int micro_batches) {
  const OnCpu cpu(threads);
  return run_model(model, shape, cpu.platform, micro_batches);
}

std::vector<float> logits_of(const ModelSpec& model, const LayerShape& shape,
                             const WeightsByName& weights) {
  const OnCpu cpu(1);
  Model running(model, shape, weights, cpu.platform);
  Model::Saved saved;
  running.forward(saved);
  return running.logits();
}

}  // namespace shardwise::exec
