#include "planner/score/interval_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace shardwise {
namespace {

constexpr std::size_t kFewestSources = 5;  // of a cell; 4 where one of them is left out
constexpr std::size_t kFewestRows = 30;
constexpr double kNear = 0.25;           // log of the ratio of two predictions that make a pair
constexpr std::size_t kFewestPairs = 8;  // of a source, both ways round
constexpr double kWidestTail = 0.25;
constexpr int kHalvings = 14;  // of the tail: to 2e-5

const std::string& text_of_method() {
  static const std::string kText =
      "split conformal prediction on log(measured / predicted), sources weighted equally; cells of "
      "a family of engines and an architecture with 5 sources and 30 rows, else all; tail chosen "
      "so that sources left out are covered as the level says, mean over sources "
      "(shardwise score FILE... --intervals)";
  return kText;
}

/// Residuals of some rows, ascending, with the weight up to each.
class ResidualCell {
 public:
  void add(const Residual& residual) {
    values_.emplace_back(residual.value, residual.source);
    ++rows_of_[residual.source];
  }
  std::size_t rows() const { return values_.size(); }
  std::size_t sources() const { return rows_of_.size(); }

  void finish() {
    std::ranges::sort(values_);
    double sum = 0;
    for (const auto& [value, source] : values_) {
      sum += 1 / static_cast<double>(rows_of_[source] * rows_of_.size());
      weight_up_to_.push_back(sum);
    }
  }

  /// Factors between which all but `tail` at either end lies. Contains the prediction.
  std::pair<double, double> interval(double tail) const {
    return {std::exp(std::min(0.0, quantile(tail))), std::exp(std::max(0.0, quantile(1 - tail)))};
  }

 private:
  double quantile(double share) const {
    constexpr double kRounding = 1e-12;
    const auto found = std::ranges::lower_bound(weight_up_to_, share - kRounding);
    const auto at = static_cast<std::size_t>(found - weight_up_to_.begin());
    return values_[std::min(at, values_.size() - 1)].first;
  }

  std::vector<std::pair<double, std::string>> values_;
  std::map<std::string, std::size_t> rows_of_;
  std::vector<double> weight_up_to_;
};

/// By family and architecture; both empty: all.
using CellKey = std::pair<std::string, std::string>;
using Cells = std::map<CellKey, ResidualCell>;

/// \param without  a source that is left out; empty for none
Cells cells_of(std::span<const Residual> residuals, const std::string& without) {
  Cells cells;
  for (const Residual& each : residuals) {
    if (each.source == without) continue;
    cells[{each.family, each.architecture}].add(each);
    cells[{}].add(each);
  }
  const std::size_t fewest = without.empty() ? kFewestSources : kFewestSources - 1;
  std::erase_if(cells, [&](const auto& entry) {
    const bool all = entry.first == CellKey();
    return !all && (entry.second.sources() < fewest || entry.second.rows() < kFewestRows);
  });
  for (auto& [key, cell] : cells) cell.finish();
  return cells;
}

const ResidualCell& cell_for(const Cells& cells, const Residual& residual) {
  const auto found = cells.find({residual.family, residual.architecture});
  return found != cells.end() ? found->second : cells.at({});
}

/// A source with the cells that the others make.
struct LeftOut {
  std::string source;
  std::vector<const Residual*> own;
  Cells cells;

  SourceCoverage covered(IntervalOf quantity, double tail) const {
    SourceCoverage result{quantity, source, std::ssize(own), 0, 0};
    for (const Residual* each : own) {
      const auto [low, high] = cell_for(cells, *each).interval(tail);
      const double ratio = std::exp(each->value);
      result.covered += ratio >= low && ratio <= high ? 1 : 0;
      result.half_width += std::log(high / low) / 2 / static_cast<double>(own.size());
    }
    return result;
  }
};

double share_of(const SourceCoverage& each) {
  return static_cast<double>(each.covered) / static_cast<double>(each.rows);
}

double mean_share(const std::vector<LeftOut>& all, IntervalOf quantity, double tail) {
  double sum = 0;
  for (const LeftOut& each : all) sum += share_of(each.covered(quantity, tail));
  return sum / static_cast<double>(all.size());
}

/// The largest tail that covers what the level asks for; 0 where none does.
double tail_of(const std::vector<LeftOut>& all, IntervalOf quantity) {
  double low = 0;
  double high = kWidestTail;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (mean_share(all, quantity, middle) >= kIntervalLevel ? low : high) = middle;
  }
  return low;
}

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

std::vector<LeftOut> left_out(std::span<const Residual> residuals) {
  std::set<std::string> names;
  for (const Residual& each : residuals) names.insert(each.source);
  std::vector<LeftOut> all;
  for (const std::string& name : names) {
    LeftOut one{name, {}, cells_of(residuals, name)};
    for (const Residual& each : residuals) {
      if (each.source == name) one.own.push_back(&each);
    }
    all.push_back(std::move(one));
  }
  return all;
}

void fit_quantity(IntervalOf quantity, std::span<const Residual> residuals, IntervalTable& table) {
  const std::vector<LeftOut> all = left_out(residuals);
  if (all.size() < 2) return;
  IntervalCoverage overall{quantity, std::ssize(all), 0, tail_of(all, quantity), 0, 0, 0};
  const auto sources = static_cast<double>(all.size());
  for (const LeftOut& each : all) {
    SourceCoverage covered = each.covered(quantity, overall.tail);
    overall.rows += covered.rows;
    overall.of_rows += static_cast<double>(covered.covered);
    overall.of_sources += share_of(covered) / sources;
    overall.half_width += covered.half_width / sources;
    covered.half_width = rounded(covered.half_width);
    table.by_source.push_back(std::move(covered));
  }
  overall.of_rows = rounded(overall.of_rows / static_cast<double>(overall.rows));
  overall.of_sources = rounded(overall.of_sources);
  overall.half_width = rounded(overall.half_width);
  const Cells cells = cells_of(residuals, "");
  for (auto entry = cells.rbegin(); entry != cells.rend(); ++entry) {  // all has the least key
    const auto& [key, cell] = *entry;
    const auto [low, high] = cell.interval(overall.tail);
    table.cells.push_back({quantity,
                           {rounded(low), rounded(high), static_cast<std::int64_t>(cell.rows()),
                            static_cast<std::int64_t>(cell.sources()), key.first, key.second}});
  }
  overall.tail = rounded(overall.tail);
  table.coverage.push_back(overall);
}

Residual residual_of(const ScoredFigure& figure, IntervalOf quantity) {
  const std::string source = figure.id.substr(0, figure.id.find('/'));
  return {quantity, source, family_of(figure.engine), figure.architecture,
          std::log(figure.measured / figure.predicted)};
}

void add_memory(const ScoredFigure& figure, std::vector<Residual>& residuals) {
  switch (figure.kind) {
    case MemoryKind::allocated:
      residuals.push_back(residual_of(figure, IntervalOf::allocated));
      break;
    case MemoryKind::reserved:
    case MemoryKind::total:
      residuals.push_back(residual_of(figure, IntervalOf::held));
      break;
    case MemoryKind::states_and_activations:
      break;  // a paper's formulas, or after the step: no peak of a run
  }
}

void add_pairs(const std::vector<const ScoredFigure*>& alike, std::vector<Residual>& residuals) {
  for (std::size_t i = 0; i < alike.size(); ++i) {
    for (std::size_t j = i + 1; j < alike.size(); ++j) {
      const ScoredFigure& a = *alike[i];
      const ScoredFigure& b = *alike[j];
      const double apart = std::log(a.predicted / a.sequences / (b.predicted / b.sequences));
      if (std::abs(apart) > kNear) continue;
      Residual pair = residual_of(a, IntervalOf::step_ratio);
      pair.value -= residual_of(b, IntervalOf::step_ratio).value;
      residuals.push_back(pair);
      pair.value = -pair.value;
      residuals.push_back(std::move(pair));
    }
  }
}

}  // namespace

std::vector<Residual> residuals_of(const ScoreReport& report) {
  std::vector<Residual> residuals;
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<const ScoredFigure*>>
      alike;
  for (const ScoredFigure& figure : report.figures) {
    if (figure.quantity == Scored::memory) {
      add_memory(figure, residuals);
      continue;
    }
    residuals.push_back(residual_of(figure, IntervalOf::step));
    alike[{figure.source, figure.engine, figure.question}].push_back(&figure);
  }
  for (const ScoredFigure& figure : report.beside) add_memory(figure, residuals);
  for (const auto& [question, figures] : alike) add_pairs(figures, residuals);
  return residuals;
}

IntervalTable fit_intervals(std::span<const Residual> residuals) {
  IntervalTable table;
  table.method = text_of_method();
  for (const IntervalOf quantity : values_of<IntervalOf>()) {
    std::vector<Residual> some;
    std::map<std::string, std::size_t> rows;
    for (const Residual& each : residuals) {
      if (each.quantity != quantity) continue;
      some.push_back(each);
      ++rows[each.source];
    }
    if (quantity == IntervalOf::step_ratio) {
      std::erase_if(some, [&](const Residual& r) { return rows[r.source] < kFewestPairs; });
    }
    fit_quantity(quantity, some, table);
  }
  return table;
}

}  // namespace shardwise
