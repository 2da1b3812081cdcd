#include "simulator/workload/price_scale.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/lowering/price.h"
#include "planner/spec/text/check.h"
#include "simulator/workload/layer_transfers.h"
#include "simulator/workload/pass_parts.h"

namespace shardwise::sim {
namespace {

/// Which costs are of operations that `of` is true for.
template <class Of>
std::vector<bool> costs_where(const StageProgram& stage, const Of& of) {
  std::vector<bool> found(stage.costs.size(), false);
  for (const ProgramOp& op : stage.operations) {
    if (of(op)) found[static_cast<std::size_t>(op.cost)] = true;
  }
  return found;
}

/// All of it takes `factor` of its time.
void scale_whole(std::size_t cost, double factor, std::vector<CostPrice>& prices) {
  CostPrice& price = prices[cost];
  price.seconds *= factor;
  price.rest *= factor;
  for (std::uint32_t i = price.inside.begin; i != price.inside.end; ++i) {
    prices[i].seconds *= factor;
  }
}

/// A transfer of which the links of a tier take `factor` of their time.
void scale_tier(std::size_t tier, double factor, CostPrice& price) {
  const double before = price.seconds;
  if (before <= 0 || price.link_share[tier] == 0) return;
  std::array<double, kMaxTiers> busy{};
  double most = 0;
  for (std::size_t t = 0; t < kMaxTiers; ++t) {
    busy[t] = price.link_share[t] * before * (t == tier ? factor : 1);
    most = std::max(most, busy[t]);
  }
  const double fewer = price.link_share[tier] * before * (1 - factor);
  price.seconds = std::max(before - fewer, most);
  for (std::size_t t = 0; t < kMaxTiers; ++t) {
    price.link_share[t] = std::min(1.0, busy[t] / price.seconds);
  }
  price.memory_share = std::min(1.0, price.memory_share * before / price.seconds);
}

/// A pass whose communication stops it for `fewer` seconds less.
void shorten_pass(double fewer, CostPrice& price) {
  const double base = price.seconds / (1 + price.excess);
  const double left = base - fewer;
  if (base <= 0 || left <= 0) return;
  price.gemm_share *= base / left;
  price.memory_share *= base / left;
  price.moved_share = std::max(0.0, (price.moved_share * base - fewer) / left);
  price.excess *= base / left;
  price.seconds = left * (1 + price.excess);
}

class Scaler {
 public:
  Scaler(const Plan& plan, const PriceScale& scale, Prices& prices)
      : scale_(scale), prices_(prices), transfers_(plan), layers_(layer_passes(plan)) {}

  void operations(const StageProgram& stage, std::size_t s, Paint kind) {
    const std::vector<bool> of_kind =
        costs_where(stage, [kind](const ProgramOp& op) { return paint_of(op) == kind; });
    for (std::size_t c = 0; c < stage.costs.size(); ++c) {
      if (of_kind[c]) scale_whole(c, scale_.factor, prices_[s]);
    }
  }

  void axis(const StageProgram& stage, std::size_t s, TrafficAxis axis) {
    const std::vector<bool> moves = costs_where(stage, [axis](const ProgramOp& op) {
      return axis_of(op.stream) == axis && op.stream != Stream::copy;
    });
    for (std::size_t c = 0; c < stage.costs.size(); ++c) {
      if (moves[c]) scale_whole(c, scale_.factor, prices_[s]);
      passes(stage, s, c, [&](Stream stream, CostPrice& inside) {
        if (axis_of(stream) != axis) return 0.0;
        inside.seconds *= scale_.factor;
        return 1 - scale_.factor;
      });
    }
  }

  void tier(const StageProgram& stage, std::size_t s, std::size_t tier) {
    for (std::size_t c = 0; c < stage.costs.size(); ++c) {
      if (!stage.costs[c].collectives.empty()) scale_tier(tier, scale_.factor, prices_[s][c]);
      passes(stage, s, c, [&](Stream, CostPrice& inside) {
        const double before = inside.seconds;
        scale_tier(tier, scale_.factor, inside);
        return before > 0 ? 1 - inside.seconds / before : 0;
      });
    }
  }

 private:
  /// \param shorter  changes a transfer inside a pass. \returns the share of it that is saved
  template <class Shorter>
  void passes(const StageProgram& stage, std::size_t s, std::size_t cost, const Shorter& shorter) {
    if (stage.costs[cost].layers.empty()) return;
    const LayerWork& work = stage.costs[cost].layers.front();
    const IndexRange inside = prices_[s][cost].inside;
    if (inside.begin == inside.end) return;
    const LayerTime& layer = layers_[static_cast<std::size_t>(work.kind)];
    const std::vector<InsideTransfer> axes = transfers_.of(work).axes;
    double fewer = 0;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const double saved = shorter(axes[a].axis, prices_[s][inside.begin + a]);
      fewer += saved * work.times * stops(layer, work.part, axes[a].axis).value();
    }
    if (fewer != 0) shorten_pass(fewer, prices_[s][cost]);
  }

  const PriceScale& scale_;
  Prices& prices_;
  LayerTransfers transfers_;
  std::vector<LayerTime> layers_;
};

}  // namespace

void split_costs(StepProgram& program, const PriceScale& scale) {
  const auto* const kind = std::get_if<Paint>(&scale.what);
  if (kind == nullptr) return;
  for (StageProgram& stage : program.stages) {
    const auto is_of_kind = [kind](const ProgramOp& op) { return paint_of(op) == *kind; };
    const std::vector<bool> others =
        costs_where(stage, [&](const ProgramOp& op) { return !is_of_kind(op); });
    std::vector<std::int32_t> own(stage.costs.size(), -1);
    for (ProgramOp& op : stage.operations) {
      const auto cost = static_cast<std::size_t>(op.cost);
      if (!is_of_kind(op) || !others[cost]) continue;
      if (own[cost] < 0) {
        own[cost] = static_cast<std::int32_t>(stage.costs.size());
        stage.costs.emplace_back(stage.costs[cost]);
      }
      op.cost = own[cost];
    }
  }
}

void scale_prices(const Plan& plan, const StepProgram& program, const PriceScale& scale,
                  Prices& prices) {
  SHARDWISE_CHECK(scale.factor > 0, std::to_string(scale.factor));
  Scaler scaler(plan, scale, prices);
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    if (const auto* const kind = std::get_if<Paint>(&scale.what)) {
      scaler.operations(stage, s, *kind);
    } else if (const auto* const axis = std::get_if<TrafficAxis>(&scale.what)) {
      scaler.axis(stage, s, *axis);
    } else {
      scaler.tier(stage, s, std::get<TierNumber>(scale.what).tier);
    }
  }
}

}  // namespace shardwise::sim
