#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/cost/collectives/collective.h"
#include "planner/cost/kernels/kernel_traits.h"
#include "planner/cost/layer/layer_time.h"
#include "planner/cost/layer/operation_sizes.h"

namespace shardwise {

/// Sizes and groups that every operation of a layer shares on one rank for one micro-batch.
struct LayerSizes : OperationSizes {
  double met = 0;      // copies of tokens that meet this rank's experts: the busiest rank's
  double element = 2;  // bytes of an activation element
  Kernels pointwise = Kernels::eager;  // who wrote what only moves bytes
  KernelTraits ours;                   // of our kernels; none where the layer has others
  /// Megatron's modules over PyTorch's operators: fused pointwise kernels, and copies between them.
  bool megatron_eager() const { return kernels == Kernels::eager && pointwise != kernels; }
  TpOverlap tp_overlap = TpOverlap::none;
  double tp_tax = 0;              // share of a product lost while a collective of tp runs beside it
  double cp_tax = 0;              // of attention, beside one of cp
  double all_reduce_kernels = 1;  // that the host issues in the time of one such collective
  double all_gather_kernels = 1;
  double reduce_scatter_kernels = 1;
  GroupShape tp_group;
  GroupShape cp_group;
  GroupShape ep_group;
  GroupShape etp_group;
};
LayerSizes layer_sizes(const ModelSpec& model, const JobSpec& job, const EngineProfile& engine,
                       const ClusterSpec& cluster, const Layout& layout);

/// A matrix product in its three directions. m rows, n columns of the weight, k its rows.
struct Product {
  Seconds forward;
  Seconds forward_pieces;  // the same in tp pieces of m / tp rows, where communication needs that
  Seconds input_gradient;
  Seconds input_gradient_pieces;
  Seconds weight_gradient;
  Flops flops;  // of one direction
  // Among the items noted: kNone where it is not.
  static constexpr std::size_t kNone = SIZE_MAX;
  std::size_t forward_at = kNone;
  std::size_t weight_at = kNone;
  std::size_t input_at = kNone;
};

/// The ranks of a group that are inside one domain of the innermost tier. \pre group.tiers >= 1
GroupShape node_of(const GroupShape& group);

/// Attention and everything else that has no 8-bit form runs in this.
constexpr DType wide_dtype(DType precision) {
  return bits_of(precision) <= 8 ? DType::bf16 : precision;
}

/// Products, kernels and collectives of a layer, noted in the order in which they run.
class LayerNotes {
 public:
  /// \param gemms, items  null: these are not listed
  LayerNotes(std::vector<GemmUse>* gemms, std::vector<LayerItem>* items)
      : gemms_(gemms), items_(items) {}

  bool lists_gemms() const { return gemms_ != nullptr; }
  bool lists_items() const { return items_ != nullptr; }
  /// Items noted so far.
  std::size_t noted() const { return items_ == nullptr ? 0 : items_->size(); }
  /// Sum of what all collectives send, and again what runs again.
  const TierTraffic& traffic() const { return traffic_; }
  /// Whether kernels of the forward pass begin the backward pass.
  bool late() const { return late_; }

  /// Sets how often what is noted from now on runs again before backward.
  void set_again(double share) { again_ = share; }
  /// Lets what is noted of the forward pass from now on begin the backward pass: it is kept until
  /// the end of the layer.
  void set_late(bool late) { late_ = late; }

  /// \pre lists_gemms()
  void add(GemmUse product) { gemms_->push_back(std::move(product)); }
  /// \pre lists_items()
  void add(Pass pass, KernelWork kernel, bool weight = false);
  /// \param at  the item before which it is \pre lists_items()
  void add(LayerItem collective, std::size_t at);
  /// One among what begins the backward pass: set_late(). \pre lists_items()
  void keep(LayerItem collective);
  /// Adds what `times` collectives of a pass send.
  void add_traffic(Pass pass, double times, const TierTraffic& once) {
    traffic_ += times * (1 + again(pass)) * once;
  }
  /// Notes what was kept.
  void add_late();

 private:
  double again(Pass pass) const { return pass == Pass::forward ? again_ : 0; }

  std::vector<GemmUse>* gemms_;
  std::vector<LayerItem>* items_;
  double again_ = 0;
  bool late_ = false;
  TierTraffic traffic_;
  std::vector<LayerItem> kept_;
};

/// Prices that the operations of a layer are summed from. Notes all that it prices.
class LayerPricer {
 public:
  LayerPricer(const LayerSpec& layer, const JobSpec& job, const ClusterSpec& cluster,
              const Layout& layout, const LayerSizes& sizes, LayerNotes& notes)
      : layer_(layer),
        job_(job),
        cluster_(cluster),
        layout_(layout),
        sizes_(sizes),
        notes_(notes) {}

  /// \param groups  products of this shape in one kernel; `m` is then of one of them
  /// \param gradient  where the weight gradient goes
  /// \param trains    the weight gradient is computed at all
  /// \param pieces    the rows are cut into so many products, one after the other
  Product product(std::string_view name, DType dtype, std::int64_t groups, double m, std::int64_t n,
                  std::int64_t k, GemmOutput gradient = GemmOutput::written, bool trains = true,
                  double pieces = 1, std::optional<DType> forward_dtype = {}) const;
  /// \param kernels  that share the bytes; below one (joined with a neighbour) counts as part of it
  Seconds moved(Pass pass, double bytes, int kernels = 1, double times = 1) const {
    return moved(pass, MoveKind::copy, bytes, kernels, times);
  }
  Seconds moved(Pass pass, MoveKind kind, double bytes, int kernels = 1, double times = 1) const;
  Seconds collective(CollectiveKind kind, double bytes, const GroupShape& group) const;
  /// Position of a collective among the kernels: beside the one that follows, as steps one after
  /// the other, and before which item.
  struct Placing {
    bool beside = false;
    double times = 1;
    std::size_t at = kLast;
    bool late = false;  // begins the backward pass, behind what was noted late so far
  };
  static constexpr std::size_t kLast = SIZE_MAX;
  /// The price of one collective of a group of the layer, which is noted. \param node  see node_of
  Seconds charge(Pass pass, CollectiveKind kind, double bytes, GroupKind group) const {
    return charge(pass, kind, bytes, group, Placing{});
  }
  Seconds charge(Pass pass, CollectiveKind kind, double bytes, GroupKind group,
                 const Placing& placing, bool node = false) const;
  /// Core attention of one micro-batch with what context parallelism adds.
  void attention(const OperationSpec& op, PassTime& forward, PassTime& backward) const;

  /// A product [rows, k] x [k, width] of each of `groups` weights.
  struct CastProduct {
    double rows = 0;
    std::int64_t k = 0;
    std::int64_t width = 0;
    std::int64_t groups = 1;
    bool input = false;  // is fp32
  };
  /// Autocast's casts of a product's weight, once a micro-batch, and of its input, and the same the
  /// other way for their gradients.
  void autocast(const CastProduct& of, PassTime& forward, PassTime& backward) const;

  /// Compute dtype of a weight product.
  DType weight_dtype(const OperationSpec& op) const;

  const GpuSpec& gpu() const { return cluster_.gpu; }
  const LayerSizes& sizes() const { return sizes_; }
  LayerNotes& notes() const { return notes_; }

 private:
  void fused_attention(const AttentionWork& work, PassTime& forward, PassTime& backward,
                       double times = 1, std::string_view name = "attention") const;
  void materialised_attention(const OperationSpec& op, const AttentionWork& work, PassTime& forward,
                              PassTime& backward) const;
  void ring_attention(const AttentionWork& work, double key_value_bytes, PassTime& forward,
                      PassTime& backward) const;

  const LayerSpec& layer_;
  const JobSpec& job_;
  const ClusterSpec& cluster_;
  const Layout& layout_;
  const LayerSizes& sizes_;
  LayerNotes& notes_;
};

}  // namespace shardwise
