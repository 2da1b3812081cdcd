#pragma once

#include <cstdint>
#include <memory>

#include "executor/kernels/cuda/cublaslt_library.h"
#include "executor/kernels/cuda/kernel_choices.h"
#include "executor/kernels/cuda/kernel_tuning.h"
#include "executor/kernels/cuda/product.h"

namespace shardwise::exec {

/// Plans of each product on one GPU: descriptors and an algorithm, made once a product. One that
/// cut_to_vectors() cuts runs as its two parts, each with a plan of its own.
///
/// An algorithm is what was kept of earlier runs, where cuBLASLt still takes it, else the first of
/// the heuristics' choices until tune() finds a faster one. None whose sums depend on who comes
/// first is taken: what splits k keeps its parts in fp32 and adds them in order.
///
/// A product with an epilogue that cuBLASLt fails to describe or to find an algorithm for, in
/// whatever way, is one without an algorithm: there is another way to compute it. So is an
/// algorithm that fails when it is timed. Only the product that is left at the end fails a run.
///
/// One thread at a time. All other calls that fail throw CublasLtError.
class GemmPlans {
 public:
  struct Options {
    int rank = 0;                      // for messages
    std::int64_t workspace_bytes = 0;  // gemm_workspace_bytes()
  };
  /// Plans for the device that is current. \param library outlives it
  GemmPlans(const CublasLtLibrary& library, Options options);
  ~GemmPlans();
  GemmPlans(const GemmPlans&) = delete;
  GemmPlans& operator=(const GemmPlans&) = delete;

  /// Choices of earlier runs, for products whose plan is not made yet.
  void take(GemmChoices choices);
  /// All choices, kept ones included.
  const GemmChoices& choices() const;
  const Options& options() const;

  /// Whether cuBLASLt has an algorithm for it; makes the plan.
  bool supports(const Product& product);
  /// Issues the product. \param workspace  workspace_bytes at a multiple of 256
  /// \throws CublasLtError also when there is no algorithm, with what failed where something did
  void run(const ProductCall& call, std::byte* workspace, cudaStream_t stream);

  /// Makes the product's plan: by what an earlier tune() or run chose, else the fastest of the
  /// heuristics' choices. These are timed at the operands' own places, whose contents are lost: all
  /// of them become random numbers. A product that none of them runs is supported no longer.
  void tune(const ProductCall& call, KernelTuning& tuning);
  /// Keeps what the product takes without its epilogue and with a pass in its place.
  /// \pre tune() has timed the product
  void keep_apart(const Product& product, double microseconds);
  /// Time that was kept so; 0 for none.
  double apart_microseconds(const Product& product);
  /// Whether that is faster than the product with its epilogue.
  bool faster_apart(const Product& product);
  /// Bytes of operands that lie one after the other, at multiples of 256.
  static std::int64_t operand_bytes(const Product& product);
  /// The product of operands that lie so. \pre memory has operand_bytes(product)
  static ProductCall laid_out(const Product& product, std::byte* memory);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardwise::exec
