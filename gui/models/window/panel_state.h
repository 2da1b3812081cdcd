#pragma once

#include <cstdint>
#include <string>

namespace shardwise::view {

/// Which panel was asked to be seen.
struct PanelState {
  std::string front;         // its id
  std::uint64_t fronts = 0;  // how often one was
};

}  // namespace shardwise::view
