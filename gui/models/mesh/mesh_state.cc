#include "gui/models/mesh/mesh_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "planner/spec/plan/names.h"

namespace shardwise::view {

std::int64_t ranks_along(const Layout& layout, Axis axis) {
  switch (axis) {
    case Axis::tp:
      return layout.tp;
    case Axis::cp:
      return layout.cp;
    case Axis::ep:
      return layout.ep;
    case Axis::dp_shard:
      return layout.dp_shard;
    case Axis::dp_replicate:
      return layout.dp_replicate;
    case Axis::pp:
      break;
  }
  return layout.pp;
}

std::vector<Axis> moving_axes(const Layout& layout) {
  std::vector<Axis> axes;
  for (const Axis axis : layout.order) {
    if (ranks_along(layout, axis) > 1) axes.push_back(axis);
  }
  return axes;
}

std::string order_text(const Layout& layout, const RankOrder& order) {
  std::vector<std::string_view> names;
  for (const Axis axis : order) {
    if (ranks_along(layout, axis) > 1) names.push_back(name_of(axis));
  }
  return fmt::format("{}", fmt::join(names, "-"));
}

std::optional<RankOrder> read_order(const Layout& layout, const std::string& words) {
  std::vector<Axis> wanted;
  std::size_t begin = 0;
  while (begin <= words.size()) {
    const std::size_t end = std::min(words.find('-', begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    const auto named = std::ranges::find(kNamesOf<Axis>, word);
    if (named == kNamesOf<Axis>.end()) return std::nullopt;
    const auto axis = static_cast<Axis>(named - kNamesOf<Axis>.begin());
    if (std::ranges::find(wanted, axis) != wanted.end()) return std::nullopt;
    wanted.push_back(axis);
    begin = end + 1;
  }
  RankOrder order = layout.order;
  std::size_t next = 0;
  for (Axis& axis : order) {
    if (std::ranges::find(wanted, axis) != wanted.end()) axis = wanted[next++];
  }
  return order;
}

}  // namespace shardwise::view
