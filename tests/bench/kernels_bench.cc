// Kernels of the executor on the CPU: how fast matrices are multiplied, and how near the other
// operations come to that. Rates count the products' work only (Flops), of causal attention half
// the square.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/kernels/attention/attention.h"
#include "executor/kernels/compute/cpu_compute.h"
#include "executor/kernels/gelu.h"
#include "executor/kernels/products/cross_entropy.h"
#include "executor/kernels/products/gemm.h"
#include "executor/kernels/products/gemm_library.h"
#include "executor/transformer/layer.h"
#include "planner/model/hf_config.h"

namespace shardwise::exec {
namespace {

using benchmark::Counter;

std::vector<float> ramp(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i * 2654435761U % 1000) / 1000.0F - 0.5F;
  }
  return values;
}

void rate(benchmark::State& state, double flops) {
  state.counters["Flops"] =
      Counter(flops, Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
}

/// c = a b^T in E, summed in fp32. Arguments: threads, m, n, k.
template <class E>
void gemm_rate(benchmark::State& state) {
  Workers workers(static_cast<int>(state.range(0)));
  const GemmShape s = {state.range(1), state.range(2), state.range(3)};
  const auto stored = [](const std::vector<float>& values) {
    std::vector<E> made;
    made.reserve(values.size());
    for (const float each : values) made.push_back(from_float<E>(each));
    return made;
  };
  const std::vector<E> a = stored(ramp(s.m * s.k));
  const std::vector<E> b = stored(ramp(s.k * s.n));
  std::vector<E> c(static_cast<std::size_t>(s.m * s.n));
  for ([[maybe_unused]] const auto _ : state) {
    gemm<E, E, E>(s, {a.data(), s.k}, {b.data(), s.k, true}, {c.data(), s.n}, false, workers);
  }
  state.SetLabel(gemm_library().label());
  rate(state, 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k));
}
void products_of_gpt2(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"threads", "m", "n", "k"})
      ->Args({1, 1024, 768, 768})
      ->Args({2, 1024, 768, 768})
      ->Args({2, 1024, 3072, 768})
      ->Args({2, 1024, 768, 3072})
      ->UseRealTime();
}
BENCHMARK(gemm_rate<float>)->Name("gemm_rate")->Apply(products_of_gpt2);
BENCHMARK(gemm_rate<Bf16>)->Name("gemm_bf16_rate")->Apply(products_of_gpt2);

/// GPT-2 124M's activation at 1024 tokens, forward and backward in turn. Bytes that are read and
/// written: x and y, then x, d_y and d_x.
void gelu_rate(benchmark::State& state) {
  Workers workers(static_cast<int>(state.range(0)));
  const auto kind = static_cast<Gelu>(state.range(1));
  constexpr std::int64_t kCount = std::int64_t{1024} * 3072;
  const std::vector<float> x = ramp(kCount);
  std::vector<float> y(x.size());
  for ([[maybe_unused]] const auto _ : state) {
    gelu_forward(kind, kCount, x.data(), y.data(), workers);
    gelu_backward(kind, kCount, x.data(), y.data(), y.data(), workers);
  }
  state.SetBytesProcessed(state.iterations() * kCount * 5 * std::int64_t{sizeof(float)});
}
BENCHMARK(gelu_rate)->ArgNames({"threads", "tanh"})->ArgsProduct({{1, 2}, {0, 1}})->UseRealTime();

/// GPT-2 124M's attention at 1024 tokens, and one with grouped heads of 128.
AttentionShape attention_shape(const benchmark::State& state) {
  const bool grouped = state.range(1) != 0;
  return {1, 1024, grouped ? 16 : 12, grouped ? 4 : 12, grouped ? 128 : 64};
}
double attention_flops(const AttentionShape& s) {
  return 2.0 * static_cast<double>(s.batch * s.heads * s.head_dim) *
         static_cast<double>(s.sequence) * static_cast<double>(s.sequence);
}

void attention_forward_rate(benchmark::State& state) {
  Workers workers(static_cast<int>(state.range(0)));
  const AttentionShape s = attention_shape(state);
  const std::vector<float> qkv = ramp(s.sequence * s.qkv_width());
  std::vector<float> out(static_cast<std::size_t>(s.sequence * s.heads * s.head_dim));
  std::vector<float> log_sums(static_cast<std::size_t>(s.heads * s.sequence));
  for ([[maybe_unused]] const auto _ : state) {
    attention_forward(s, qkv.data(), out.data(), log_sums.data(), workers);
  }
  rate(state, attention_flops(s));
}
BENCHMARK(attention_forward_rate)
    ->ArgNames({"threads", "grouped"})
    ->ArgsProduct({{1, 2}, {0, 1}})
    ->UseRealTime();

void attention_backward_rate(benchmark::State& state) {
  Workers workers(static_cast<int>(state.range(0)));
  const AttentionShape s = attention_shape(state);
  const std::vector<float> qkv = ramp(s.sequence * s.qkv_width());
  std::vector<float> gradient = qkv;
  std::vector<float> out(static_cast<std::size_t>(s.sequence * s.heads * s.head_dim));
  std::vector<float> log_sums(static_cast<std::size_t>(s.heads * s.sequence));
  std::vector<float> workspace(static_cast<std::size_t>(attention_backward_bytes(s)) /
                               sizeof(float));
  attention_forward(s, qkv.data(), out.data(), log_sums.data(), workers);
  for ([[maybe_unused]] const auto _ : state) {
    gradient = qkv;
    attention_backward(s, gradient.data(), out.data(), log_sums.data(), out.data(),
                       workspace.data(), workers);
  }
  rate(state, 2.5 * attention_flops(s));
}
BENCHMARK(attention_backward_rate)
    ->ArgNames({"threads", "grouped"})
    ->ArgsProduct({{1, 2}, {0, 1}})
    ->UseRealTime();

/// Forward and backward of one layer of GPT-2 124M (0) or Qwen3 0.6B (1) at 1024 tokens: the
/// block, or the head with its loss by chunks.
void layer_rate(benchmark::State& state, LayerRole role) {
  Workers workers(static_cast<int>(state.range(0)));
  const Result<ModelSpec> model = load_model(state.range(1) == 0 ? "gpt2" : "qwen3-0.6b");
  JobSpec job;
  job.sequence_length = 1024;
  job.precision = DType::fp32;
  job.loss = LossKernel::chunked;
  const LayerShape shape = layer_shape(*model, job, {});
  const LayerSpec* spec = nullptr;
  for (const LayerSpec& kind : model->kinds) {
    if (kind.role == role) spec = &kind;
  }
  const std::unique_ptr<Layer> layer = make_layer(*model, *spec, shape);
  std::vector<std::vector<float>> weights;
  std::vector<const std::byte*> weight_places;
  std::vector<std::byte*> gradient_places;
  std::vector<std::vector<float>> gradients;
  double products = 0;
  const auto add = [&](std::int64_t elements, bool matrix) {
    weights.push_back(ramp(elements));
    gradients.emplace_back(static_cast<std::size_t>(elements));
    weight_places.push_back(reinterpret_cast<const std::byte*>(weights.back().data()));
    gradient_places.push_back(reinterpret_cast<std::byte*>(gradients.back().data()));
    if (matrix) products += 6.0 * static_cast<double>(elements) * 1024.0;
  };
  for (const ParameterSpec& p : spec->parameters) add(p.elements(), p.shape.size() > 1);
  if (role == LayerRole::head && model->tie_word_embeddings) {
    add(model->vocab_size * model->hidden_size, true);
  }
  if (role == LayerRole::block) {
    products += 3.5 * 2.0 * static_cast<double>(model->num_attention_heads * model->head_dim) *
                1024.0 * 1024.0;
  }
  const LayerBytes bytes = layer->bytes();
  std::vector<std::byte> saved(static_cast<std::size_t>(bytes.saved));
  std::vector<std::byte> workspace(
      static_cast<std::size_t>(std::max(bytes.forward_workspace, bytes.backward_workspace)));
  std::vector<std::byte> tables(static_cast<std::size_t>(bytes.tables));
  CpuCompute compute(workers);
  DeviceStream queue;
  const Issue to = {compute, queue};
  if (bytes.tables > 0) fill_tables(*model, shape, tables.data(), to);
  const std::vector<float> x = ramp(1024 * model->hidden_size);
  std::vector<float> stream = x;
  const std::vector<std::int64_t> targets(1024, 7);
  LossSum loss;
  const float loss_scale = 1;
  ForwardPass forward;
  forward.weights = weight_places;
  forward.saved = saved.data();
  forward.workspace = workspace.data();
  forward.tables = tables.data();
  BackwardPass backward;
  backward.weights = weight_places;
  backward.gradients = gradient_places;
  backward.saved = saved.data();
  backward.workspace = workspace.data();
  backward.tables = tables.data();
  backward.targets = targets.data();
  backward.loss = &loss;
  backward.loss_scale = &loss_scale;
  for ([[maybe_unused]] const auto _ : state) {
    stream = x;
    forward.stream = backward.stream = reinterpret_cast<std::byte*>(stream.data());
    layer->forward(forward, to);
    layer->recompute(backward, to);
    layer->backward(backward, to);
  }
  state.SetLabel(model->name);
  rate(state, products);
}
BENCHMARK_CAPTURE(layer_rate, block, LayerRole::block)
    ->ArgNames({"threads", "model"})
    ->ArgsProduct({{1, 2}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(layer_rate, head, LayerRole::head)
    ->ArgNames({"threads", "model"})
    ->ArgsProduct({{1, 2}, {0}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwise::exec
