#include "gui/models/question/layout_text.h"

#include <fmt/format.h>

#include <cstdint>

#include "planner/spec/plan/names.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::view {

std::string title_text(const Plan& plan) {
  const std::int64_t gpus = plan.layout.world();
  return fmt::format("{} on {} GPU{} of {}", shown(plan.model.name), format_count(gpus),
                     gpus == 1 ? "" : "s", shown(plan.cluster.name));
}

std::string question_text(const Plan& plan) {
  return fmt::format("{}, batch {} x {} tokens", shown(plan.engine.name),
                     format_count(plan.job.global_batch_size),
                     format_count(plan.job.sequence_length));
}

std::string layout_text(const Layout& layout) {
  std::string text = fmt::format("tp{}", layout.tp);
  const auto degree = [&](const char* name, std::int64_t ways) {
    if (ways > 1) text += fmt::format(" {}{}", name, ways);
  };
  degree("cp", layout.cp);
  text += fmt::format(" pp{}", layout.pp);
  degree("vpp", layout.vpp);
  degree("ep", layout.ep);
  text += fmt::format(" dp{}", layout.dp());
  text += fmt::format(" zero-{} mbs{}", int{layout.zero_stage}, layout.micro_batch_size);
  text += layout.recompute == Recompute::none
              ? " no recompute"
              : fmt::format(" {} recompute", name_of(layout.recompute));
  return text;
}

}  // namespace shardwise::view
