#pragma once

#include <cstdint>
#include <vector>

#include "planner/cost/layer/layer_pricer.h"

namespace shardwise {

/// Communication of tensor parallelism in one layer: where the activation enters a region of
/// column-parallel products, where a row-parallel product leaves it, and what of it runs beside the
/// products. docs/layer_time.md, "Tensor, context and expert parallelism".
class TensorRegion {
 public:
  /// Charges go to `forward` and `backward`, which must outlive the region.
  TensorRegion(const LayerPricer& pricer, const Layout& layout, PassTime& forward,
               PassTime& backward)
      : pricer_(pricer),
        s_(pricer.sizes()),
        layout_(layout),
        forward_(forward),
        backward_(backward) {}

  /// A column-parallel product is about to read [tokens, k]: all tokens are needed, once for all
  /// products of the same input. \param late  the product begins the backward pass
  void enter(std::int64_t k, bool late = false);
  /// A product of that input, computed since.
  void add(const Product& product);
  /// `product` was row-parallel: its partial sums of [tokens, width] become one.
  void leave(Product product, std::int64_t width);
  /// Charges what entering costs, now that all products beside it are known.
  void close();

  /// Rows of a table that tp cuts: partial sums of [tokens, width].
  void embed(std::int64_t width);
  /// Largest logit, sum of exponentials and logit of the target: three numbers a token. `loss` is
  /// the operation. Our head, which works by rows in backward, gathers the three of some rows at
  /// once, so that every rank adds them up in one order.
  void reduce_loss(const OperationSpec& loss);

 private:
  double bytes_of(std::int64_t width) const;
  /// Whether PyTorch's modules copy what a collective brings, or takes, [batch, sequence, width]:
  /// it is cut along the sequence, and collectives join what ranks have one after the other.
  bool copies_whole() const;
  /// The copy of a pass, read and written.
  void copy_whole(Pass pass, PassTime& time, std::int64_t width) const;
  /// A collective, and how many kernels the host could issue meanwhile.
  struct Collective {
    Pass pass = Pass::forward;
    CollectiveKind kind = CollectiveKind::all_gather;
    double bytes = 0;
    Seconds time;
    double kernels = 1;
  };
  Collective collective(Pass pass, CollectiveKind kind, double bytes) const;
  /// Kernels beside which a collective runs, and where it stands before the first of them.
  struct Shelter {
    struct Kernel {
      std::size_t at = 0;  // the item that it runs before
      Seconds time;
    };
    std::vector<Kernel> kernels;
    std::size_t begin = LayerPricer::kLast;
  };
  Shelter forward_shelter() const;
  Shelter input_shelter() const;
  Shelter weight_shelter() const;
  /// Communication that holds up the compute stream.
  void stops(PassTime& time, const Collective& communication, std::size_t at) const;
  /// Communication beside kernels that do not need it, which it slows.
  void beside(PassTime& time, const Collective& communication, const Shelter& shelter);
  /// Communication in tp pieces beside the pieces of the product that needs them, or makes them.
  void through(PassTime& time, const Collective& communication, const Shelter& shelter,
               Seconds pieces);
  /// Notes a collective that stops the compute stream for so long, the rest beside the shelter.
  void split(const Collective& communication, Seconds stopping, const Shelter& shelter);
  void note_all();

  /// A part of a collective, to be noted before an item.
  struct Part {
    std::size_t at = 0;
    Collective communication;
    double times = 1;
    bool beside = false;
  };

  const LayerPricer& pricer_;
  const LayerSizes& s_;
  const Layout& layout_;
  PassTime& forward_;
  PassTime& backward_;
  bool inside_ = false;
  bool late_ = false;              // its input is gathered where the backward pass begins
  std::int64_t entered_ = 0;       // width of the input
  std::size_t entered_at_ = 0;     // items noted before
  std::vector<Product> products_;  // computed since
  std::vector<Part> parts_;        // not yet noted
};

}  // namespace shardwise
