#include <cmath>
#include <numbers>
#include <vector>

#include "executor/transformer/layer.h"

namespace shardwise::exec {
namespace {

/// The frequency of one pair under Llama 3.1's scaling: long waves are stretched, short ones are
/// not. Source: transformers 4.57.6, modeling_rope_utils.py, _compute_llama3_parameters.
double llama3_frequency(const ModelNumerics& n, double frequency) {
  const auto context = static_cast<double>(n.rope_original_max_position_embeddings);
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < context / n.rope_high_freq_factor) return frequency;
  const double stretched = frequency / n.rope_factor;
  if (wavelength > context / n.rope_low_freq_factor) return stretched;
  const double smooth = (context / wavelength - n.rope_low_freq_factor) /
                        (n.rope_high_freq_factor - n.rope_low_freq_factor);
  return (1 - smooth) * stretched + smooth * frequency;
}

}  // namespace

void fill_tables(const ModelSpec& model, const LayerShape& shape, std::byte* tables,
                 const Issue& to) {
  const ModelNumerics& n = model.numerics;
  const std::int64_t half = model.head_dim / 2;
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < half; ++i) {
    const double frequency =
        std::pow(n.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(model.head_dim));
    switch (n.rope_scaling) {
      case RopeScaling::linear:
        frequencies.push_back(frequency / n.rope_factor);
        break;
      case RopeScaling::llama3:
        frequencies.push_back(llama3_frequency(n, frequency));
        break;
      case RopeScaling::none:
      case RopeScaling::other:
        frequencies.push_back(frequency);
        break;
    }
  }
  auto* cosines = reinterpret_cast<float*>(tables);
  to.compute.rope_tables({.sequence = shape.sequence,
                          .frequencies = frequencies,
                          .cosines = cosines,
                          .sines = cosines + shape.sequence * half},
                         to.stream);
}

}  // namespace shardwise::exec
