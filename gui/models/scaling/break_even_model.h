#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/search/advice/break_even.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::view {

/// Where another layout or cluster wins as one quantity of the cluster changes.
struct BreakEvenView {
  std::vector<Lever> levers;            // of the plan's cluster
  std::size_t lever = 0;                // of these
  std::vector<double> grid;             // factors at which lines have points
  std::vector<std::string> contenders;  // by line
  BreakEven found;                      // lines grow while it is searched
  bool known = false;                   // all of it, of this question and lever
};

/// What a command takes for a lever: "infiniband", "memory", "price".
std::string lever_key(const ClusterSpec& cluster, const Lever& lever);
/// The lever of that key.
std::optional<std::size_t> find_lever(const ClusterSpec& cluster, std::string_view key);
/// The one that is looked at first: the bandwidth of the outermost links.
std::size_t usual_lever(const ClusterSpec& cluster);

/// What the lever is at a factor: "25.0 GB/s".
std::string value_at(const ClusterSpec& cluster, const Lever& lever, double factor);

/// "pp4 vpp2 instead of pp8": what two layouts do not share.
std::string change_text(const Layout& before, const Layout& after);

/// Whether a contender has a layout that fits, at any factor.
bool fits_anywhere(const BreakEven& lines);

/// Multiplies all step times; rates and costs follow.
void slow_down(BreakEven& lines, double slower);

/// A factor from which on something else wins.
struct BreakEvenMark {
  double factor = 1;
  std::string text;     // "from 25.0 GB/s: 128 GPUs cheaper than 64 GPUs"
  bool layout = false;  // nobody becomes cheaper: another layout is the best, or nothing changes
};
inline constexpr std::size_t kMostMarks = 8;
/// All of them in order; one that says so where nothing changes, or nothing fits. Of more than
/// kMostMarks those at which nobody becomes cheaper are the nearest to the cluster as it is, and
/// one that counts the others.
std::vector<BreakEvenMark> break_even_marks(const Plan& plan, const BreakEvenView& view);

}  // namespace shardwise::view
