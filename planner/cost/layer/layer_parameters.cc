#include "planner/cost/layer/layer_parameters.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "planner/cost/layer/adapters.h"
#include "planner/cost/layer/head_norm.h"
#include "planner/cost/layer/key_heads.h"
#include "planner/cost/layer/linear_parameters.h"
#include "planner/cost/layer/operation_memory.h"
#include "planner/cost/layer/operation_sizes.h"
#include "planner/cost/layer/shard_ranks.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

void add_group(LayerParameters& parameters, const TensorGroup& tensor) {
  for (std::int32_t i = 0; i < parameters.groups; ++i) {
    TensorGroup& each = parameters.group[static_cast<std::size_t>(i)];
    if (each.rows == tensor.rows && each.row_elements == tensor.row_elements &&
        each.routed == tensor.routed) {
      each.count += tensor.count;
      return;
    }
  }
  SHARDWISE_CHECK(parameters.groups < kMaxTensorGroups, "more shapes than a layer may have");
  parameters.group[static_cast<std::size_t>(parameters.groups++)] = tensor;
}

/// FSDP2 cuts dimension 0, of experts that are one tensor the experts. Where ranks are more and
/// divide dimension 1, that one, as torchtitan places them; else every rank has room for an expert.
/// Source: pytorch/torchtitan@b5bcd76c:torchtitan/distributed/fsdp.py, _experts_shard_placement_fn;
/// pytorch@v2.15.0:torch/distributed/fsdp/_fully_shard/_fsdp_param.py, _init_sharded_param.
bool cut_by_rows(const LocalTensor& experts, std::int64_t ranks) {
  return experts.count > 1 && experts.count < ranks && experts.rows % ranks == 0;
}

LocalTensor stacked(const LocalTensor& experts, std::int64_t ranks) {
  if (experts.count == 1 || cut_by_rows(experts, ranks)) return experts;
  return {experts.count, experts.rows * experts.row_elements, 1};
}

/// A bias that evens out the load of experts.
bool is_load_buffer(const ParameterSpec& p) {
  return !p.trainable && p.shape.size() == 1 && !is_scale(p) && !is_remainder(p);
}

bool is_trained(const ParameterSpec& p, const JobSpec& job) {
  return p.trainable && (!job.frozen_base || is_adapter(p));
}

/// Parameters that a frozen model keeps in 8 bits, by index.
std::vector<bool> narrow_frozen(const LayerSpec& layer, const JobSpec& job,
                                const EngineProfile& engine, const Layout& layout) {
  if (!keeps_frozen_narrow(job, engine, layout)) return {};
  std::vector<bool> narrow(layer.parameters.size(), false);
  for (const LinearParameters& linear : linear_parameters(layer)) {
    if (!has_narrow_matrix(*linear.operation)) continue;
    narrow[static_cast<std::size_t>(linear.weight)] = true;
  }
  return narrow;
}

/// Adds what is not trained, in elements of a compute weight and, where every rank has it whole, in
/// the eight bytes of a router's buffers.
void add_frozen(LayerParameters& parameters, const LayerSpec& layer, const ParameterSpec& p,
                std::int64_t elements, bool narrow, const JobSpec& job, const Layout& layout) {
  constexpr std::int64_t kBufferBytes = 8;
  // Who trains adapters in 16 bits casts back what PEFT has widened.
  const bool stays = layout.zero_stage == 3 || bytes_of(job.main_dtype) < bytes_of(DType::fp32);
  if (is_remainder(p) && stays) return;
  const bool wide = job.precision == DType::fp32 || job.precision == DType::tf32;
  const std::int64_t each = wide ? 4 : 2;
  const FrozenBytes bytes = frozen_bytes(layer, p, elements, narrow ? 1 : each);
  const std::int64_t frozen = ceil_div(bytes.placed, each);
  parameters.frozen += frozen;
  if (p.tp == TpSplit::vocab) parameters.frozen_vocabulary += frozen;
  parameters.counted_experts += ceil_div(bytes.whole, kBufferBytes);
}

/// Experts one by one: the tensors of the first, those of the second, and so on.
std::vector<TensorGroup> by_expert(const std::vector<TensorGroup>& tensors) {
  std::vector<TensorGroup> result;
  for (std::size_t begin = 0; begin < tensors.size();) {
    const TensorGroup& first = tensors[begin];
    std::size_t end = begin + 1;
    while (first.routed && end < tensors.size() && tensors[end].routed &&
           tensors[end].count == first.count) {
      ++end;
    }
    const std::int64_t experts = end - begin > 1 ? first.count : 1;
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      for (std::size_t t = begin; t < end; ++t) {
        result.push_back(tensors[t]);
        result.back().count /= experts;
      }
    }
    begin = end;
  }
  return result;
}

std::vector<TensorGroup> trained_in_order(const LayerSpec& layer, const JobSpec& job,
                                          const EngineProfile& engine, const Layout& layout) {
  std::vector<TensorGroup> tensors;
  for (const RegisteredTensor& each : registered_tensors(layer, job, engine)) {
    const ParameterSpec& first = layer.parameters[static_cast<std::size_t>(each.front())];
    if (!is_trained(first, job)) continue;
    const LocalTensor tensor = local_tensor(layer, each, engine, layout);
    tensors.push_back({tensor.rows, tensor.row_elements, tensor.count, first.routed_expert});
  }
  if (!job.grouped_gemm) tensors = by_expert(tensors);
  for (TensorGroup& tensor : tensors) tensor.routed = tensor.routed && routed_apart(engine, layout);
  return tensors;
}

/// Trained tensors of a unit, as one buffer has them.
TensorChunks unit_chunks(const LayerSpec& layer, const JobSpec& job, const EngineProfile& engine,
                         const Layout& layout, bool routed) {
  std::vector<ChunkedTensor> tensors;
  for (const RegisteredTensor& each : megatron_tensors(layer)) {
    const ParameterSpec& first = layer.parameters[static_cast<std::size_t>(each.front())];
    if (!is_trained(first, job) || first.routed_expert != routed) continue;
    const LocalTensor part = local_tensor(first, engine, layout);
    const LocalTensor whole = local_tensor(layer, each, engine, layout);
    tensors.push_back({whole.rows * whole.row_elements,
                       module_row(first, part.rows, part.row_elements), whole.count});
  }
  // A piece for each rank of 2^42 elements is more than any GPU holds of a layer, and bytes of all
  // layers are still a number.
  return tensor_chunks(std::move(tensors), (std::int64_t{1} << 42) / layout.world());
}

}  // namespace

bool keeps_frozen_narrow(const JobSpec& job, const EngineProfile& engine, const Layout& layout) {
  return job.frozen_base && job.precision == DType::fp8 && job.fp8_parameter_gather &&
         kernels_of(job, engine) == Kernels::transformer_engine &&
         engine.main_weights == MainWeights::separate && layout.zero_stage < 3;
}

bool routed_apart(const EngineProfile& engine, const Layout& layout) {
  const bool by_groups =
      engine.gradient_buffer == GradientBuffer::contiguous || engine.keeps_buckets;
  return !by_groups || layout.ep > 1 || layout.etp != layout.tp;
}

LocalTensor local_tensor(const ParameterSpec& p, const EngineProfile& engine, const Layout& layout,
                         std::int64_t copies) {
  std::vector<std::int64_t> shape = p.shape.empty() ? std::vector<std::int64_t>{1} : p.shape;
  const std::int64_t ways = p.routed_expert ? layout.etp : layout.tp / copies;
  if (p.tp_dim >= 0) {
    auto& extent = shape[static_cast<std::size_t>(p.tp_dim)];
    if (p.tp == TpSplit::vocab) {
      extent = padded_vocabulary(extent, engine.vocabulary_multiple, ways);
    }
    extent = ceil_div(extent, ways);
  }
  LocalTensor tensor;
  tensor.count = p.count;
  if (p.routed_expert && p.count > 1) {
    tensor.count = ceil_div(p.count, layout.ep);
  } else if (p.routed_expert) {
    shape.front() = ceil_div(shape.front(), layout.ep);  // all experts in one tensor
  }
  tensor.rows = shape.front();
  tensor.row_elements =
      std::accumulate(shape.begin() + 1, shape.end(), std::int64_t{1}, std::multiplies<>());
  return tensor;
}

LocalTensor local_tensor(const LayerSpec& layer, const RegisteredTensor& registered,
                         const EngineProfile& engine, const Layout& layout) {
  LocalTensor whole;
  for (const std::int32_t p : registered) {
    const ParameterSpec& parameter = layer.parameters[static_cast<std::size_t>(p)];
    const LocalTensor part =
        local_tensor(parameter, engine, layout, parameter_copies(layer, p, engine, layout));
    if (registered.size() == 1) return part;
    whole.rows += part.rows * part.row_elements;
    whole.count = part.count;
  }
  return whole;
}

LayerParameters layer_parameters(const LayerSpec& layer, const JobSpec& job,
                                 const EngineProfile& engine, const Layout& layout) {
  LayerParameters result;
  const bool routes = std::ranges::any_of(
      layer.operations, [](const OperationSpec& op) { return op.kind == OpKind::router; });
  const bool stacks = engine.padding == ShardPadding::row && job.grouped_gemm &&
                      kernels_of(job, engine) != Kernels::planned;
  const ShardRanks ranks = shard_ranks(layout, Placement::shard_inner);
  const std::vector<bool> narrow = narrow_frozen(layer, job, engine, layout);
  for (std::size_t i = 0; i < layer.parameters.size(); ++i) {
    const ParameterSpec& p = layer.parameters[i];
    const std::int64_t copies =
        parameter_copies(layer, static_cast<std::int32_t>(i), engine, layout);
    const LocalTensor tensor = local_tensor(p, engine, layout, copies);
    const std::int64_t elements = tensor.elements();
    if (routes && is_load_buffer(p)) {
      result.counted_experts += elements;
      continue;
    }
    if (!is_trained(p, job)) {
      add_frozen(result, layer, p, elements, !narrow.empty() && narrow[i], job, layout);
      continue;
    }
    const bool routed = p.routed_expert && routed_apart(engine, layout);
    (routed ? result.routed : result.dense) += elements;
    if (p.tp == TpSplit::vocab) result.vocabulary += elements;
    if (p.tp_dim < 0 && !p.routed_expert) result.replicated += elements;
    if (is_head_norm(p)) result.head_norms += elements;
    if (copies > 1) result.copied_heads += elements;
    result.tensors += tensor.count;
    if (stacks && routed && cut_by_rows(tensor, ranks.routed)) result.cut_by_rows += elements;
    const LocalTensor cut = stacks && routed ? stacked(tensor, ranks.routed) : tensor;
    add_group(result, {cut.rows, cut.row_elements, cut.count, routed});
  }
  if (result.tensors == 0) return result;
  result.in_order = trained_in_order(layer, job, engine, layout);
  if (engine.padding != ShardPadding::unit) return result;
  result.chunks = unit_chunks(layer, job, engine, layout, false);
  if (result.routed > 0) result.routed_chunks = unit_chunks(layer, job, engine, layout, true);
  return result;
}

}  // namespace shardwise
