#include "planner/estimate/interval_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "planner/estimate/interval_config.h"
#include "planner/spec/json/fields.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

constexpr std::string_view kCpu = "cpu";
constexpr double kWidest = 1e6;
constexpr std::int64_t kMostRows = 1'000'000'000;
constexpr std::size_t kMostCells = 1000;
constexpr std::size_t kMostSources = 10'000;

template <class Io, class T>
void list_table(Io& io, T& table) {
  io.text("method", table.method);
  io.objects("coverage", table.coverage, kMostCells, [](auto& inner, auto& each) {
    inner.require({"quantity", "sources", "rows", "tail", "of_sources", "of_rows", "half_width"});
    inner.choice("quantity", each.quantity);
    inner.integer("sources", each.sources, 1, kMostRows);
    inner.integer("rows", each.rows, 1, kMostRows);
    inner.number("tail", each.tail, 0, 1);
    inner.number("of_sources", each.of_sources, 0, 1);
    inner.number("of_rows", each.of_rows, 0, 1);
    inner.number("half_width", each.half_width, 0, kWidest);
  });
  io.objects("by_source", table.by_source, kMostSources, [](auto& inner, auto& each) {
    inner.require({"quantity", "source", "rows", "covered", "half_width"});
    inner.choice("quantity", each.quantity);
    inner.text("source", each.source);
    inner.integer("rows", each.rows, 1, kMostRows);
    inner.integer("covered", each.covered, 0, kMostRows);
    inner.number("half_width", each.half_width, 0, kWidest);
  });
  io.objects("cells", table.cells, kMostCells, [](auto& inner, auto& cell) {
    inner.require({"quantity", "low", "high", "rows", "sources"});
    inner.choice("quantity", cell.quantity);
    inner.text("family", cell.interval.family);
    inner.text("architecture", cell.interval.architecture);
    inner.number("low", cell.interval.low, 0, 1);
    inner.number("high", cell.interval.high, 1, kWidest);
    inner.integer("rows", cell.interval.rows, 1, kMostRows);
    inner.integer("sources", cell.interval.sources, 1, kMostRows);
  });
}

bool holds(const std::string& of, std::string_view asked) { return of.empty() || of == asked; }

}  // namespace

std::string family_of(std::string_view engine) {
  if (engine.find("megatron") != std::string_view::npos) return "megatron";
  constexpr std::array<std::string_view, 4> kPyTorch = {"fsdp1", "fsdp2", "pytorch_ddp",
                                                        "deepspeed"};
  return std::ranges::find(kPyTorch, engine) != kPyTorch.end() ? "pytorch" : std::string(engine);
}

ErrorInterval interval_in(const IntervalTable& table, IntervalOf quantity, std::string_view family,
                          std::string_view architecture) {
  for (const IntervalCell& cell : table.cells) {
    if (cell.quantity == quantity && holds(cell.interval.family, family) &&
        holds(cell.interval.architecture, architecture)) {
      return cell.interval;
    }
  }
  return {};
}

const IntervalTable& interval_table() {
  static const IntervalTable kTable = [] {
    Result<IntervalTable> read =
        interval_table_from_text(interval_config(), "configs/intervals.json");
    SHARDWISE_CHECK(read.ok(), to_string(read.problems()));
    return *std::move(read);
  }();
  return kTable;
}

ReportIntervals report_intervals(const EngineProfile& engine, const ClusterSpec& cluster) {
  const std::string& architecture = cluster.gpu.architecture;
  if (architecture == kCpu) return {};
  const auto of = [&](IntervalOf quantity) {
    return interval_in(interval_table(), quantity, family_of(engine.name), architecture);
  };
  ReportIntervals intervals;
  intervals.step = of(IntervalOf::step);
  if (engine.allocator == AllocatorKind::arena) return intervals;
  intervals.allocated = of(IntervalOf::allocated);
  intervals.reserved = intervals.nvidia_smi = of(IntervalOf::held);
  return intervals;
}

ErrorInterval step_ratio_interval(std::string_view engine, const ClusterSpec& cluster) {
  if (cluster.gpu.architecture == kCpu) return {};
  return interval_in(interval_table(), IntervalOf::step_ratio, family_of(engine),
                     cluster.gpu.architecture);
}

std::string interval_table_json(const IntervalTable& table) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.intervals/1");
  FieldWriter io(json);
  list_table(io, table);
  json.end_object();
  return json.text();
}

Result<IntervalTable> interval_table_from_text(std::string_view text, const std::string& file) {
  const Result<JsonValue> json = parse_json(text, file);
  if (!json) return json.problems();
  Diagnostics problems;
  ObjectReader root(*json, file, "", problems);
  root.require_schema("shardwise.intervals/1");
  IntervalTable table;
  FieldReader io(root);
  list_table(io, table);
  root.reject_unknown();
  if (!problems.empty()) return problems;
  return table;
}

}  // namespace shardwise
