#include "cli/verbs/fit_gpu.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "cli/terminal.h"
#include "cli/verbs/check_gpu.h"
#include "planner/calibration/fit_attention.h"
#include "planner/calibration/fit_gemm.h"
#include "planner/calibration/measurements.h"
#include "planner/command/number_flags.h"
#include "planner/files/atomic_file_set.h"
#include "planner/question/flags.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/json/csv_file.h"
#include "planner/spec/machine/gpu_reader.h"
#include "planner/spec/machine/gpu_writer.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

constexpr std::size_t kLeastGemms = 40;
constexpr std::size_t kLeastPoints = 8;

using Named = std::map<std::string, std::string, std::less<>>;

/// Splits "name=value".
Result<Named> named(const std::vector<std::string>& pairs, const std::string& flag) {
  Named result;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos) {
      return wrong_flag(flag, fmt::format("{} has no =", pair), "write NAME=VALUE");
    }
    result[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return result;
}

/// The files that were named, each read into the points it holds.
struct Points {
  std::vector<GemmPoint> gemm;
  std::vector<AttentionPoint> attention;
  std::vector<MovePoint> moves;
  OperatorPoints operators;
};

/// Appends what `read` makes of a file to `all`; false and the problems of the file when it cannot.
template <class T, class Read>
bool append(const std::string& file, Read read, std::vector<T>& all, Diagnostics& problems) {
  const Result<CsvTable> table = read_csv(file);
  const Result<std::vector<T>> some =
      table ? read(*table) : Result<std::vector<T>>(table.problems());
  if (!some) {
    problems.insert(problems.end(), some.problems().begin(), some.problems().end());
    return false;
  }
  all.insert(all.end(), some->begin(), some->end());
  return true;
}

Result<Points> read_points(const GpuFitFlags& flags) {
  Diagnostics problems;
  Points points;
  if (!flags.gemm.empty()) append(flags.gemm, gemm_points, points.gemm, problems);
  for (const std::string& file : flags.attention) {
    append(file, attention_points, points.attention, problems);
  }
  if (!flags.memory_bound.empty()) {
    const Bytes cache(static_cast<std::int64_t>(flags.cache_mib * 1048576.0));
    const auto read = [&](const CsvTable& table) { return move_points(table, cache); };
    append(flags.memory_bound, read, points.moves, problems);
  }
  if (!flags.operators.empty()) {
    const Result<CsvTable> table = read_csv(flags.operators);
    Result<OperatorPoints> read =
        table ? operator_points(*table, flags.system) : Result<OperatorPoints>(table.problems());
    if (read) {
      points.operators = *std::move(read);
    } else {
      problems.insert(problems.end(), read.problems().begin(), read.problems().end());
    }
  }
  if (!problems.empty()) return problems;
  return points;
}

std::size_t points_of_pass(const std::vector<AttentionPoint>& points, Pass pass) {
  std::size_t number = 0;
  for (const AttentionPoint& point : points) number += point.pass == pass ? 1 : 0;
  return number;
}

void set_gemm_curve(GpuSpec& gpu, GemmCurve curve) {
  for (GemmCurve& each : gpu.gemm) {
    if (each.dtype != curve.dtype) continue;
    curve.sustained_share = each.sustained_share;
    curve.sustained_measured = each.sustained_measured;
    curve.sustained_source = each.sustained_source;
    each = std::move(curve);
    return;
  }
  gpu.gemm.push_back(std::move(curve));
}

std::vector<GemmPoint> of_dtype(const std::vector<GemmPoint>& points, DType dtype) {
  std::vector<GemmPoint> some;
  for (const GemmPoint& point : points) {
    if (point.dtype == dtype) some.push_back(point);
  }
  return some;
}

void fit_gemms(GpuSpec& gpu, const Points& points, const Named& sources) {
  for (const DType dtype : kAllDTypes) {
    const std::vector<GemmPoint> some = of_dtype(points.gemm, dtype);
    if (some.size() < kLeastGemms || gpu.peak(dtype).value() <= 0) continue;
    set_gemm_curve(gpu, fit_gemm(gpu, dtype, some, sources.at("gemm")));
  }
  // Operators are measured in long runs: a curve of theirs needs no correction.
  const bool own = points.gemm.empty() && points.operators.gemm.size() >= kLeastGemms;
  if (own) {
    set_gemm_curve(gpu, fit_gemm(gpu, DType::bf16, points.operators.gemm, sources.at("operators")));
  }
}

/// Sets how fast arithmetic is in long runs by the operators of a GPU of the same chip: the
/// curve's share of them, times what this GPU holds of the best rate that one holds.
Result<bool> set_sustained(GpuSpec& gpu, const OperatorPoints& operators, double held_ratio,
                           const Named& sources) {
  if (operators.gemm.size() < kLeastGemms) {
    return wrong_flag("--held-ratio",
                      fmt::format("{} products in --operators, fewer than {}",
                                  operators.gemm.size(), kLeastGemms),
                      "name the operators of the other GPU, and --system");
  }
  for (GemmCurve& curve : gpu.gemm) {
    if (curve.dtype != DType::bf16) continue;
    curve.sustained_share = sustained_share(gpu, curve, operators.gemm, held_ratio);
    curve.sustained_measured = false;
    curve.sustained_source = sources.at("operators");
  }
  return true;
}

/// The same from operators of this GPU, or from the best rates named by flags.
Result<bool> set_sustained(GpuSpec& gpu, const Points& points, const Named& rates,
                           bool rates_measured, const Named& sources) {
  for (GemmCurve& curve : gpu.gemm) {
    if (curve.dtype == DType::bf16 && points.operators.gemm.size() >= kLeastGemms) {
      // Of a curve that was fitted to operators this is 1.
      curve.sustained_share =
          points.gemm.empty() ? 1 : sustained_share(gpu, curve, points.operators.gemm);
      curve.sustained_measured = true;
      curve.sustained_source = sources.at("operators");
    } else if (!points.gemm.empty() && bits_of(curve.dtype) >= 16) {
      curve.sustained_share = sustained_share(curve);
      curve.sustained_measured = false;
      curve.sustained_source = "kernels of 10 ms in " + sources.at("gemm");
    }
    const auto named_rate = rates.find(name_of(curve.dtype));
    if (named_rate == rates.end()) continue;
    const std::string& text = named_rate->second;
    double tflops = 0;
    const std::string problem = read_number(text, 0.001, 1e6, tflops);
    if (!problem.empty()) {
      return wrong_flag("--sustained", problem, "TFLOP/s, for example bf16=794.5");
    }
    const FlopsPerSecond held(tflops * 1e12);
    curve.sustained_share = sustained_share(gpu, curve, of_dtype(points.gemm, curve.dtype), held);
    curve.sustained_measured = rates_measured;
    curve.sustained_source = sources.at("sustained");
  }
  return true;
}

void fit_others(GpuSpec& gpu, const Points& points, const Named& sources) {
  if (points.operators.grouped.size() >= kLeastPoints) {
    gpu.grouped_gemm =
        fit_grouped_gemm(gpu, DType::bf16, points.operators.grouped, sources.at("operators"));
  }
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    AttentionCurve& curve = pass == Pass::forward ? gpu.attention_forward : gpu.attention_backward;
    if (points_of_pass(points.attention, pass) >= kLeastPoints) {
      curve = fit_attention(gpu, pass, points.attention, sources.at("attention"));
    } else if (points_of_pass(points.operators.attention, pass) >= kLeastPoints) {
      curve = fit_attention(gpu, pass, points.operators.attention, sources.at("operators"));
    }
  }
  if (points.moves.size() >= kLeastPoints) {
    gpu.memory_bound = fit_memory_bound(gpu, points.moves, sources.at("memory_bound"));
  }
}

void add_row(Table& table, const GpuSpec& gpu, const std::string& curve, const FitRecord& fit,
             const std::string& sustained) {
  if (fit.measured) {
    table.row({gpu.name, curve, format_count(fit.points), format_percent(fit.median_error),
               format_percent(fit.p95_error), sustained});
  } else {
    table.row({gpu.name, curve, "-", "not measured", "-", sustained});
  }
}

void print_curve_residuals(const std::vector<GpuSpec>& gpus) {
  Table table({{"GPU", Align::left},
               {"curve", Align::left},
               {"points"},
               {"median error"},
               {"95th percentile"},
               {"long runs"}});
  for (const GpuSpec& gpu : gpus) {
    for (const GemmCurve& curve : gpu.gemm) {
      add_row(table, gpu, fmt::format("gemm {}", name_of(curve.dtype)), curve.fit,
              curve.sustained_share < 1 ? format_percent(curve.sustained_share) : "");
    }
    add_row(table, gpu, "grouped gemm", gpu.grouped_gemm.fit, "");
    add_row(table, gpu, "attention forward", gpu.attention_forward.fit, "");
    add_row(table, gpu, "attention backward", gpu.attention_backward.fit, "");
    add_row(table, gpu, "memory bound", gpu.memory_bound.fit, "");
  }
  fmt::print("{}", table.text(wants_colour()));
}

ExitCode list_residuals(const std::string& gpu) {
  std::vector<std::string> names = catalogue_names("gpus");
  if (!gpu.empty()) names = {gpu};
  std::vector<GpuSpec> gpus;
  for (const std::string& name : names) {
    Result<GpuSpec> each = find_gpu(name);
    if (!each) return refuse(each.problems());
    gpus.push_back(*std::move(each));
  }
  print_curve_residuals(gpus);
  return ExitCode::done;
}

std::string text_of(const GpuSpec& gpu) {
  JsonWriter json;
  json.begin_object();
  write_gpu(json, gpu);
  json.end_object();
  return json.text();
}

}  // namespace

void add_gpu_flags(CLI::App& verb, GpuFitFlags& flags) {
  verb.add_option("--gpu", flags.gpu, "Fit the curves of this GPU")->type_name("NAME|FILE");
  verb.add_option("--gemm", flags.gemm, "CSV: dtype, m, n, k, latency_ms")->type_name("FILE");
  verb.add_option("--attention", flags.attention, "CSV files of fused attention")
      ->type_name("FILE");
  verb.add_option("--memory-bound", flags.memory_bound,
                  "CSV: m, k, latency (ms) of a cast to 8 bits")
      ->type_name("FILE");
  add_number(verb, "--cache-mib", flags.cache_mib, 1, 1e6,
             "Last-level cache; smaller transfers are skipped")
      ->type_name("MIB");
  verb.add_option("--operators", flags.operators, "CSV: system, op, shape, tflops, of long runs")
      ->type_name("FILE");
  verb.add_option("--system", flags.system, "System whose rows of --operators are used")
      ->type_name("NAME");
  verb.add_option("--sustained", flags.sustained, "Best sustained GEMM rate in a long run")
      ->type_name("DTYPE=TFLOPS");
  add_number(verb, "--held-ratio", flags.held_ratio, 0.1, 10,
             "--operators ran on another GPU of the same chip: sustained rate of this GPU over "
             "that GPU's; sets the speed of long runs only")
      ->type_name("X");
  verb.add_flag("--sustained-estimated", flags.sustained_estimated,
                "The rates of --sustained were not measured on this GPU");
  verb.add_flag("--residuals", flags.residuals, "Print the errors of the curves in the catalogue");
}

ExitCode fit_gpu_files(const GpuFitFlags& flags) {
  if (flags.residuals) return list_residuals(flags.gpu);
  Result<GpuSpec> gpu = find_gpu(flags.gpu);
  if (!gpu) return refuse(gpu.problems());
  Result<Named> sources = named(flags.sources, "--source");
  if (!sources) return refuse(sources.problems());
  const Result<Named> rates = named(flags.sustained, "--sustained");
  if (!rates) return refuse(rates.problems());
  const Result<Points> points = read_points(flags);
  if (!points) return refuse(points.problems());

  if (flags.check) {
    print_gpu_check(*gpu, points->gemm, points->operators, points->attention, points->moves);
    return ExitCode::done;
  }
  // Where no source was named, the file is.
  sources->try_emplace("gemm", flags.gemm);
  sources->try_emplace("attention", flags.attention.empty() ? "" : flags.attention.front());
  sources->try_emplace("memory_bound", flags.memory_bound);
  sources->try_emplace("operators", flags.operators);
  sources->try_emplace("sustained", "command line");

  const bool of_sibling = flags.held_ratio > 0;
  if (!of_sibling) fit_gemms(*gpu, *points, *sources);
  const Result<bool> sustained =
      of_sibling ? set_sustained(*gpu, points->operators, flags.held_ratio, *sources)
                 : set_sustained(*gpu, *points, *rates, !flags.sustained_estimated, *sources);
  if (!sustained) return refuse(sustained.problems());
  if (!of_sibling) fit_others(*gpu, *points, *sources);
  print_curve_residuals({*gpu});
  if (!flags.output.empty()) write_file(flags.output, text_of(*gpu));
  return ExitCode::done;
}

}  // namespace shardwise::cli
