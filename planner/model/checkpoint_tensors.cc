#include "planner/model/checkpoint_tensors.h"

#include <string_view>

namespace shardwise {
namespace {

std::string filled(std::string text, std::string_view placeholder, std::int64_t index) {
  const std::size_t at = text.find(placeholder);
  if (at != std::string::npos) text.replace(at, placeholder.size(), std::to_string(index));
  return text;
}

}  // namespace

std::vector<CheckpointTensor> checkpoint_tensors(const ModelSpec& model) {
  std::vector<CheckpointTensor> tensors;
  std::int64_t encoder_blocks = 0;
  std::int64_t blocks = 0;
  for (const int kind : model.layers) {
    const LayerSpec& layer = model.kinds[static_cast<std::size_t>(kind)];
    const bool encoder = layer.role == LayerRole::encoder_block;
    const bool numbered = layer.role == LayerRole::block || layer.role == LayerRole::mtp;
    std::int64_t& next = encoder ? encoder_blocks : blocks;
    for (const ParameterSpec& parameter : layer.parameters) {
      const std::string name = filled(parameter.name, "{layer}", next);
      for (std::int64_t expert = 0; expert < parameter.count; ++expert) {
        tensors.push_back({filled(name, "{expert}", expert), parameter.shape});
      }
    }
    if (encoder || numbered) ++next;
  }
  return tensors;
}

}  // namespace shardwise
