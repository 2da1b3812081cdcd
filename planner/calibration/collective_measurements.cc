#include "planner/calibration/collective_measurements.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// A finite number >= 0, nothing for an empty cell; a problem otherwise.
class Cells {
 public:
  Cells(const CsvTable& table, Diagnostics& problems) : table_(table), problems_(problems) {}

  std::string_view text(const CsvTable::Row& row, std::string_view column) const {
    const auto at = table_.column(column);
    return at ? std::string_view(row.cells[*at]) : std::string_view();
  }
  std::optional<double> number(const CsvTable::Row& row, std::string_view column) const {
    const std::string cell(text(row, column));
    if (cell.empty()) return std::nullopt;
    const std::optional<double> value = parse_number(cell);
    if (!value || *value < 0) {
      fail(row, fmt::format("{} {} is not a number", column, shown(cell)));
      return std::nullopt;
    }
    return value;
  }
  void fail(const CsvTable::Row& row, std::string message, std::string hint = {}) const {
    if (problems_.size() >= kMostListedProblems) return;
    problems_.push_back({table_.file, row.line, 0, "", std::move(message), std::move(hint)});
  }

 private:
  const CsvTable& table_;
  Diagnostics& problems_;
};

bool wanted(const CsvTable& table, const CsvTable::Row& row, const RowFilter& only) {
  for (const auto& [column, values] : only) {
    const auto at = table.column(column);
    if (at && !values.contains(row.cells[*at])) return false;
  }
  return true;
}

void take_row(const CsvTable::Row& row, const Cells& cells, const ClusterSpec& cluster,
              std::vector<CollectiveMeasurement>& measurements) {
  const std::string_view op = cells.text(row, "op");
  const auto kind = collective_from_name(op);
  if (!kind) {
    return cells.fail(
        row, fmt::format("op {} is not a collective", shown(op)),
        "use all_reduce, all_gather, reduce_scatter, alltoall, broadcast or sendrecv");
  }
  const auto gpus = cells.number(row, "gpus");
  const auto bytes = cells.number(row, "bytes");
  if (!gpus || !bytes || *bytes == 0) return;
  if (*gpus < 2 || *gpus > static_cast<double>(kMostGpus) || std::trunc(*gpus) != *gpus ||
      *bytes > 1e15) {
    return cells.fail(row, fmt::format("{} bytes among {} GPUs", *bytes, *gpus));
  }
  const auto ranks = static_cast<std::int32_t>(*gpus);
  const auto nodes = cells.number(row, "nodes");
  if (nodes && *nodes != static_cast<double>(ceil_div(ranks, cluster.gpus_per_node))) {
    return cells.fail(row, fmt::format("{} GPUs on {} nodes, but a node of {} has {}", ranks,
                                       *nodes, cluster.name, cluster.gpus_per_node));
  }
  double seconds = 0;
  if (const auto time = cells.number(row, "time_us"); time && *time > 0) {
    seconds = *time * 1e-6;
  } else if (const auto rate = cells.number(row, "busbw_GBps"); rate && *rate > 0) {
    seconds = bus_factor(*kind, ranks) * *bytes / (*rate * 1e9);
  } else {
    return;
  }
  measurements.push_back({*kind, packed_group(cluster, ranks),
                          Bytes(static_cast<std::int64_t>(*bytes)), Seconds(seconds)});
}

}  // namespace

Result<std::vector<CollectiveMeasurement>> measurements_from_csv(const CsvTable& table,
                                                                 const ClusterSpec& cluster,
                                                                 const RowFilter& only) {
  Diagnostics problems;
  const auto need = [&](const std::string& column) {
    if (table.column(column)) return;
    problems.push_back({table.file, 1, 0, "", fmt::format("no column {}", shown(column)),
                        fmt::format("the columns are {}", fmt::join(table.columns, ", "))});
  };
  for (const char* column : {"op", "gpus", "bytes"}) need(column);
  if (!table.column("time_us")) need("busbw_GBps");
  if (!problems.empty()) return problems;

  std::vector<CollectiveMeasurement> measurements;
  const Cells cells(table, problems);
  for (const CsvTable::Row& row : table.rows) {
    if (wanted(table, row, only)) take_row(row, cells, cluster, measurements);
  }
  if (!problems.empty()) return problems;
  return measurements;
}

}  // namespace shardwise
