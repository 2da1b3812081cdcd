// A table of measurements is either refused or becomes points with a size and a time, whatever kind
// of measurements it is taken for.

#include <fmt/format.h>

#include "planner/calibration/collective_measurements.h"
#include "planner/calibration/measurements.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/csv.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = read_input(text, [](std::string_view t) { return parse_csv(t, "fuzz.csv"); });
  if (!table) return 0;
  for (const CsvTable::Row& row : table->rows) {
    SHARDWISE_CHECK(row.cells.size() == table->columns.size(), fmt::format("line {}", row.line));
  }
  static const ClusterSpec kCluster = *find_cluster("dgx-h100");
  read_input(*table, gemm_points);
  read_input(*table, attention_points);
  read_input(*table, [](const CsvTable& t) { return move_points(t, 50_MiB); });
  read_input(*table, [](const CsvTable& t) { return operator_points(t, "h100"); });
  const auto timed =
      read_input(*table, [](const CsvTable& t) { return measurements_from_csv(t, kCluster, {}); });
  if (!timed) return 0;
  for (const CollectiveMeasurement& each : *timed) {
    SHARDWISE_CHECK(each.time.value() > 0 && each.bytes > Bytes(0),
                    fmt::format("{} bytes", each.bytes.value()));
  }
  return 0;
}
