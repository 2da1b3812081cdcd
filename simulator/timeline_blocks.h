#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/step_program.h"
#include "simulator/stage_summary.h"

namespace shardwise::sim {

/// What a colour says.
enum class Paint : std::uint8_t {
  forward,
  backward,
  weight,
  recompute,
  optimizer,
  gather,
  reduce,
  message,
  layer,
  copy
};
struct PaintStyle {
  std::string_view name;
  std::string_view colour;
};
inline constexpr std::array<PaintStyle, 10> kPaints = {
    {{"forward", "#3b76b5"},
     {"backward", "#e8833a"},
     {"weight gradients", "#f3b562"},
     {"recompute", "#8db8de"},
     {"optimizer", "#4d9a57"},
     {"parameter gather", "#3aa6a0"},
     {"gradient reduction", "#9a5fa8"},
     {"point-to-point messages", "#7d8794"},
     {"tensor, context or expert parallel communication", "#c9a227"},
     {"copies", "#c98ca7"}}};

/// What a timeline draws as one.
struct Block {
  double from = 0;  // seconds
  double to = 0;
  Paint paint = Paint::forward;
  std::int32_t microbatch = -1;
  std::int16_t chunk = 0;
};

/// The colour that fills a block: its paint's, paler for later chunks of the model, so that an
/// interleaved schedule can be read.
std::string colour_of(const Block& block);

/// Dark text reads better on it than white text.
bool is_pale(std::string_view colour);

/// The blocks of a stream in time: neighbours of one kind and micro-batch are one where less than
/// `least_gap` seconds are between them.
std::vector<Block> blocks_of(const StageRunTimes& run, Stream stream, double least_gap);

}  // namespace shardwise::sim
