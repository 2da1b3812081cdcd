#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "planner/cost/step/unit_prices.h"
#include "planner/estimate/explain.h"
#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

/// Why communication of each axis is not hidden, collective by collective.
class ExposedExplainer {
 public:
  ExposedExplainer(StepReport& report, const PricedStep& step)
      : report_(report), p_(step), s_(step.stages.slowest), t_(report.time) {}

  void run() {
    tensor();
    context();
    experts();
    messages();
    if (p_.detail.gather + p_.detail.reduce == Seconds(0)) return;
    if (p_.layout.zero_stage == 3) {
      gathers_by_unit();
    } else {
      gathers_of_step();
    }
    reductions();
  }

 private:
  void because(const char* subject, std::string reason, std::string values) {
    report_.explanations.push_back({std::string("exposed.") + subject,
                                    "exposed because " + std::move(reason), std::move(values),
                                    kStepSource});
  }
  void hidden(const char* subject, std::string reason, std::string values) {
    report_.explanations.push_back({std::string("exposed.") + subject,
                                    "hidden: " + std::move(reason), std::move(values),
                                    kStepSource});
  }

  /// Exposed and hidden of one micro-batch, forward and backward; recompute is part of backward.
  static std::string shares(Seconds forward, Seconds backward, Seconds again, Seconds beside) {
    return fmt::format("a micro-batch: {} forward, {} backward, {} when run again; {} hidden",
                       format_seconds(forward), format_seconds(backward), format_seconds(again),
                       format_seconds(beside));
  }

  TpOverlap tp_overlap() const {
    return p_.job.tp_overlap == TpOverlap::by_engine ? p_.engine.tp_overlap : p_.job.tp_overlap;
  }

  void tensor() {
    if (t_.tp_exposed == Seconds(0)) return;
    const TpOverlap overlap = tp_overlap();
    because("tp",
            overlap == TpOverlap::none
                ? "the product after a transfer reads what it brings, and nothing of another "
                  "micro-batch runs meanwhile (--tp-overlap)"
            : overlap == TpOverlap::backward
                ? "forward the next product reads what a transfer brings; backward a transfer "
                  "hides behind the one product that does not (--tp-overlap backward)"
                : "the first of tp pieces has no product beside it, and a piece of a product that "
                  "is shorter than its transfer hides only itself (--tp-overlap pipelined)",
            shares(s_.forward.tp, s_.backward.tp, s_.recompute.tp,
                   s_.forward.tp_hidden + s_.backward.tp_hidden + s_.recompute.tp_hidden));
  }

  void context() {
    if (t_.cp_exposed == Seconds(0)) return;
    because("cp",
            p_.layout.cp_kind == ContextParallelKind::ring
                ? "the next keys and values take longer to come than attention with those before "
                  "takes"
                : "attention reads what the exchange brings, and nothing runs beside it "
                  "(--cp-kind ring sends them beside attention)",
            shares(s_.forward.cp, s_.backward.cp, s_.recompute.cp,
                   s_.forward.cp_hidden + s_.backward.cp_hidden + s_.recompute.cp_hidden));
  }

  void experts() {
    if (t_.ep_exposed == Seconds(0)) return;
    because("ep",
            p_.job.expert_overlap
                ? "the exchange outlasts the compute of the other micro-batch beside it"
                : "experts wait for their tokens, and what follows for the experts' "
                  "(--expert-overlap runs another micro-batch meanwhile)",
            shares(s_.forward.ep, s_.backward.ep, s_.recompute.ep, s_.hidden_experts));
  }

  void messages() {
    if (t_.pp_exposed == Seconds(0)) return;
    const bool ahead = p_.stages.pipeline.slots->posts_ahead;
    because("pp",
            ahead ? "the first and the last micro-batches have no pass beside their messages, and "
                    "messages beside passes slow them"
                  : "a stage waits for the message before each pass (1F1B posts it when it is "
                    "needed; interleaved schedules post it ahead)",
            fmt::format("a message takes {}, a pass forward {} and backward {}; {} a step",
                        format_seconds(p_.stages.hop), format_seconds(s_.forward.stream()),
                        format_seconds(s_.backward_stream()), format_seconds(t_.pp_exposed)));
  }

  /// The blocks of the stage of which most elements are moved.
  const UnitTime* block() const {
    const UnitTime* largest = nullptr;
    for (std::int32_t i = 0; i < s_.kinds; ++i) {
      const UnitTime& unit = s_.units[static_cast<std::size_t>(i)];
      if (unit.root) continue;
      const bool more =
          largest == nullptr || unit.elements.gathered() > largest->elements.gathered();
      if (more) largest = &unit;
    }
    return largest;
  }

  /// A collective of a block beside the pass of a block.
  void beside(const char* subject, Seconds moved, Seconds pass, std::int32_t blocks,
              const char* first) {
    const std::string values =
        fmt::format("of a block {}, its pass {}; {} blocks, {} micro-batch{}",
                    format_seconds(moved), format_seconds(pass), blocks, m(), m() == 1 ? "" : "es");
    if (moved > pass) {
      because(subject,
              fmt::format("it outlasts the pass of the block beside it by {}",
                          format_seconds(moved - pass)),
              values);
    } else if (t_.dp_exposed > Seconds(0)) {
      hidden(subject, fmt::format("but for {}", first), values);
    } else {
      hidden(subject, "behind the pass of the block beside it", values);
    }
  }

  void gathers_by_unit() {
    const UnitTime* unit = block();
    if (unit == nullptr || p_.detail.gather == Seconds(0)) return;
    const UnitPrices prices(p_.context);
    const auto dense = static_cast<double>(unit->elements.dense + unit->elements.frozen);
    const auto routed = static_cast<double>(unit->elements.routed);
    beside("dp.gather_forward", prices.gather(dense, routed), unit->forward, unit->count,
           "those of a pass's first layers, which nothing is before");
    const Seconds again = prices.gather_again(dense, routed);
    if (again == Seconds(0)) {
      hidden("dp.gather_backward", "weights stay gathered from forward to backward",
             "--reshard-after-forward 0");
      return;
    }
    const Seconds reduced =
        reduces_in_passes() ? prices.reduce(dense_of(*unit), routed) : Seconds(0);
    const bool shared = p_.engine.all_gather_shares_communicator && reduced > Seconds(0);
    beside("dp.gather_backward", shared ? again + reduced : again, unit->backward, unit->count,
           "the first, which only the loss is before");
  }

  static double dense_of(const UnitTime& unit) { return static_cast<double>(unit.elements.dense); }

  /// Gradients leave while passes run.
  bool reduces_in_passes() const {
    return p_.layout.overlap_grad_reduce || p_.layout.zero_stage == 3;
  }

  void gathers_of_step() {
    if (p_.detail.gather == Seconds(0)) return;
    const std::string values = fmt::format("{} a step", format_seconds(p_.detail.gather));
    if (!p_.layout.overlap_param_gather || !p_.engine.overlaps_updated_gather) {
      because("dp.gather",
              fmt::format("updated weights are gathered before the step ends{}",
                          p_.engine.overlaps_updated_gather ? " (--overlap-param-gather)" : ""),
              values);
      return;
    }
    hidden("dp.gather",
           "updated weights arrive beside the next forward pass, but for those of its first layers",
           values);
  }

  void reductions() {
    if (p_.detail.reduce == Seconds(0)) return;
    const UnitTime* unit = block();
    if (!reduces_in_passes()) {
      because("dp.reduce",
              "gradients leave after the last backward pass (--overlap-grad-reduce=false)",
              fmt::format("{} a step", format_seconds(p_.detail.reduce)));
      return;
    }
    if (unit == nullptr) return;
    const UnitPrices prices(p_.context);
    const Seconds moved =
        prices.reduce(dense_of(*unit), static_cast<double>(unit->elements.routed));
    if (moved == Seconds(0)) return;
    beside("dp.reduce", moved, unit->backward, unit->count,
           "those that the last backward pass makes last: embedding and first layers");
  }

  std::int64_t m() const { return p_.context.num_microbatches; }

  StepReport& report_;
  const PricedStep& p_;
  const StageTime& s_;
  const TimeParts& t_;
};

}  // namespace

void explain_exposed(StepReport& report, const PricedStep& step) {
  ExposedExplainer(report, step).run();
}

}  // namespace shardwise
