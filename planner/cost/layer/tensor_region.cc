#include "planner/cost/layer/tensor_region.h"

#include <algorithm>

#include "planner/cost/software/time_rules.h"

namespace shardwise {
namespace {

constexpr std::size_t kLast = LayerPricer::kLast;

/// A product runs after what stands before it in forward; backward runs items from the last to the
/// first.
std::size_t after(std::size_t at) { return at == kLast ? kLast : at + 1; }

}  // namespace

double TensorRegion::bytes_of(std::int64_t width) const {
  return static_cast<double>(s_.tokens) * static_cast<double>(width) * s_.element;
}

// A batch of one sequence is a view. Source:
// pytorch@v2.15.0:torch/distributed/_functional_collectives.py, all_gather_single and
// reduce_scatter_single; in v2.4.0 all_gather_tensor joined every batch by torch.cat.
bool TensorRegion::copies_whole() const {
  return layout_.sequence_parallel && layout_.tp > 1 && s_.batch > 1 && !s_.own_modules() &&
         s_.tp_overlap != TpOverlap::pipelined;
}

void TensorRegion::copy_whole(Pass pass, PassTime& time, std::int64_t width) const {
  if (!copies_whole()) return;
  time.memory_bound += pricer_.moved(pass, 2 * bytes_of(width));
  time.kernels += 1;
}

TensorRegion::Collective TensorRegion::collective(Pass pass, CollectiveKind kind,
                                                  double bytes) const {
  return {pass, kind, bytes, pricer_.collective(kind, bytes, s_.tp_group),
          kind == CollectiveKind::all_reduce   ? s_.all_reduce_kernels
          : kind == CollectiveKind::all_gather ? s_.all_gather_kernels
                                               : s_.reduce_scatter_kernels};
}

TensorRegion::Shelter TensorRegion::forward_shelter() const {
  Shelter shelter;
  for (const Product& p : products_) shelter.kernels.push_back({p.forward_at, p.forward});
  shelter.begin = entered_at_;
  return shelter;
}

TensorRegion::Shelter TensorRegion::input_shelter() const {
  Shelter shelter;
  for (const Product& p : products_) {
    shelter.kernels.push_back({after(p.input_at), p.input_gradient});
    shelter.begin = after(p.input_at);
  }
  return shelter;
}

TensorRegion::Shelter TensorRegion::weight_shelter() const {
  Shelter shelter;
  for (const Product& p : products_) {
    if (p.weight_gradient > Seconds(0)) {
      shelter.kernels.push_back({after(p.weight_at), p.weight_gradient});
    }
  }
  shelter.begin = entered_at_;
  return shelter;
}

void TensorRegion::stops(PassTime& time, const Collective& communication, std::size_t at) const {
  pricer_.charge(communication.pass, communication.kind, communication.bytes, GroupKind::tp,
                 {false, 1, at});
  time.tp += communication.time;
  time.kernels += communication.kernels;
}

void TensorRegion::beside(PassTime& time, const Collective& communication, const Shelter& shelter) {
  Seconds sheltered;
  for (const Shelter::Kernel& kernel : shelter.kernels) sheltered += kernel.time;
  const double tax = sheltered > Seconds(0) ? s_.tp_tax : 0;
  const Seconds uncovered = communication.time - sheltered;
  const Seconds exposed = std::max(communication.time * tax, uncovered);
  time.tp += exposed;
  time.tp_hidden += std::max(Seconds(0), communication.time - exposed);
  time.kernels += communication.kernels;
  split(communication, std::max(Seconds(0), uncovered), shelter);
}

void TensorRegion::through(PassTime& time, const Collective& communication, const Shelter& shelter,
                           Seconds pieces) {
  if (s_.tp_overlap != TpOverlap::pipelined || communication.time == Seconds(0)) {
    beside(time, communication, {{}, shelter.begin});
    return;
  }
  Seconds whole;
  for (const Shelter::Kernel& kernel : shelter.kernels) whole += kernel.time;
  // tp pieces of the product, tp - 1 transfers between them by the copy engines.
  const double ways = layout_.tp;
  const Seconds piece = pieces / ways;
  const Seconds transfer = communication.time / (ways - 1);
  const Seconds together = piece + (ways - 1) * std::max(piece, transfer);
  const Seconds exposed = std::max(Seconds(0), together - whole);
  time.tp += exposed;
  time.tp_hidden += std::max(Seconds(0), communication.time - exposed);
  time.kernels += 2 * (ways - 1);
  split(communication, exposed, shelter);
}

void TensorRegion::split(const Collective& communication, Seconds stopping,
                         const Shelter& shelter) {
  if (communication.time == Seconds(0)) return;
  const double stops = stopping / communication.time;
  if (stops > 0) parts_.push_back({shelter.begin, communication, stops, false});
  if (stops >= 1) return;
  Seconds all;
  for (const Shelter::Kernel& kernel : shelter.kernels) all += kernel.time;
  for (const Shelter::Kernel& kernel : shelter.kernels) {
    const std::size_t at = kernel.at == kLast ? shelter.begin : kernel.at;
    parts_.push_back({at, communication, (1 - stops) * (kernel.time / all), true});
  }
}

/// The last first, so that numbers of items before stay true. Of the parts before one item the
/// first runs first, which backward has in the opposite order.
void TensorRegion::note_all() {
  std::ranges::stable_sort(parts_, [](const Part& a, const Part& b) {
    if (a.at != b.at) return a.at > b.at;
    return a.communication.pass == Pass::backward && b.communication.pass == Pass::forward;
  });
  for (std::size_t begin = 0; begin < parts_.size();) {
    std::size_t end = begin;
    const auto alike = [&](const Part& part) {
      return part.at == parts_[begin].at &&
             part.communication.pass == parts_[begin].communication.pass;
    };
    while (end < parts_.size() && alike(parts_[end])) ++end;
    // Each is put before those of the same place that were noted already.
    const bool forward = parts_[begin].communication.pass == Pass::forward;
    for (std::size_t i = begin; i < end; ++i) {
      const Part& part = parts_[forward ? begin + end - 1 - i : i];
      const Collective& c = part.communication;
      pricer_.charge(c.pass, c.kind, c.bytes, GroupKind::tp, {part.beside, part.times, part.at});
    }
    begin = end;
  }
  parts_.clear();
}

void TensorRegion::enter(std::int64_t k, bool late) {
  if (layout_.tp == 1 || (inside_ && entered_ == k)) return;
  close();
  inside_ = true;
  late_ = late && layout_.sequence_parallel;
  if (late_) {
    const Collective input = collective(Pass::backward, CollectiveKind::all_gather, bytes_of(k));
    pricer_.charge(input.pass, input.kind, input.bytes, GroupKind::tp, {false, 1, kLast, true});
    backward_.tp += input.time;
    backward_.kernels += input.kernels;
  }
  entered_ = k;
  entered_at_ = pricer_.notes().noted();
  products_.clear();
  copy_whole(Pass::forward, forward_, k);
  copy_whole(Pass::backward, backward_, k);
}

void TensorRegion::add(const Product& product) {
  if (inside_) products_.push_back(product);
}

void TensorRegion::close() {
  if (!inside_) return;
  inside_ = false;
  const double bytes = bytes_of(entered_);
  const bool overlaps = s_.tp_overlap != TpOverlap::none;
  const Shelter weights = overlaps ? weight_shelter() : Shelter{{}, entered_at_};
  if (!layout_.sequence_parallel) {
    // Identity forward, all-reduce of the input's gradient backward.
    beside(backward_, collective(Pass::backward, CollectiveKind::all_reduce, bytes), weights);
    return note_all();
  }
  // The gathered input is not kept: it is gathered again for the weights' gradient, if there is one
  // (NVIDIA/Megatron-LM:megatron/core/tensor_parallel/layers.py, LinearWithFrozenWeight).
  const bool planned = s_.kernels == Kernels::planned;
  if ((overlaps || planned) && !s_.frozen && !late_) {
    const Shelter inputs = input_shelter();
    beside(backward_, collective(Pass::backward, CollectiveKind::all_gather, bytes),
           overlaps ? inputs : Shelter{{}, inputs.begin});
  }
  Seconds pieces;
  for (const Product& p : products_) pieces += p.forward_pieces;
  if (!late_) {
    through(forward_, collective(Pass::forward, CollectiveKind::all_gather, bytes),
            forward_shelter(), pieces);
  }
  beside(backward_, collective(Pass::backward, CollectiveKind::reduce_scatter, bytes), weights);
  note_all();
}

void TensorRegion::leave(Product product, std::int64_t width) {
  const std::size_t before = pricer_.notes().noted();
  close();
  if (layout_.tp == 1) return;
  // What was noted of the region stands before the product.
  for (std::size_t* at : {&product.forward_at, &product.input_at}) {
    if (*at != kLast) *at += pricer_.notes().noted() - before;
  }
  copy_whole(Pass::forward, forward_, width);
  copy_whole(Pass::backward, backward_, width);
  const double bytes = bytes_of(width);
  const Shelter forward = {{{product.forward_at, product.forward}}, kLast};
  const CollectiveKind out =
      layout_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  through(forward_, collective(Pass::forward, out, bytes), forward, product.forward_pieces);
  if (layout_.sequence_parallel) {
    const Shelter backward = {{{after(product.input_at), product.input_gradient}}, kLast};
    through(backward_, collective(Pass::backward, CollectiveKind::all_gather, bytes), backward,
            product.input_gradient_pieces);
  }
  note_all();
}

void TensorRegion::embed(std::int64_t width) {
  if (layout_.tp == 1) return;
  const double bytes = bytes_of(width);
  if (!layout_.sequence_parallel) {
    stops(forward_, collective(Pass::forward, CollectiveKind::all_reduce, bytes), kLast);
    return;
  }
  stops(forward_, collective(Pass::forward, CollectiveKind::reduce_scatter, bytes), kLast);
  stops(backward_, collective(Pass::backward, CollectiveKind::all_gather, bytes), kLast);
}

void TensorRegion::reduce_loss(const OperationSpec& loss) {
  if (layout_.tp == 1) return;
  if (s_.by_rows()) {
    const auto pieces = static_cast<double>(s_.loss_pieces(loss));
    const Collective rows =
        collective(Pass::backward, CollectiveKind::all_gather,
                   static_cast<double>(kRowStatisticsBytes * layout_.tp * s_.tokens) / pieces);
    pricer_.charge(rows.pass, rows.kind, rows.bytes, GroupKind::tp, {false, pieces, kLast, true});
    backward_.tp += pieces * rows.time;
    backward_.kernels += pieces * rows.kernels;
    return;
  }
  const double bytes = 4.0 * static_cast<double>(s_.tokens);
  for (int i = 0; i < 3; ++i) {
    stops(forward_, collective(Pass::forward, CollectiveKind::all_reduce, bytes), kLast);
  }
}

}  // namespace shardwise
