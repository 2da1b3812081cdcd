#pragma once

#include <cstdint>

#include "planner/cost/layer_pricer.h"

namespace shardwise {

/// Communication of tensor parallelism in one layer: where the activation enters a region of
/// column-parallel products, where a row-parallel product leaves it, and what of it runs beside the
/// products. docs/time.md, "Tensor, context and expert parallelism".
class TensorRegion {
 public:
  /// What is charged goes to `forward` and `backward`, which must outlive the region.
  TensorRegion(const LayerPricer& pricer, const Layout& layout, PassTime& forward,
               PassTime& backward)
      : pricer_(pricer),
        s_(pricer.sizes()),
        layout_(layout),
        forward_(forward),
        backward_(backward) {}

  /// A column-parallel product is about to read [tokens, k]: all tokens are needed, once for all
  /// products of the same input.
  void enter(std::int64_t k);
  /// A product computed since.
  void add(const Product& product);
  /// `product` was row-parallel: its partial sums of [tokens, width] become one.
  void leave(const Product& product, std::int64_t width);
  /// Charges what entering costs, now that all products beside it are known.
  void close();

  /// Rows of a table that tp cuts: partial sums of [tokens, width].
  void embed(std::int64_t width);
  /// Largest logit, sum of exponentials and logit of the target: three numbers a token.
  void reduce_loss();

 private:
  double bytes_of(std::int64_t width) const;
  /// A collective, and how many kernels the host could issue meanwhile.
  struct Collective {
    Seconds time;
    double kernels = 1;
  };
  Collective collective(Pass pass, CollectiveKind kind, double bytes,
                        const LayerPricer::Placing& placing = {}) const;
  /// Communication beside a kernel that does not need it, which it slows.
  void beside(PassTime& time, const Collective& communication, Seconds shelter) const;
  /// Communication in tp pieces beside the pieces of the product that needs them, or makes them.
  void through(PassTime& time, const Collective& communication, Seconds whole,
               Seconds pieces) const;

  const LayerPricer& pricer_;
  const LayerSizes& s_;
  const Layout& layout_;
  PassTime& forward_;
  PassTime& backward_;
  bool inside_ = false;
  std::int64_t entered_ = 0;    // width of the input
  std::size_t entered_at_ = 0;  // items noted before
  Product products_;            // computed since
};

}  // namespace shardwise
