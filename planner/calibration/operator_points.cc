#include <fmt/format.h>

#include <map>

#include "planner/calibration/csv_cells.h"
#include "planner/calibration/measurements.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// "m=4096, layout=TN" as names and values.
class ShapeText {
 public:
  explicit ShapeText(std::string_view text) {
    while (!text.empty()) {
      const std::size_t comma = text.find(',');
      std::string_view part = text.substr(0, comma);
      while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
      const std::size_t equals = part.find('=');
      if (equals != std::string_view::npos) {
        values_.emplace(part.substr(0, equals), part.substr(equals + 1));
      }
      text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    }
  }

  std::string_view text(std::string_view name) const {
    const auto at = values_.find(name);
    return at == values_.end() ? std::string_view() : at->second;
  }
  /// 0 when absent or not a positive number below 2^32.
  std::int64_t size(std::string_view name) const {
    const std::int64_t value = parse_integer(text(name)).value_or(0);
    return value > 0 && value < (std::int64_t{1} << 32) ? value : 0;
  }

 private:
  std::map<std::string_view, std::string_view, std::less<>> values_;
};

GemmOutput output_of(std::string_view accumulate, std::string_view dtype) {
  if (accumulate != "True") return GemmOutput::written;
  return dtype == "fp32" ? GemmOutput::fp32_sum : GemmOutput::sum;
}

double point_flops(const GemmPoint& point) {
  return 2.0 * static_cast<double>(point.groups) * static_cast<double>(point.m) *
         static_cast<double>(point.n) * static_cast<double>(point.k);
}

/// Shapes are given as they are multiplied.
std::optional<GemmPoint> gemm_point(const ShapeText& shape) {
  GemmPoint point;
  const std::int64_t batch = shape.size("b");
  point.m = batch * shape.size("m");
  point.n = shape.size("n");
  point.k = shape.size("k");
  point.output = output_of(shape.text("accumulate"), shape.text("out_dtype"));
  if (point.m == 0 || point.n == 0 || point.k == 0) return std::nullopt;
  return point;
}

/// Shapes are those of the forward pass, [M, K] x [K, N], in every stage.
std::optional<GemmPoint> grouped_point(const ShapeText& shape) {
  GemmPoint point;
  const std::int64_t m = shape.size("M");
  const std::int64_t n = shape.size("N");
  const std::int64_t k = shape.size("K");
  point.groups = shape.size("ng");
  const std::string_view stage = shape.text("stage");
  if (stage == "fwd") {
    point.m = m, point.n = n, point.k = k;
  } else if (stage == "bwd_grad_act") {
    point.m = m, point.n = k, point.k = n;
  } else if (stage == "bwd_grad_w") {
    point.m = n, point.n = k, point.k = m;
    point.output = output_of(shape.text("accumulate"), shape.text("main_grad_dtype"));
  } else {
    return std::nullopt;
  }
  if (point.groups == 0 || m == 0 || n == 0 || k == 0) return std::nullopt;
  return point;
}

std::optional<AttentionPoint> attention_point(const ShapeText& shape, Pass pass) {
  AttentionPoint point;
  point.pass = pass;
  AttentionWork& work = point.work;
  work.batch = shape.size("batch");
  work.seq_q = work.seq_kv = shape.size("seq_len");
  work.heads = shape.size("head_num");
  work.kv_heads = shape.size("kv_head_num");
  work.qk_head_dim = shape.size("qk_head_dim");
  work.v_head_dim = shape.size("v_head_dim");
  const bool complete = work.batch > 0 && work.seq_q > 0 && work.heads > 0 && work.kv_heads > 0 &&
                        work.qk_head_dim > 0 && work.v_head_dim > 0;
  return complete ? std::optional(point) : std::nullopt;
}

/// The source counts the work as if there were no causal mask.
double counted_flops(AttentionPoint point) {
  point.work.causal = false;
  return attention_flops(point.work, point.pass).value();
}

}  // namespace

Result<OperatorPoints> operator_points(const CsvTable& table, const std::string& system) {
  Diagnostics problems;
  CsvCells cells(table, problems);
  const CsvCells::Column systems = cells.column("system");
  const CsvCells::Column ops = cells.column("op");
  const CsvCells::Column shapes = cells.column("shape");
  const CsvCells::Column rates = cells.column("tflops");
  if (!problems.empty()) return problems;
  OperatorPoints points;
  bool known = false;
  for (const CsvTable::Row& row : table.rows) {
    if (cells.text(row, systems) != system) continue;
    known = true;
    const std::string_view op = cells.text(row, ops);
    const ShapeText shape(cells.text(row, shapes));
    const auto timed = [&](auto& point, double flops) {
      point.time = Seconds(flops / (cells.number(row, rates, 1e-3, 1e6) * 1e12));
    };
    if (op == "matmul") {
      if (auto point = gemm_point(shape)) {
        timed(*point, point_flops(*point));
        points.gemm.push_back(*point);
      }
    } else if (op == "group_matmul") {
      if (auto point = grouped_point(shape)) {
        timed(*point, point_flops(*point));
        points.grouped.push_back(*point);
      }
    } else if (op == "sdp_fwd" || op == "sdp_bwd") {
      const Pass pass = op == "sdp_fwd" ? Pass::forward : Pass::backward;
      if (auto point = attention_point(shape, pass)) {
        timed(*point, counted_flops(*point));
        points.attention.push_back(*point);
      }
    }
  }
  if (!known) {
    return Diagnostic{table.file, 0, 0, "system", fmt::format("no rows of {}", shown(system)), ""};
  }
  if (!problems.empty()) return problems;
  return points;
}

}  // namespace shardwise
