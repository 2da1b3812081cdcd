#pragma once

#include <cstdint>

#include "planner/spec/step_program.h"

namespace shardwise::exec {

/// What the calls of a group are for. Groups of the same ranks on different channels are apart:
/// their calls do not meet, whichever comes first.
enum class Channel : std::int32_t {
  first_stream = 0,  // of a program: channel_of()
  results = 100,     // of a step: losses, counts, lengths
  hosts,             // on which machine each rank is
  checkpoints,       // whose files are whole
  preparation,       // what processes find before they run
  records,           // of a measured step
  watch,             // whether the other processes still run
  machine,           // calibration: what the ranks run on
  runs,              // calibration: all begin at once
  timed,             // calibration: the calls that are timed
};

constexpr Channel channel_of(Stream stream) {
  return static_cast<Channel>(static_cast<std::int32_t>(Channel::first_stream) +
                              static_cast<std::int32_t>(stream));
}
static_assert(static_cast<std::size_t>(Channel::results) >= kStreams);

}  // namespace shardwise::exec
