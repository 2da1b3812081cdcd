#include "planner/cost/step/slowed_layer.h"

namespace shardwise {

double slowed_layer(const StreamRules& rules, const PassLosses& losses, const PassUnit& unit,
                    const UnitTurn& turn) {
  const double alone = unit.compute.of(turn.part).value();
  if (turn.part == LayerPart::backward_weight) return alone;
  const bool forward = turn.part == LayerPart::forward;
  double inner = 0;
  double outer = 0;
  if (turn.next != nullptr) {
    const PassUnit& next = *turn.next;
    if (!forward) {
      if (!next.kept_to_backward) inner += next.gather_again;
    } else if (turn.first || !next.kept_over_step) {
      const bool again = !turn.first && rules.keeps_parts;
      inner += again ? next.gather_again : next.gather[0] + next.gather[1];
    }
    if (turn.first) outer += next.gather_outer;
  }
  if (forward) return losses.forward.slowed(alone, inner, outer);
  if (turn.before != nullptr) {
    const PassUnit& before = *turn.before;
    if (rules.every || turn.last) inner += before.reduce[0] + before.reduce[1];
    if (turn.last) outer += before.reduce_outer;
  }
  return losses.backward.slowed(alone, inner, outer);
}

}  // namespace shardwise
