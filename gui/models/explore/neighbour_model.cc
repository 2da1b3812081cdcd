#include "gui/models/explore/neighbour_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>

#include "planner/estimate/estimate.h"
#include "planner/search/advice/single_changes.h"
#include "planner/search/search.h"
#include "planner/spec/text/signed_format.h"

namespace shardwise::view {
namespace {

/// "--tp=8 --dp-shard=4" as "tp 8, dp shard 4".
std::string plain(std::string_view flags) {
  std::string text;
  bool name = false;  // inside a flag's name
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags.substr(i).starts_with("--")) {
      text += text.empty() ? "" : ", ";
      name = true;
      ++i;
    } else if (flags[i] == '=') {
      text += ' ';
      name = false;
    } else if (flags[i] != ' ') {
      text += name && flags[i] == '-' ? ' ' : flags[i];
    }
  }
  return text;
}

}  // namespace

std::vector<NeighbourBar> neighbour_bars(const Plan& plan, Seconds step,
                                         const std::stop_token& stop) {
  const Bytes usable = usable_memory(plan.cluster, plan.job, Bytes(0));
  std::vector<NeighbourBar> bars;
  for (const Neighbour& each :
       neighbours(plan.model, plan.cluster, plan.job, plan.engine, plan.layout, usable, stop)) {
    NeighbourBar& bar = bars.emplace_back();
    bar.layout = each.change.layout;
    bar.text = plain(each.change.text);
    bar.memory = each.cost.point;
    bar.memory_gained = each.memory_gained;
    bar.time_gained = each.time_gained;
    bar.fit = fit_of(each.cost, usable);
    bar.time_share = step > Seconds(0) ? each.time_gained / step : 0;
    bar.memory_share = usable > Bytes(0) ? each.memory_gained / usable : 0;
  }
  std::ranges::stable_sort(bars, {}, [](const NeighbourBar& bar) {
    return std::tuple(bar.fit, -bar.time_gained.value());
  });
  return bars;
}

std::string change_text(const NeighbourBar& bar) {
  return signed_seconds(Seconds(0) - bar.time_gained);
}

std::string memory_change_text(const NeighbourBar& bar) {
  return signed_bytes(Bytes(0) - bar.memory_gained);
}

}  // namespace shardwise::view
