#include "planner/search/layout_grid.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace shardwise {
namespace {

bool is_better_layout(const LayoutGrid::Layout& a, const LayoutGrid::Layout& b) {
  return std::tuple(a.time, a.memory, a.index) < std::tuple(b.time, b.memory, b.index);
}

}  // namespace

LayoutGrid::Cell LayoutGrid::cell_of(const Layout& layout, int cells_an_octave) {
  constexpr double kShortest = 1e-9;
  constexpr int kBits = 20;
  constexpr double kMiddle = 1 << (kBits - 1);
  const auto place = [&](double value) {
    const double cell = std::floor(std::log2(std::max(value, kShortest)) * cells_an_octave);
    return static_cast<Cell>(cell + kMiddle);
  };
  Cell cell = static_cast<Cell>(layout.engine);
  cell = cell << 2U | static_cast<Cell>(layout.fit);
  cell = cell << kBits | place(static_cast<double>(layout.memory.value()));
  return cell << kBits | place(layout.time.value());
}

void LayoutGrid::offer(std::unordered_map<Cell, Layout>& cells, Cell cell, const Layout& layout) {
  const auto [at, made] = cells.try_emplace(cell, layout);
  if (!made && is_better_layout(layout, at->second)) at->second = layout;
}

void LayoutGrid::offer(const Layout& layout) {
  offer(cells_, cell_of(layout, kCellsAnOctave), layout);
}

void LayoutGrid::join(const LayoutGrid& other) {
  for (const auto& [cell, layout] : other.cells_) offer(cells_, cell, layout);
}

std::vector<std::int64_t> LayoutGrid::kept(std::size_t most) const {
  std::unordered_map<Cell, Layout> cells = cells_;
  for (int each = kCellsAnOctave / 2; cells.size() > most && each > 0; each /= 2) {
    std::unordered_map<Cell, Layout> joined;
    for (const auto& [cell, layout] : cells) offer(joined, cell_of(layout, each), layout);
    cells = std::move(joined);
  }
  std::vector<std::int64_t> kept;
  kept.reserve(cells.size());
  for (const auto& [cell, layout] : cells) kept.push_back(layout.index);
  std::ranges::sort(kept);
  return kept;
}

}  // namespace shardwise
