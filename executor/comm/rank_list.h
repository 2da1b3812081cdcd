#pragma once

#include <string>
#include <vector>

namespace shardwise::exec {

/// Ranks in words, the first sixteen of a longer list: "1, 2, 5", "0, 1, … (1000 in all)".
template <class Rank>
std::string rank_list(const std::vector<Rank>& ranks) {
  constexpr std::size_t kMostShown = 16;
  std::string text;
  for (std::size_t i = 0; i < ranks.size() && i < kMostShown; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kMostShown) text += ", … (" + std::to_string(ranks.size()) + " in all)";
  return text;
}

}  // namespace shardwise::exec
