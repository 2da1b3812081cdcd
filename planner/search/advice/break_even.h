#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "planner/search/advice/lever.h"
#include "planner/search/pricing/search_memory.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Factors between which one answer holds: it was found at both and nowhere another between.
struct Piece {
  double from = 1;
  double upto = 1;
  std::size_t answer = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// Cuts a range of factors where an answer changes. It is asked at every factor of the grid, and
/// between two that differ by bisection, until a piece begins no more than `tolerance` above the
/// end of the one before. What is another answer between two equal neighbours of the grid alone is
/// not seen. \param answer  nothing: the cutting stops, with the pieces so far
/// \pre the grid ascends, tolerance > 0
std::vector<Piece> pieces(std::span<const double> grid, double tolerance,
                          const std::function<std::optional<std::size_t>(double)>& answer);

/// A cluster that is compared with others at the same work.
struct Contender {
  std::string name;
  ClusterSpec cluster;
  bool pulled = true;  // it has the lever; false: it is as it is at every factor
};

/// What the best layout of a contender is at one factor.
struct LinePoint {
  double factor = 1;
  std::optional<Layout> layout;  // nothing where none fits for certain
  Seconds step_time;
  double tokens_per_s = 0;
  double cost = 0;  // of 1e9 tokens: dollars, or GPU-hours where a contender has no price
};

struct BreakEvenQuestion {
  const ModelSpec* model = nullptr;
  const JobSpec* job = nullptr;
  const EngineProfile* engine = nullptr;
  std::vector<Contender> contenders;
  Lever lever;               // of every contender that is pulled
  std::vector<double> grid;  // ascending factors
  double tolerance = 0.01;
  std::shared_ptr<SearchMemory> memory;
  std::stop_token stop;
};

/// Lines of cost over a lever's factor, and from where on another wins.
struct BreakEven {
  bool dollars = false;                       // what costs are in
  std::vector<std::vector<LinePoint>> lines;  // by contender, at every factor of the grid
  /// By contender, who costs less: the first one (0) or it (1); 2 where neither fits. Empty for the
  /// first.
  std::vector<std::vector<Piece>> against;
  /// The best layout of the first contender, an index into `layouts`; as many as there are: none
  /// fits.
  std::vector<Piece> best;
  std::vector<Layout> layouts;
  bool done = false;  // not stopped
};

/// Factors from 1/8 to 8, for memory and price from 1/4 to 4, with 1 among them.
std::vector<double> usual_grid(const Lever& lever);

/// Every point is an answer of best_layout(); a price changes none, so that it takes one search a
/// contender. \param progress  called with more and more of the lines
BreakEven break_even(const BreakEvenQuestion& question,
                     const std::function<void(const BreakEven&)>& progress = {});

}  // namespace shardwise
