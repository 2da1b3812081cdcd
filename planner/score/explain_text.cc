#include <fmt/format.h>

#include "planner/score/predict.h"
#include "planner/score/score_text.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/table.h"

namespace shardwise {
namespace {

std::string layout_text(const Layout& layout) {
  const Layout usual;
  std::string text;
  for (const std::string& key : layout_keys()) {
    const std::string value = field_text(layout, key);
    if (value == field_text(usual, key)) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, value);
  }
  return text.empty() ? "one rank" : text;
}

std::string understood_text(const Row& row, const RowPrediction& p) {
  std::string text =
      fmt::format("{}\n  {}, {}: {} parameters\n  {} x {} ({}), engine {}\n", row.id, row.framework,
                  p.model.name, format_count(p.model.parameter_count()), p.cluster->gpus,
                  p.cluster->gpu.label, p.cluster->name, p.engine->name);
  for (const RowVariant& variant : p.variants) {
    const JobSpec& job = variant.job;
    if (variant.share < 1)
      text += fmt::format("  {} of the layers:\n", format_percent(variant.share));
    text += fmt::format("  {}\n", layout_text(variant.layout));
    text += fmt::format(
        "  sequence {}, global batch {}, {}, kernels {}, attention {}, loss {}, dropout {}\n",
        job.sequence_length, job.global_batch_size, name_of(job.precision), name_of(job.kernels),
        name_of(job.attention), name_of(job.loss), job.dropout);
    for (const std::string& name : job.recompute_operations) {
      text += fmt::format("  recomputed: {}\n", name);
    }
  }
  for (const std::string& assumed : p.notes.assumed)
    text += fmt::format("  assumed: {}\n", assumed);
  return text;
}

void add_comparison(Table& table, const char* what, std::optional<double> measured,
                    std::optional<double> predicted, bool seconds) {
  if (!measured || !predicted) return;
  const auto shown = [seconds](double value) {
    return seconds ? format_seconds(Seconds(value)) : fmt::format("{:.3f} GiB", value);
  };
  table.row({what, shown(*measured), shown(*predicted),
             fmt::format("{:+.2f} %", 100 * (*predicted - *measured) / *measured)});
}

std::string comparison_text(const Row& row, const RowPrediction& p, bool colour) {
  Table table({{"quantity", Align::left}, {"measured"}, {"predicted"}, {"error"}});
  add_comparison(table, "memory", row.measured.memory_gib, p.memory_gib, false);
  add_comparison(table, "reserved", row.measured.reserved_gib, p.reserved_gib, false);
  add_comparison(table, "after step", row.measured.after_step_gib, p.after_step_gib, false);
  add_comparison(table, "step time", p.measured_time_s, p.step_time_s, true);
  return table.text(colour, 2);
}

/// Bytes of the first and last stage at their fullest, by category.
std::string memory_text(const StepReport& report, bool colour) {
  Table table({{"GiB", Align::left}, {"first stage"}, {"last stage"}});
  const StageMemory& first = report.stages.front();
  const StageMemory& last = report.stages.back();
  const Ledger& a = first[first.peak_phase()];
  const Ledger& b = last[last.peak_phase()];
  table.row(
      {"phase", std::string(name_of(first.peak_phase())), std::string(name_of(last.peak_phase()))});
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    if (a[category] == 0 && b[category] == 0) continue;
    table.row({std::string(name_of(category)),
               fmt::format("{:.3f}", static_cast<double>(a[category]) / kBytesPerGiB),
               fmt::format("{:.3f}", static_cast<double>(b[category]) / kBytesPerGiB)});
  }
  table.rule();
  const auto total = [&](const char* name, Bytes one, Bytes two) {
    table.row({name, fmt::format("{:.3f}", static_cast<double>(one.value()) / kBytesPerGiB),
               fmt::format("{:.3f}", static_cast<double>(two.value()) / kBytesPerGiB)});
  };
  total("allocated", first.peak_allocated(), last.peak_allocated());
  total("reserved", first.peak_reserved(), last.peak_reserved());
  total("total", first.peak_total(), last.peak_total());
  return table.text(colour, 2);
}

std::string time_text(const StepReport& report, bool colour) {
  Table table({{"part of the step", Align::left}, {"time"}, {"share"}});
  const TimeParts& t = report.time;
  const std::pair<const char*, Seconds> parts[] = {{"forward", t.forward},
                                                   {"backward", t.backward},
                                                   {"recompute", t.recompute},
                                                   {"tp exposed", t.tp_exposed},
                                                   {"cp exposed", t.cp_exposed},
                                                   {"ep exposed", t.ep_exposed},
                                                   {"pp exposed", t.pp_exposed},
                                                   {"dp exposed", t.dp_exposed},
                                                   {"bubble", t.bubble},
                                                   {"optimizer", t.optimizer},
                                                   {"launch", t.launch},
                                                   {"waiting for the slowest GPU", t.straggler},
                                                   {"offload exposed", t.offload_exposed},
                                                   {"input exposed", t.input_exposed}};
  for (const auto& [name, time] : parts) {
    if (time.value() <= 0) continue;
    table.row({name, format_seconds(time), format_percent(time / report.step_time)});
  }
  return table.text(colour, 2);
}

}  // namespace

std::string explain_text(const Row& row, bool colour) {
  RowPredictor predictor;
  const RowPrediction p = predictor.predict(row, /*explained=*/true);
  if (!p.notes.refused.empty()) return fmt::format("{}\n  left out: {}\n", row.id, p.notes.refused);
  std::string text = understood_text(row, p) + "\n" + comparison_text(row, p, colour);
  for (const StepReport& report : p.reports) {
    text += "\n" + memory_text(report, colour) + "\n" + time_text(report, colour);
    for (const Explanation& each : report.explanations) {
      text += fmt::format("\n  {}: {}\n    {}\n    {}\n", each.subject, each.formula, each.values,
                          each.source);
    }
  }
  return text;
}

}  // namespace shardwise
