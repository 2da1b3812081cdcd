#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/estimate/estimate.h"
#include "planner/search/best_rows.h"
#include "planner/search/explore.h"
#include "planner/search/layout_grid.h"
#include "planner/search/pricing/evaluator.h"
#include "planner/search/work_list.h"
#include "planner/spec/text/check.h"

namespace shardwise {

/// Counts what becomes of layouts, as a search does that is not bounded.
inline Fit count(SearchCounts& counts, const MemoryPrice& price, Bytes usable,
                 std::int64_t orders) {
  const Fit fit = fit_of(price, usable);
  (fit == Fit::fits      ? counts.ranked
   : fit == Fit::at_risk ? counts.at_risk
                         : counts.does_not_fit) += orders;
  return fit;
}

/// The rows of one task, passed in the order of the enumeration.
class TaskRows {
 public:
  /// \param indices  Candidate::index of the rows, ascending; the first is that of row `first_row`
  TaskRows(const SearchTask& task, std::span<const std::int64_t> indices, std::size_t first_row)
      : first_index_(task.first_index()), indices_(indices), first_row_(first_row) {}

  /// Whether a layout from `first` to before `end` has a row. \pre `first` does not fall
  bool any(std::int64_t first, std::int64_t end) {
    while (next_ < indices_.size() && indices_[next_] < first_index_ + first) ++next_;
    return next_ < indices_.size() && indices_[next_] < first_index_ + end;
  }
  /// Row of the layout `index`. \pre any(index, index + 1)
  std::size_t row(std::int64_t index) {
    SHARDWISE_CHECK(any(index, index + 1), "a layout has no row");
    return first_row_ + next_;
  }

 private:
  std::int64_t first_index_;
  std::span<const std::int64_t> indices_;
  std::size_t first_row_;
  std::size_t next_ = 0;
};

/// Fills the rows of a task but for their times.
class PricesRows final : public LayoutVisitor {
 public:
  PricesRows(Exploration& all, const SearchTask& task, TaskRows rows, SearchCounts* counts)
      : all_(all), engine_(task.engine), rows_(rows), counts_(counts) {}

  bool wants(std::int64_t first, std::int64_t end) override { return rows_.any(first, end); }
  Asks asks() const override { return Asks::bounds; }
  Seconds memory(const Layout&, const MemoryPrice& price, Seconds, std::int64_t orders) override {
    if (counts_ != nullptr) count(*counts_, price, all_.usable, orders);
    return Seconds(1e300);
  }
  void bound(const Layout& layout, const MemoryPrice& price, Seconds least,
             std::int64_t index) override {
    const std::size_t row = rows_.row(index);
    all_.engine[row] = engine_;
    all_.layout.set(row, layout);
    all_.needed[row] = price.needed;
    all_.point[row] = price.point;
    all_.upper[row] = price.upper;
    all_.host_lacks[row] = price.host_lacks;
    all_.fit[row] = fit_of(price, all_.usable);
    all_.worst_stage[row] = price.worst_stage;
    all_.least_time[row] = least;
  }
  void time(const Layout&, const MemoryPrice&, Seconds, std::int64_t) override {}

 private:
  Exploration& all_;
  std::int32_t engine_;
  TaskRows rows_;
  SearchCounts* counts_;
};

/// Finds the times of rows of a task.
class TimesRows final : public LayoutVisitor {
 public:
  TimesRows(std::vector<Seconds>& times, std::span<const std::uint32_t> rows,
            const SearchTask& task, std::span<const std::int64_t> indices)
      : times_(times), rows_(rows), wanted_(task, indices, 0) {}

  bool wants(std::int64_t first, std::int64_t end) override { return wanted_.any(first, end); }
  Seconds memory(const Layout&, const MemoryPrice&, Seconds, std::int64_t) override {
    return Seconds(1e300);
  }
  void time(const Layout&, const MemoryPrice&, Seconds step_time, std::int64_t index) override {
    times_[rows_[wanted_.row(index)]] = step_time;
  }

 private:
  std::vector<Seconds>& times_;
  std::span<const std::uint32_t> rows_;
  TaskRows wanted_;
};

/// Finds the times of rows of a task that may be among the best.
class TimesBestRows final : public LayoutVisitor {
 public:
  /// \param rows  that fit
  TimesBestRows(BestRows& best, std::vector<Seconds>& times, std::span<const std::uint32_t> rows,
                const SearchTask& task, std::span<const std::int64_t> indices)
      : best_(best), times_(times), rows_(rows), wanted_(task, indices, 0) {}

  bool wants(std::int64_t first, std::int64_t end) override { return wanted_.any(first, end); }
  Seconds memory(const Layout&, const MemoryPrice& price, Seconds, std::int64_t) override {
    return best_.time_limit(price.point);
  }
  void time(const Layout&, const MemoryPrice&, Seconds step_time, std::int64_t index) override {
    const std::uint32_t row = rows_[wanted_.row(index)];
    times_[row] = step_time;
    best_.offer(row, step_time);
  }

 private:
  BestRows& best_;
  std::vector<Seconds>& times_;
  std::span<const std::uint32_t> rows_;
  TaskRows wanted_;
};

/// Finds closer bounds on the times of rows of a task that may be among the best by these.
class BoundsBestRows final : public LayoutVisitor {
 public:
  BoundsBestRows(BestRows& leading, std::vector<Seconds>& least,
                 std::span<const std::uint32_t> rows, const SearchTask& task,
                 std::span<const std::int64_t> indices)
      : leading_(leading), least_(least), rows_(rows), wanted_(task, indices, 0) {}

  bool wants(std::int64_t first, std::int64_t end) override { return wanted_.any(first, end); }
  Asks asks() const override { return Asks::close_bounds; }
  Seconds memory(const Layout&, const MemoryPrice& price, Seconds, std::int64_t) override {
    return leading_.time_limit(price.point);
  }
  void bound(const Layout&, const MemoryPrice&, Seconds least, std::int64_t index) override {
    const std::uint32_t row = rows_[wanted_.row(index)];
    least_[row] = std::max(least_[row], least);
    leading_.offer(row, least_[row]);
  }
  void time(const Layout&, const MemoryPrice&, Seconds, std::int64_t) override {}

 private:
  BestRows& leading_;
  std::vector<Seconds>& least_;
  std::span<const std::uint32_t> rows_;
  TaskRows wanted_;
};

/// Puts the layouts of a task into a grid.
class FillsGrid final : public LayoutVisitor {
 public:
  FillsGrid(LayoutGrid& grid, const SearchTask& task, Bytes usable, SearchCounts& counts)
      : grid_(grid), task_(task), usable_(usable), counts_(counts) {}

  bool wants(std::int64_t first, std::int64_t) override {
    next_ = first;
    return true;
  }
  Seconds memory(const Layout&, const MemoryPrice& price, Seconds floor,
                 std::int64_t orders) override {
    const Fit fit = count(counts_, price, usable_, orders);
    grid_.offer({task_.engine, fit, price.point, floor, task_.first_index() + next_});
    return Seconds(-1);
  }
  void time(const Layout&, const MemoryPrice&, Seconds, std::int64_t) override {}

 private:
  LayoutGrid& grid_;
  const SearchTask& task_;
  Bytes usable_;
  SearchCounts& counts_;
  std::int64_t next_ = 0;
};

}  // namespace shardwise
