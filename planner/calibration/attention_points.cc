#include <utility>

#include "planner/calibration/csv_cells.h"
#include "planner/calibration/measurements.h"

namespace shardwise {
namespace {

// What training does: shorter sequences and narrower windows are bound by other things than the
// matrix unit, wider heads take other kernels.
constexpr std::int64_t kLeastTokens = 1024;
constexpr std::int64_t kWidestHead = 256;

bool as_in_training(const AttentionWork& work) {
  return work.seq_q >= kLeastTokens && (work.window == 0 || work.window >= kLeastTokens) &&
         work.qk_head_dim <= kWidestHead;
}

/// Integers of a row, by column.
class RowSizes {
 public:
  RowSizes(CsvCells& cells, const CsvTable::Row& row) : cells_(cells), row_(row) {}
  std::int64_t operator()(CsvCells::Column column) const {
    return cells_.integer(row_, column, 1, kMostMeasuredElements);
  }

 private:
  CsvCells& cells_;
  const CsvTable::Row& row_;
};

Result<std::vector<AttentionPoint>> serving_points(const CsvTable& table) {
  Diagnostics problems;
  CsvCells cells(table, problems);
  const CsvCells::Column batch = cells.column("batch_size");
  const CsvCells::Column tokens = cells.column("isl");
  const CsvCells::Column heads = cells.column("num_heads");
  const CsvCells::Column kv_heads = cells.column("num_key_value_heads");
  const CsvCells::Column head_dim = cells.column("head_dim");
  const CsvCells::Column time = cells.column("latency");
  const CsvCells::Column window = cells.optional("window_size");
  const CsvCells::Column dtypes[] = {cells.optional("attn_dtype"),
                                     cells.optional("kv_cache_dtype")};
  if (!problems.empty()) return problems;
  std::vector<AttentionPoint> points;
  for (const CsvTable::Row& row : table.rows) {
    bool bf16 = true;
    for (const CsvCells::Column each : dtypes) {
      bf16 = bf16 && (!each.there || dtype_called(cells.text(row, each)) == DType::bf16);
    }
    if (!bf16) continue;
    const RowSizes size(cells, row);
    AttentionPoint point;
    point.copies_kv = true;
    point.work = {.batch = size(batch),
                  .heads = size(heads),
                  .kv_heads = size(kv_heads),
                  .seq_q = size(tokens),
                  .seq_kv = size(tokens),
                  .qk_head_dim = size(head_dim),
                  .v_head_dim = size(head_dim)};
    // Tables of mixed versions have a window of "0.0".
    if (!cells.text(row, window).empty()) {
      point.work.window = cells.integer(row, window, 0, kMostMeasuredElements);
    }
    point.time = Seconds(cells.number(row, time, kLeastMeasuredMs, kMostMeasuredMs) * 1e-3);
    if (as_in_training(point.work)) points.push_back(point);
  }
  if (!problems.empty()) return problems;
  return points;
}

Result<std::vector<AttentionPoint>> training_points(const CsvTable& table) {
  Diagnostics problems;
  CsvCells cells(table, problems);
  const CsvCells::Column batch = cells.column("batch_size");
  const CsvCells::Column queries = cells.column("q_seqlen");
  const CsvCells::Column keys = cells.column("kv_seqlen");
  const CsvCells::Column heads = cells.column("num_q_heads");
  const CsvCells::Column kv_heads = cells.column("num_kv_heads");
  const CsvCells::Column qk_dim = cells.column("head_dim_qk");
  const CsvCells::Column v_dim = cells.column("head_dim_vo");
  const CsvCells::Column mask = cells.column("attn_mask");
  const CsvCells::Column dtype = cells.column("data_type");
  const CsvCells::Column pass = cells.column("profile_pass");
  const CsvCells::Column deterministic = cells.optional("deterministic_bwd");
  const CsvCells::Column window = cells.optional("sliding_window_size");
  const CsvCells::Column success = cells.optional("success");
  // One row a pass, or both passes in one row.
  const CsvCells::Column time = cells.optional("time_ms");
  const CsvCells::Column forward = time.there ? time : cells.column("fwd_time_ms");
  const CsvCells::Column backward = time.there ? time : cells.column("bwd_time_ms");
  if (!problems.empty()) return problems;
  std::vector<AttentionPoint> points;
  for (const CsvTable::Row& row : table.rows) {
    const bool other = dtype_called(cells.text(row, dtype)) != DType::bf16 ||
                       cells.text(row, success) == "False" ||
                       cells.text(row, deterministic) == "True";
    if (other) continue;
    const RowSizes size(cells, row);
    AttentionPoint point;
    point.work = {.batch = size(batch),
                  .heads = size(heads),
                  .kv_heads = size(kv_heads),
                  .seq_q = size(queries),
                  .seq_kv = size(keys),
                  .qk_head_dim = size(qk_dim),
                  .v_head_dim = size(v_dim),
                  .causal = cells.text(row, mask) != "no_mask"};
    if (!cells.text(row, window).empty()) point.work.window = size(window);
    if (!as_in_training(point.work)) continue;
    const std::string_view passes = cells.text(row, pass);
    const auto add = [&](Pass which, CsvCells::Column column) {
      point.pass = which;
      point.time = Seconds(cells.number(row, column, kLeastMeasuredMs, kMostMeasuredMs) * 1e-3);
      points.push_back(point);
    };
    if (passes == "fwd" || passes == "both") add(Pass::forward, forward);
    if (passes == "bwd" || passes == "both") add(Pass::backward, backward);
  }
  if (!problems.empty()) return problems;
  return points;
}

}  // namespace

Result<std::vector<AttentionPoint>> attention_points(const CsvTable& table) {
  return table.column("q_seqlen") ? training_points(table) : serving_points(table);
}

}  // namespace shardwise
