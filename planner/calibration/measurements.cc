#include "planner/calibration/measurements.h"

#include <optional>

#include "planner/calibration/csv_cells.h"

namespace shardwise {

std::optional<DType> dtype_called(std::string_view name) {
  if (name == "bfloat16") return DType::bf16;
  if (name == "float16" || name == "half") return DType::fp16;
  if (name == "float32" || name == "float") return DType::fp32;
  return dtype_from_name(name);
}

Result<std::vector<GemmPoint>> gemm_points(const CsvTable& table) {
  Diagnostics problems;
  CsvCells cells(table, problems);
  const CsvCells::Column dtype = cells.column(cells.has("gemm_dtype") ? "gemm_dtype" : "dtype");
  const CsvCells::Column m = cells.column("m");
  const CsvCells::Column n = cells.column("n");
  const CsvCells::Column k = cells.column("k");
  const CsvCells::Column time = cells.column(cells.has("latency") ? "latency" : "latency_ms");
  if (!problems.empty()) return problems;
  std::vector<GemmPoint> points;
  for (const CsvTable::Row& row : table.rows) {
    GemmPoint point;
    const std::optional<DType> known = dtype_called(cells.text(row, dtype));
    if (!known) continue;  // block-scaled and other formats that have no dtype of their own
    point.dtype = *known;
    point.m = cells.integer(row, m, 1, kMostMeasuredElements);
    point.n = cells.integer(row, n, 1, kMostMeasuredElements);
    point.k = cells.integer(row, k, 1, kMostMeasuredElements);
    point.time = Seconds(cells.number(row, time, kLeastMeasuredMs, kMostMeasuredMs) * 1e-3);
    points.push_back(point);
  }
  if (!problems.empty()) return problems;
  return points;
}

Result<std::vector<MovePoint>> move_points(const CsvTable& table, Bytes cache) {
  Diagnostics problems;
  CsvCells cells(table, problems);
  const CsvCells::Column m = cells.column("m");
  const CsvCells::Column k = cells.column("k");
  const CsvCells::Column time = cells.column("latency");
  if (!problems.empty()) return problems;
  std::vector<MovePoint> points;
  for (const CsvTable::Row& row : table.rows) {
    const std::int64_t elements =
        cells.integer(row, m, 1, 1 << 30) * cells.integer(row, k, 1, 1 << 30);
    const double ms = cells.number(row, time, 0, kMostMeasuredMs);
    const Bytes read(2 * elements);
    if (read < 2 * cache || ms <= 0) continue;
    points.push_back({read + Bytes(elements), Seconds(ms * 1e-3)});
  }
  if (!problems.empty()) return problems;
  return points;
}

}  // namespace shardwise
