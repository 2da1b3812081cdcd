#include "planner/cost/tensor_region.h"

#include <algorithm>

#include "planner/cost/time_rules.h"

namespace shardwise {

double TensorRegion::bytes_of(std::int64_t width) const {
  return static_cast<double>(s_.tokens) * static_cast<double>(width) * s_.element;
}

TensorRegion::Collective TensorRegion::collective(Pass pass, CollectiveKind kind, double bytes,
                                                  const LayerPricer::Placing& placing) const {
  return {pricer_.charge(pass, kind, bytes, GroupKind::tp, placing),
          kind == CollectiveKind::all_reduce   ? s_.all_reduce_kernels
          : kind == CollectiveKind::all_gather ? s_.all_gather_kernels
                                               : s_.reduce_scatter_kernels};
}

void TensorRegion::beside(PassTime& time, const Collective& communication, Seconds shelter) const {
  const double tax = shelter > Seconds(0) ? s_.tp_tax : 0;
  const Seconds exposed = std::max(communication.time * tax, communication.time - shelter);
  time.tp += exposed;
  time.tp_hidden += std::max(Seconds(0), communication.time - exposed);
  time.kernels += communication.kernels;
}

void TensorRegion::through(PassTime& time, const Collective& communication, Seconds whole,
                           Seconds pieces) const {
  if (s_.tp_overlap != TpOverlap::pipelined || communication.time == Seconds(0)) {
    beside(time, communication, Seconds(0));
    return;
  }
  // tp pieces of the product, tp - 1 transfers between them by the copy engines.
  const double ways = layout_.tp;
  const Seconds piece = pieces / ways;
  const Seconds transfer = communication.time / (ways - 1);
  const Seconds together = piece + (ways - 1) * std::max(piece, transfer);
  const Seconds exposed = std::max(Seconds(0), together - whole);
  time.tp += exposed;
  time.tp_hidden += std::max(Seconds(0), communication.time - exposed);
  time.kernels += 2 * (ways - 1);
}

void TensorRegion::enter(std::int64_t k) {
  if (layout_.tp == 1 || (inside_ && entered_ == k)) return;
  close();
  inside_ = true;
  entered_ = k;
  entered_at_ = pricer_.noted();
  products_ = {};
}

void TensorRegion::add(const Product& product) {
  if (!inside_) return;
  products_.forward += product.forward;
  products_.forward_pieces += product.forward_pieces;
  products_.input_gradient += product.input_gradient;
  products_.weight_gradient += product.weight_gradient;
}

void TensorRegion::close() {
  if (!inside_) return;
  inside_ = false;
  const double bytes = bytes_of(entered_);
  const bool overlaps = s_.tp_overlap != TpOverlap::none;
  const Seconds weight_shelter = overlaps ? products_.weight_gradient : Seconds(0);
  // Before the products; backward after the first one's input gradient, beside its weight gradient:
  // a product is noted as forward, weight gradient, input gradient.
  const LayerPricer::Placing before = {false, 1, entered_at_};
  const LayerPricer::Placing after = {overlaps, 1, entered_at_ + (overlaps ? 2 : 0)};
  if (!layout_.sequence_parallel) {
    // Identity forward, all-reduce of the input's gradient backward.
    beside(backward_, collective(Pass::backward, CollectiveKind::all_reduce, bytes, after),
           weight_shelter);
    return;
  }
  // The gathered input is not kept: it is gathered again for the weights' gradient.
  if (overlaps) {
    beside(backward_,
           collective(Pass::backward, CollectiveKind::all_gather, bytes,
                      {true, 1, LayerPricer::kLast}),
           products_.input_gradient);
  }
  const Collective scatter =
      collective(Pass::backward, CollectiveKind::reduce_scatter, bytes, after);
  const Collective gather = collective(Pass::forward, CollectiveKind::all_gather, bytes, before);
  through(forward_, gather, products_.forward, products_.forward_pieces);
  beside(backward_, scatter, weight_shelter);
}

void TensorRegion::leave(const Product& product, std::int64_t width) {
  close();
  if (layout_.tp == 1) return;
  const double bytes = bytes_of(width);
  if (!layout_.sequence_parallel) {
    const Collective sum = collective(Pass::forward, CollectiveKind::all_reduce, bytes);
    through(forward_, sum, product.forward, product.forward_pieces);
    return;
  }
  const Collective scatter = collective(Pass::forward, CollectiveKind::reduce_scatter, bytes);
  const Collective gather = collective(Pass::backward, CollectiveKind::all_gather, bytes);
  through(forward_, scatter, product.forward, product.forward_pieces);
  through(backward_, gather, product.input_gradient, product.input_gradient_pieces);
}

void TensorRegion::embed(std::int64_t width) {
  if (layout_.tp == 1) return;
  const double bytes = bytes_of(width);
  if (!layout_.sequence_parallel) {
    beside(forward_, collective(Pass::forward, CollectiveKind::all_reduce, bytes), Seconds(0));
    return;
  }
  beside(forward_, collective(Pass::forward, CollectiveKind::reduce_scatter, bytes), Seconds(0));
  beside(backward_, collective(Pass::backward, CollectiveKind::all_gather, bytes), Seconds(0));
}

void TensorRegion::reduce_loss() {
  if (layout_.tp == 1) return;
  const double bytes = 4.0 * static_cast<double>(s_.tokens);
  for (int i = 0; i < 3; ++i) {
    beside(forward_, collective(Pass::forward, CollectiveKind::all_reduce, bytes), Seconds(0));
  }
}

}  // namespace shardwise
