#include "planner/cost/layer/registered_tensors.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "planner/cost/layer/autocast_sizes.h"
#include "planner/cost/layer/engine_layer.h"
#include "planner/cost/layer/linear_parameters.h"

namespace shardwise {
namespace {

/// Puts parameters together and in another order than the checkpoint's.
class Registration {
 public:
  explicit Registration(const LayerSpec& layer) : linears_(linear_parameters(layer)) {
    for (std::size_t i = 0; i < layer.parameters.size(); ++i) {
      tensors_.push_back({static_cast<std::int32_t>(i)});
    }
  }

  const LinearParameters* find(std::string_view prefix, std::string_view name) const {
    const auto found = std::ranges::find_if(linears_, [&](const LinearParameters& each) {
      const std::string_view op = each.operation->name;
      return op.starts_with(prefix) && op.substr(prefix.size()) == name;
    });
    return found == linears_.end() ? nullptr : &*found;
  }

  /// Takes `other`'s tensors into those of `linear`, which is before it. \pre both have a bias, or
  /// neither
  void join(const LinearParameters* linear, const LinearParameters* other) {
    if (linear == nullptr || other == nullptr) return;
    join(linear->weight, other->weight);
    if (linear->bias >= 0 && other->bias >= 0) join(linear->bias, other->bias);
  }
  /// Registers `linear` before that `parameter`.
  void move(const LinearParameters& linear, std::int32_t parameter) {
    if (linear.bias >= 0) move(linear.bias, parameter);
    move(linear.weight, linear.bias >= 0 ? linear.bias : parameter);
  }
  void move(std::int32_t parameter, std::int32_t before) {
    const Place from = place_of(parameter);
    std::rotate(place_of(before), from, std::next(from));
  }

  std::vector<RegisteredTensor> take() { return std::move(tensors_); }

 private:
  using Place = std::vector<RegisteredTensor>::iterator;

  Place place_of(std::int32_t parameter) {
    return std::ranges::find_if(
        tensors_, [&](const RegisteredTensor& each) { return each.front() == parameter; });
  }
  void join(std::int32_t parameter, std::int32_t other) {
    place_of(parameter)->push_back(other);
    tensors_.erase(place_of(other));
  }

  std::vector<LinearParameters> linears_;
  std::vector<RegisteredTensor> tensors_;
};

/// Whether a norm is registered with queries of latent attention: EngineLayer.
bool norms_queries(const LayerSpec& layer) {
  return std::ranges::find(layer.operations, kQueryNorm, &OperationSpec::name) !=
         layer.operations.end();
}

void register_attention(Registration& registration, const LayerSpec& layer,
                        std::string_view prefix) {
  const auto find = [&](std::string_view name) { return registration.find(prefix, name); };
  const LinearParameters* query = find("q_proj");
  const LinearParameters* output = find("o_proj");
  if (output == nullptr) return;
  const bool latent = find("kv_a_proj") != nullptr;
  const bool cross = find("k_proj") != nullptr && find("k_proj")->operation->cross;
  if (query == nullptr) query = find(latent ? "q_a_proj" : "qkv_proj");
  if (query == nullptr) return;
  const std::int32_t own = query->weight - (latent && norms_queries(layer) ? 1 : 0);
  registration.move(*output, latent || cross ? own : query->first);
  if (cross) {
    registration.join(find("k_proj"), find("v_proj"));
  } else if (!latent) {
    registration.join(query, find("k_proj"));
    registration.join(query, find("v_proj"));
  }
}

/// Whether a checkpoint has the matrix as [in, out]: GPT-2's Conv1D.
bool is_transposed(const ParameterSpec& p) {
  return (p.tp == TpSplit::column && p.tp_dim == 1) || (p.tp == TpSplit::row && p.tp_dim == 0);
}

/// Forward norms queries and keys each behind their projection. Under autocast a Linear casts its
/// bias first, a Conv1D its matrix, and backward widens the gradients in the opposite order.
std::vector<RegisteredTensor> used_tensors(const LayerSpec& layer, bool casts) {
  Registration registration(layer);
  for (const LinearParameters& linear : linear_parameters(layer)) {
    const bool turns = casts && linear.bias >= 0 &&
                       !is_transposed(layer.parameters[static_cast<std::size_t>(linear.weight)]);
    if (turns) registration.move(linear.bias, linear.weight);
  }
  const auto find = [&](std::string_view name) { return registration.find("self_attn.", name); };
  const LinearParameters* keys = find("k_proj");
  const LinearParameters* values = find("v_proj");
  const LinearParameters* output = find("o_proj");
  if (keys == nullptr || values == nullptr || output == nullptr) return registration.take();
  if (output->weight - output->first != 2) return registration.take();
  registration.move(output->first, keys->weight);
  registration.move(output->first + 1, values->weight);
  return registration.take();
}

}  // namespace

std::vector<RegisteredTensor> megatron_tensors(const LayerSpec& layer) {
  Registration registration(layer);
  register_attention(registration, layer, "self_attn.");
  register_attention(registration, layer, "cross_attn.");
  for (const std::string_view mlp : {"mlp.", "mlp.experts.", "mlp.shared."}) {
    registration.join(registration.find(mlp, "gate_proj"), registration.find(mlp, "up_proj"));
  }
  return registration.take();
}

std::vector<RegisteredTensor> registered_tensors(const LayerSpec& layer, const JobSpec& job,
                                                 const EngineProfile& engine) {
  const bool megatron = engine.gradient_buffer == GradientBuffer::contiguous;
  if (megatron) return megatron_tensors(layer);
  return engine.keeps_buckets ? used_tensors(layer, autocasts(job, engine))
                              : Registration(layer).take();
}

std::int64_t module_row(const ParameterSpec& p, std::int64_t rows, std::int64_t row_elements) {
  return is_transposed(p) && p.shape.size() == 2 ? rows : row_elements;
}

}  // namespace shardwise
