#pragma once

#include <optional>
#include <string_view>

namespace shardwise {

/// Links between nodes as a source states them.
struct StatedLink {
  double gigabits_per_s = 0;  // of one link, one way
  int links_per_node = 0;     // 0: one for each GPU
  bool shared_total = false;  // the rate is that of the whole node, number of links unknown
};

/// Reads wordings such as "8x HDR200 IB per node", "RDMA 400 Gb/s per GPU", "1600 Gb/s per node
/// RoCE", "4x100 Gb RoCE per node", "IB HDR200 x8". Nothing when no rate is named.
std::optional<StatedLink> stated_link(std::string_view wording);

}  // namespace shardwise
