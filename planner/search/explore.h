#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "planner/search/layout_columns.h"
#include "planner/search/ranking.h"
#include "planner/search/search.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// Layouts of a space as columns, in the order of the enumeration. As a search counts them, each
/// order of ranks that costs something else is a layout, and a row.
struct Exploration {
  std::vector<std::int64_t> index;  // Candidate::index
  std::vector<std::int32_t> engine;
  LayoutColumns layout;
  std::vector<Bytes> needed;  // MemoryPeaks
  std::vector<Bytes> point;
  std::vector<Bytes> upper;
  std::vector<Bytes> host_lacks;
  std::vector<Fit> fit;
  std::vector<std::int32_t> worst_stage;
  std::vector<Seconds> least_time;  // a step takes no less
  std::vector<Seconds> step_time;   // NaN while it is not known
  /// By engine, of all layouts: those of a search that is not bounded.
  std::vector<SearchCounts> counts;
  std::vector<std::string> held;  // as SearchResult
  Bytes usable;
  /// The space has more layouts than rows were allowed: the best of each cell of a grid of memory
  /// and time, and the answer of search().
  bool thinned = false;
  /// Asked to stop: without rows, or with times that are not known.
  bool stopped = false;

  std::size_t rows() const { return index.size(); }
  MemoryPeaks peaks(std::size_t row) const {
    return {needed[row], point[row], upper[row], host_lacks[row]};
  }
  bool timed(std::size_t row) const { return !std::isnan(step_time[row].value()); }
  /// Time of a step: exact, or what it takes at least.
  Seconds known_time(std::size_t row) const {
    return timed(row) ? step_time[row] : least_time[row];
  }
  /// With its known time.
  Candidate candidate(std::size_t row) const;
};

using Rows = std::vector<std::uint32_t>;

/// All rows, best first: those that fit, those at risk, the others; each as `objective` ranks
/// layouts, by what is known of their times.
Rows ranked_rows(const Exploration& all, Objective objective);
/// The rows that fit and whose times are known that no other such row beats in memory without
/// losing time: by memory.
Rows front_rows(const Exploration& all);

struct ExploreOptions {
  std::size_t most_rows = 200'000;
  /// Only the fastest rows that fit, so many, and their front get exact times; 0 = all rows do. The
  /// bounds of the others that fit are then at least what kept them out: far fewer are timed.
  std::size_t most_timed = 0;
  /// All memory, fit and bounds are known. Called once, from the thread that called explore().
  std::function<void(const Exploration&)> priced;
  /// The exact times of `rows` are known too. Called from the same thread for one batch after the
  /// other: layouts that fit first, and of these the ones whose bound is lowest; layouts that share
  /// the passes of a pipeline come together.
  std::function<void(const Exploration&, std::span<const std::uint32_t> rows)> timed;
};

/// Prices every layout of the request's space: first memory, fit and a bound on the time of each,
/// then the exact times. The result is the same for any number of threads. Asked to stop, it keeps
/// the batches that it has given. Rows of a loss are not decided: a job that leaves them open has
/// kUsualLossRows.
/// \returns the layouts, or what is wrong with a lock
Result<Exploration> explore(const SearchRequest& request, const ExploreOptions& options = {});

}  // namespace shardwise
