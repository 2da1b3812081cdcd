#include "planner/score/interval_text.h"

#include <fmt/format.h>

#include <cmath>

#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "planner/spec/text/table.h"

namespace shardwise {
namespace {

std::string coverage_text(const IntervalTable& table, bool colour) {
  Table text({{"source left out", Align::left},
              {"quantity", Align::left},
              {"rows"},
              {"covered"},
              {"half-width"}});
  const auto row = [&](const std::string& name, IntervalOf quantity, std::int64_t rows,
                       double covered, double width) {
    text.row({name, std::string(name_of(quantity)), format_count(rows), format_percent(covered),
              format_percent(width)});
  };
  for (const SourceCoverage& each : table.by_source) {
    row(each.source, each.quantity, each.rows,
        static_cast<double>(each.covered) / static_cast<double>(each.rows), each.half_width);
  }
  text.rule();
  for (const IntervalCoverage& each : table.coverage) {
    row(fmt::format("mean of {} sources", each.sources), each.quantity, each.rows, each.of_sources,
        each.half_width);
    text.row({"all rows", std::string(name_of(each.quantity)), format_count(each.rows),
              format_percent(each.of_rows), "-"});
  }
  return text.text(colour);
}

std::string cells_text(const IntervalTable& table, bool colour) {
  Table text({{"engines", Align::left},
              {"GPUs", Align::left},
              {"quantity", Align::left},
              {"sources"},
              {"rows"},
              {"low"},
              {"high"}});
  const auto all = [](const std::string& name) { return name.empty() ? "all" : name; };
  for (const IntervalCell& cell : table.cells) {
    const ErrorInterval& each = cell.interval;
    text.row({all(each.family), all(each.architecture), std::string(name_of(cell.quantity)),
              format_count(each.sources), format_count(each.rows), signed_percent(each.low - 1),
              signed_percent(each.high - 1)});
  }
  return text.text(colour);
}

}  // namespace

std::string to_text(const IntervalTable& table, bool colour) {
  return coverage_text(table, colour) + "\n" + cells_text(table, colour);
}

}  // namespace shardwise
