#include "planner/question/mfu/asked_mfu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "planner/model/hf_config.h"
#include "planner/question/flags.h"
#include "planner/question/named_gpu.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

// Tokens per second are printed rounded as well, and averaged over other steps than MFU is.
constexpr double kRounding = 0.005;

/// Units that skip half of the products of weights pruned 2 of 4 run at twice the dense peak.
/// Sources: NVIDIA Ampere, Ada, Hopper and Blackwell white papers; AMD CDNA 3 and 4 white papers.
bool has_sparse_units(const GpuSpec& gpu) {
  constexpr std::array<std::string_view, 6> kWith = {"ampere",    "ada",   "hopper",
                                                     "blackwell", "cdna3", "cdna4"};
  return std::ranges::find(kWith, gpu.architecture) != kWith.end();
}

DType read_precision(const std::string& text, const GpuSpec& gpu, Diagnostics& problems) {
  if (text.empty()) return usual_precision(gpu);
  const std::optional<DType> dtype = dtype_from_name(text);
  if (dtype && gpu.peak(*dtype).value() > 0) return *dtype;
  problems.push_back(wrong_flag("--precision",
                                dtype ? fmt::format("{} states no peak of {}", gpu.name, text)
                                      : fmt::format("\"{}\" is no type of numbers", shown(text)),
                                "use bf16, fp16, fp32, fp8 or fp4"));
  return usual_precision(gpu);
}

/// Matches of a printed share, nearest first, and the nearest of all.
void match(MfuAnswer& answer) {
  if (!answer.printed) return;
  std::vector<MfuMatch> all;
  for (std::size_t i = 0; i < answer.rows.size(); ++i) {
    all.push_back({i, false, answer.rows[i].of_dense});
    if (answer.sparse.value() > 0) all.push_back({i, true, answer.rows[i].of_sparse});
  }
  const double printed = answer.printed->share;
  std::ranges::stable_sort(all, {},
                           [&](const MfuMatch& each) { return std::abs(each.share - printed); });
  answer.nearest = all.front();
  const double width = answer.printed->rounding + kRounding * printed;
  std::ranges::copy_if(all, std::back_inserter(answer.matches), [&](const MfuMatch& each) {
    return std::abs(each.share - printed) <= width;
  });
}

Diagnostic too_fast(const MfuAnswer& answer, double rate) {
  return wrong_flag(
      "--tokens-per-second",
      fmt::format(
          "impossible: {} tokens/s of {} {} needs {} of each, its dense {} peak is {}",
          format_count(std::llround(answer.tokens_per_second * static_cast<double>(answer.gpus))),
          format_count(answer.gpus), answer.gpu.name, format_flops_rate(FlopsPerSecond(rate)),
          name_of(answer.precision), format_flops_rate(answer.dense)),
      fmt::format(
          "at least {} GPUs take part (--gpus), the model is smaller, or the clock is wrong",
          format_count(static_cast<std::int64_t>(
              std::ceil(static_cast<double>(answer.gpus) * rate / answer.dense.value())))));
}

}  // namespace

std::optional<PrintedShare> read_printed_share(std::string_view text) {
  const bool per_cent = text.ends_with('%');
  if (per_cent) text.remove_suffix(1);
  while (per_cent && text.ends_with(' ')) text.remove_suffix(1);
  const std::optional<double> number = parse_number(text);
  if (!number || !(*number > 0) || *number > 1000) return std::nullopt;
  const std::size_t point = text.find('.');
  const std::size_t decimals = point == std::string_view::npos ? 0 : text.size() - point - 1;
  const double scale = per_cent || *number > 1 ? 0.01 : 1;
  return PrintedShare{*number * scale,
                      scale * 0.5 * std::pow(10.0, -static_cast<double>(decimals))};
}

Result<MfuAnswer> answer_mfu(const AskedMfu& asked) {
  Diagnostics problems;
  MfuAnswer answer;
  Result<ReadModel> model = load_model_and_keys(asked.model);
  if (!model) problems = model.problems();
  Result<GpuSpec> gpu = gpu_called(asked.gpu, answer.said);
  if (!gpu) problems.insert(problems.end(), gpu.problems().begin(), gpu.problems().end());
  if (gpu) answer.precision = read_precision(asked.precision, *gpu, problems);
  if (asked.printed && asked.printed->share > 1) {
    problems.push_back(wrong_flag("--printed",
                                  fmt::format("impossible: {} of a peak is more than the whole",
                                              format_percent(asked.printed->share)),
                                  "was it divided by the peak of another GPU or of fewer GPUs?"));
  }
  if (!problems.empty()) return problems;
  answer.model = std::move(model->model);
  answer.gpu = *std::move(gpu);
  answer.gpus = asked.gpus;
  answer.printed = asked.printed;
  JobSpec job;
  if (asked.sequence_length > 0) {
    job.sequence_length = asked.sequence_length;
  } else {
    answer.said.push_back({"sequence.usual",
                           fmt::format("sequences of {} tokens (--sequence-length)",
                                       format_count(job.sequence_length)),
                           ""});
  }
  answer.sequence_length = job.sequence_length;
  answer.tokens_per_second = asked.tokens_per_second / static_cast<double>(asked.gpus);
  answer.dense = answer.gpu.peak(answer.precision);
  if (has_sparse_units(answer.gpu) && answer.precision != DType::fp32) {
    answer.sparse = FlopsPerSecond(2 * answer.dense.value());
  }
  for (FlopsConvention& each : flops_conventions(answer.model, job, asked.recompute)) {
    const double rate = each.flops_per_token * answer.tokens_per_second;
    const double of_sparse = answer.sparse.value() > 0 ? rate / answer.sparse.value() : 0;
    answer.rows.push_back({each, rate / answer.dense.value(), of_sparse});
  }
  const double ours = answer.rows.front().of_dense;
  if (ours > 1) return too_fast(answer, ours * answer.dense.value());
  if (const GemmCurve* curve = answer.gpu.gemm_curve(answer.precision)) {
    answer.kernels = curve->rate_share;
    answer.above_kernels = curve->fit.measured && ours > answer.kernels;
  }
  match(answer);
  return answer;
}

}  // namespace shardwise
