#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "planner/spec/report/report.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// The best layout of each cell of a grid of memory and time, for each engine and fit apart. Cells
/// are of equal ratio. The result does not depend on the order in which layouts are offered, nor on
/// how they are shared over grids that are joined.
class LayoutGrid {
 public:
  struct Layout {
    std::int32_t engine = 0;
    Fit fit = Fit::fits;
    Bytes memory;
    Seconds time;
    std::int64_t index = 0;  // of two as good the first is kept
  };

  void offer(const Layout& layout);
  void join(const LayoutGrid& other);
  /// Indices of one layout a cell, ascending. \param most  cells: they are joined, four to one,
  /// until there are no more
  std::vector<std::int64_t> kept(std::size_t most) const;

 private:
  static constexpr int kCellsAnOctave = 32;
  using Cell = std::uint64_t;
  static Cell cell_of(const Layout& layout, int cells_an_octave);
  static void offer(std::unordered_map<Cell, Layout>& cells, Cell cell, const Layout& layout);

  std::unordered_map<Cell, Layout> cells_;
};

}  // namespace shardwise
