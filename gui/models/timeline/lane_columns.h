#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "gui/models/timeline/lane.h"
#include "gui/models/timeline/timeline_model.h"

namespace shardwise::view {

/// Shares of a column of pixels by colour, in steps that can be seen: kWholeColumn is all of it.
using ColourSteps = std::array<std::uint8_t, kColours>;
inline constexpr int kWholeColumn = 255;

/// coverage_runs() in steps, equal neighbours as one, without those that show nothing.
std::vector<ColumnRun<ColourSteps>> step_runs(const Lane& lane, ColourBy by, TimeRange range,
                                              std::size_t columns);

/// Part of the columns that a step is drawn in, from the first to before `last`.
struct ColumnPart {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// The columns of a step's lanes as they were drawn before: a frame that draws the same parts of
/// the same step, as wide, finds them here.
class DrawnColumns {
 public:
  /// Begins the next part of the frame: `range` of `step` in so many columns.
  void begin(const std::shared_ptr<const StepLanes>& step, ColourBy by, TimeRange range,
             double columns, std::size_t part = 0);
  /// \pre begin() with the lane's step
  const std::vector<ColumnRun<ColourSteps>>& of(const Lane& lane, ColumnPart part);

 private:
  using Key = std::tuple<const Lane*, std::size_t, std::size_t>;

  struct Part {
    TimeRange range;
    double columns = 0;
    std::map<Key, std::vector<ColumnRun<ColourSteps>>> runs;
  };

  std::weak_ptr<const StepLanes> step_;
  ColourBy by_ = ColourBy::kind;
  std::vector<Part> parts_;
  std::size_t now_ = 0;  // of these
};

}  // namespace shardwise::view
