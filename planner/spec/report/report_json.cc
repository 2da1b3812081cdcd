#include "planner/spec/report/report_json.h"

#include <string>
#include <utility>

#include "planner/spec/json/fields.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/program/ledger.h"
#include "planner/spec/program/step_program.h"
#include "planner/spec/report/memory_numbers.h"
#include "planner/spec/report/quantity_fields.h"
#include "planner/spec/report/report_fields.h"
#include "planner/spec/report/report_rules.h"
#include "planner/spec/report/verdict_fields.h"

namespace shardwise {
namespace {

template <class Io, class P>
void list_phase(Io& io, P& phase) {
  io.choice("phase", phase.name);
  derived(io, "allocated_bytes", phase.ledger.allocated());
  derived(io, "reserved_bytes", phase.ledger.reserved());
  derived(io, "total_bytes", phase.ledger.total());
  io.object("categories", phase.ledger, [](auto& inner, auto& ledger) {
    for (std::size_t c = 0; c < kMemoryCategories; ++c) {
      inner.integer(keyed(name_of(static_cast<MemoryCategory>(c)), "bytes"), ledger.bytes[c], 0,
                    kLargestReportInteger);
    }
  });
}

/// One pipeline stage as a report shows it.
struct StageEntry {
  Bytes upper;
  StageMemory memory;
};
struct PhaseEntry {
  MemoryPhase name = MemoryPhase::after_init;
  Ledger ledger;
};

template <class Io, class E>
void list_stage(Io& io, E& stage) {
  bytes(io, "upper_bytes", stage.upper);
  derived(io, "peak_allocated_bytes", stage.memory.peak_allocated());
  derived(io, "peak_reserved_bytes", stage.memory.peak_reserved());
  derived(io, "peak_total_bytes", stage.memory.peak_total());
  if constexpr (Io::kReads) {
    MemoryPhase peak = stage.memory.peak_phase();
    io.choice("peak_phase", peak);
  } else {
    io.choice("peak_phase", stage.memory.peak_phase());
  }
  std::vector<PhaseEntry> phases;
  for (std::size_t p = 0; p < kMemoryPhases; ++p) {
    phases.push_back({static_cast<MemoryPhase>(p), stage.memory.phases[p]});
  }
  io.objects("phases", phases, kMemoryPhases,
             [](auto& inner, auto& phase) { list_phase(inner, phase); });
  if constexpr (Io::kReads) {
    for (const PhaseEntry& phase : phases) stage.memory[phase.name] = phase.ledger;
  }
}

template <class Io, class R>
void list_memory(Io& io, R& report) {
  std::vector<StageEntry> stages;
  for (std::size_t s = 0; s < report.stages.size(); ++s) {
    stages.push_back(
        {s < report.stage_upper.size() ? report.stage_upper[s] : Bytes(0), report.stages[s]});
  }
  io.objects("memory", stages, kMaxRanks, [](auto& inner, auto& s) { list_stage(inner, s); });
  if constexpr (Io::kReads) {
    report.stages.clear();
    report.stage_upper.clear();
    for (const StageEntry& stage : stages) {
      report.stages.push_back(stage.memory);
      report.stage_upper.push_back(stage.upper);
    }
  }
}

template <class Io, class T>
void list_parts(Io& io, T& parts) {
  io.object("time", parts, [](auto& inner, auto& time) {
    inner.require({"forward_s", "backward_s", "optimizer_s"});
    for (const TimePart& part : kTimeParts) {
      const double least = part.field == &TimeParts::anchored ? -kMostSeconds : 0;
      seconds(inner, keyed(part.key, "s"), time.*part.field, least);
    }
  });
}

template <class Io, class R>
void list_time(Io& io, R& report) {
  seconds(io, "step_time_s", report.step_time);
  list_parts(io, report.time);
  io.object("compute", report.compute, [](auto& inner, auto& compute) {
    seconds(inner, "gemm_s", compute.gemm);
    seconds(inner, "attention_s", compute.attention);
    seconds(inner, "memory_bound_s", compute.memory_bound);
  });
  io.objects("by_axis", report.by_axis, 16, [](auto& inner, auto& axis) {
    inner.require({"axis", "total_s", "exposed_s"});
    inner.text("axis", axis.axis);
    seconds(inner, "total_s", axis.total);
    seconds(inner, "exposed_s", axis.exposed);
  });
}

template <class Io, class R>
void list_rates(Io& io, R& report) {
  io.number("mfu", report.mfu, 0, kLargestReportNumber);
  io.number("mfu_non_causal", report.mfu_non_causal, 0, kLargestReportNumber);
  io.number("hfu", report.hfu, 0, kLargestReportNumber);
  if constexpr (Io::kReads) {
    double flops = report.model_flops.value();
    io.number("model_flops", flops, 0, kLargestReportNumber);
    report.model_flops = Flops(flops);
  } else {
    io.number("model_flops", report.model_flops.value(), 0, kLargestReportNumber);
  }
  io.text("flops_formula", report.flops_formula);
  io.number("tokens_per_s", report.tokens_per_s, 0, kLargestReportNumber);
  io.number("tokens_per_s_per_gpu", report.tokens_per_s_per_gpu, 0, kLargestReportNumber);
  io.number("dollars_per_1e9_tokens", report.dollars_per_1e9_tokens, 0, kLargestReportNumber);
  io.number("joules_per_token", report.joules_per_token, 0, kLargestReportNumber);
  seconds(io, "checkpoint_write_s", report.checkpoint_write);
  bytes(io, "checkpoint_bytes", report.checkpoint_bytes);
}

/// What only a run has.
template <class Io, class R>
void list_measured_run(Io& io, R& report) {
  if (Io::kReads || report.measured_ranks > 0) {
    io.integer("measured_ranks", report.measured_ranks, 0, kMaxRanks);
  }
  const auto measured = [&](std::string_view key, auto& amount) {
    if (Io::kReads || amount.value() > 0) bytes(io, key, amount);
  };
  measured("process_growth_bytes", report.process_growth);
  measured("arena_bytes", report.arena);
  measured("device_used_at_start_bytes", report.device_used_at_start);
  measured("device_used_bytes", report.device_used);
  if (Io::kReads || report.recorded_step_time.value() > 0) {
    seconds(io, "recorded_step_time_s", report.recorded_step_time);
  }
}

template <class Io, class R>
void list_reasons(Io& io, R& report) {
  io.objects("assumptions", report.assumptions, 1000, [](auto& inner, auto& a) {
    inner.text("id", a.id);
    inner.text("text", a.text);
    inner.text("source", a.source);
  });
  io.objects("explanations", report.explanations, 10'000, [](auto& inner, auto& e) {
    inner.text("subject", e.subject);
    inner.text("formula", e.formula);
    inner.text("values", e.values);
    inner.text("source", e.source);
  });
  io.objects("gemms", report.gemms, 10'000, [](auto& inner, auto& g) {
    inner.text("layer", g.layer);
    inner.text("operation", g.operation);
    inner.text("product", g.product);
    inner.choice("dtype", g.dtype);
    inner.integer("groups", g.groups, 1, kLargestReportInteger);
    inner.integer("m", g.m, 1, kLargestReportInteger);
    inner.integer("n", g.n, 1, kLargestReportInteger);
    inner.integer("k", g.k, 1, kLargestReportInteger);
    seconds(inner, "time_s", g.time);
    inner.choice("basis", g.basis);
  });
}

template <class Io, class S>
void list_stage_timeline(Io& io, S& stage) {
  io.require({"stage", "computing_s", "idle_s"});
  io.integer("stage", stage.stage, 0, kMaxRanks);
  seconds(io, "computing_s", stage.computing);
  seconds(io, "idle_s", stage.idle);
  io.objects("streams", stage.streams, kStreams, [](auto& inner, auto& stream) {
    inner.text("stream", stream.stream);
    inner.integer("operations", stream.operations, 0, kLargestReportInteger);
    seconds(inner, "busy_s", stream.busy);
    seconds(inner, "exposed_s", stream.exposed);
  });
  io.objects("links", stage.links, 2 * kMaxTiers, [](auto& inner, auto& link) {
    inner.text("tier", link.tier);
    inner.integer("ranks", link.ranks, 1, kMaxRanks);
    bytes(inner, "sent_bytes", link.sent);
    bytes(inner, "carried_bytes", link.carried);
    seconds(inner, "busy_s", link.busy);
    inner.number("utilisation", link.utilisation, 0, kLargestReportNumber);
  });
  io.objects("memory", stage.memory, 100'000, [](auto& inner, auto& sample) {
    seconds(inner, "at_s", sample.at);
    bytes(inner, "allocated_bytes", sample.allocated);
    bytes(inner, "reserved_bytes", sample.reserved);
  });
  seconds(io, "peak_at_s", stage.peak_at);
  io.objects("at_peak", stage.at_peak, 10'000, [](auto& inner, auto& live) {
    inner.choice("category", live.category);
    inner.integer("layer", live.layer, -1, kLargestReportInteger);
    inner.integer("count", live.count, 0, kLargestReportInteger);
    bytes(inner, "bytes", live.bytes);
  });
}

template <class Io, class T>
void list_timeline(Io& io, T& timeline) {
  io.require({"critical_path_s", "overlap", "stages", "operations"});
  seconds(io, "critical_path_s", timeline.critical_path);
  io.number("overlap", timeline.overlap, 0, 1);
  io.object("noise", timeline.noise, [](auto& inner, auto& noise) {
    inner.integer("trials", noise.trials, 0, kLargestReportInteger);
    inner.integer("seed", noise.seed, 0, kLargestReportInteger);
    inner.integer("stopped_trials", noise.stopped, 0, kLargestReportInteger);
    inner.integer("cut_off_gpus", noise.cut_off_gpus, 0, kLargestReportInteger);
    seconds(inner, "p50_s", noise.p50);
    seconds(inner, "p95_s", noise.p95);
    inner.number("goodput", noise.goodput, 0, 1);
  });
  io.objects("stages", timeline.stages, kMaxRanks,
             [](auto& inner, auto& stage) { list_stage_timeline(inner, stage); });
  io.objects("operations", timeline.operations, 100'000, [](auto& inner, auto& op) {
    inner.require({"name", "stage", "count", "time_s"});
    inner.text("name", op.name);
    inner.integer("stage", op.stage, 0, kMaxRanks);
    inner.text("stream", op.stream);
    inner.integer("count", op.count, 1, kLargestReportInteger);
    seconds(inner, "time_s", op.time);
    seconds(inner, "exposed_s", op.exposed);
  });
}

/// Absent from a report that no clock made.
template <class Io, class R>
void list_optional_timeline(Io& io, R& report) {
  if constexpr (Io::kReads) {
    StepTimeline timeline;
    io.object("timeline", timeline, [](auto& inner, auto& t) { list_timeline(inner, t); });
    if (!timeline.stages.empty()) report.timeline = std::move(timeline);
  } else if (report.timeline) {
    io.object("timeline", *report.timeline, [](auto& inner, auto& t) { list_timeline(inner, t); });
  }
}

template <class Io, class C>
void list_closed_form(Io& io, C& closed) {
  seconds(io, "step_time_s", closed.step_time);
  list_parts(io, closed.time);
  io.objects("mechanisms", closed.mechanisms, 100, [](auto& inner, auto& each) {
    inner.text("mechanism", each.mechanism);
    difference(inner, "closed_form_s", each.closed_form);
    difference(inner, "simulated_s", each.simulated);
  });
}

/// Absent from a report that was not simulated.
template <class Io, class R>
void list_optional_closed_form(Io& io, R& report) {
  if constexpr (Io::kReads) {
    ClosedForm closed;
    io.object("closed_form", closed, [](auto& inner, auto& c) { list_closed_form(inner, c); });
    if (!closed.mechanisms.empty()) report.closed_form = std::move(closed);
  } else if (report.closed_form) {
    io.object("closed_form", *report.closed_form,
              [](auto& inner, auto& c) { list_closed_form(inner, c); });
  }
}

template <class Io, class R>
void list_report(Io& io, R& report) {
  io.require({"origin", "model", "layout", "step_time_s", "time"});
  io.text("origin", report.origin);
  io.text("plan_digest", report.plan_digest);
  io.text("model", report.model);
  io.text("cluster", report.cluster);
  io.text("engine", report.engine);
  io.integer("global_batch_size", report.global_batch_size, 1, kMaxBatch);
  io.integer("sequence_length", report.sequence_length, 1, kMaxSequence);
  io.integer("num_microbatches", report.num_microbatches, 1, kMaxBatch);
  const MemoryNumbers numbers = memory_numbers(report);
  io.object("verdict", report.verdict,
            [&](auto& inner, auto& v) { list_verdict(inner, v, numbers); });
  list_time(io, report);
  list_rates(io, report);
  list_measured_run(io, report);
  list_memory(io, report);
  list_reasons(io, report);
  list_optional_timeline(io, report);
  list_optional_closed_form(io, report);
}

}  // namespace

std::string report_json(const StepReport& report, const ReportedParameters& model,
                        const ReportIntervals& intervals) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.report/1");
  json.begin_object("layout");
  write_fields(json, report.layout);
  json.end_object();
  if (model.parameters > 0) {
    json.member("parameters", model.parameters);
    json.member("active_parameters", model.active_parameters);
  }
  FieldWriter io(json);
  list_report(io, report);
  write_intervals(json, report, intervals);
  json.end_object();
  return json.text();
}

Result<StepReport> report_from_text(std::string_view text, const std::string& file) {
  const Result<JsonValue> json = parse_json(text, file);
  if (!json) return json.problems();
  Diagnostics problems;
  ObjectReader root(*json, file, "", problems);
  root.require_schema("shardwise.report/1");
  StepReport report;
  FieldReader io(root);
  list_report(io, report);
  // Reports of earlier versions say no more than the point.
  if (report.verdict.needed == Bytes(0)) report.verdict.needed = report.verdict.point;
  root.has("intervals");                                         // follow from engine and GPU
  for (const char* key : {"parameters", "active_parameters"}) {  // of the model, not of the step
    root.integer_or(key, 0, 0, kLargestReportInteger);
  }
  if (const JsonValue* value = root.object("layout", false)) {
    ObjectReader layout = root.nested("layout", *value);
    read_fields(layout, report.layout);
  }
  root.reject_unknown();
  check_report(root, report);
  if (!problems.empty()) return problems;
  return report;
}

Result<StepReport> read_report(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.problems();
  return report_from_text(*text, path.string());
}

}  // namespace shardwise
