#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "executor/kernels/cuda/cublaslt_library.h"
#include "executor/kernels/cuda/gemm_plan_file.h"
#include "executor/kernels/cuda/product.h"

namespace shardwise::exec {

/// Times what is issued to a stream. Of the device, which has events.
class GemmClock {
 public:
  virtual ~GemmClock() = default;
  GemmClock() = default;
  GemmClock(const GemmClock&) = delete;
  GemmClock& operator=(const GemmClock&) = delete;

  /// Random numbers, of a few binary orders of magnitude: products of zeros draw less power, and so
  /// run faster.
  virtual void fill(std::span<std::byte> memory, DType dtype) = 0;
  /// Seconds that one `issue` takes on the device, warm: what is typical of several.
  virtual double seconds(const std::function<void()>& issue) = 0;
};

/// How each product runs on one GPU: descriptors and an algorithm, made once a product.
///
/// An algorithm is what was kept of earlier runs, where cuBLASLt still takes it, else the first of
/// the heuristics' choices until tune() finds a faster one. None whose sums depend on who comes
/// first is taken: what splits k keeps its parts in fp32 and adds them in order.
///
/// One thread at a time. All functions throw CublasLtError when a call fails.
class GemmPlans {
 public:
  struct Options {
    std::string gpu;                   // as CUDA names it
    int rank = 0;                      // for messages
    std::int64_t workspace_bytes = 0;  // gemm_workspace_bytes()
  };
  /// Of the device that is current. \param library  outlives it
  GemmPlans(const CublasLtLibrary& library, Options options);
  ~GemmPlans();
  GemmPlans(const GemmPlans&) = delete;
  GemmPlans& operator=(const GemmPlans&) = delete;

  /// Choices of earlier runs, for products whose plan is not made yet.
  void take(GemmChoices choices);
  /// All choices, kept ones included.
  const GemmChoices& choices() const;
  GemmMachine machine() const;
  const Options& options() const;

  /// Whether cuBLASLt has an algorithm for it; makes the plan.
  bool supports(const Product& product);
  /// Issues the product. \param workspace  workspace_bytes at a multiple of 256
  /// \throws CublasLtError also when there is no algorithm
  void run(const ProductCall& call, std::byte* workspace, cudaStream_t stream);

  /// Times the heuristics' choices for a product on random operands and takes the fastest; none is
  /// timed again when the choice is of an earlier tune().
  /// \param scratch  of the device, at a multiple of 256: operands. Its content is lost.
  /// \returns false when there is no algorithm or `scratch` is below operand_bytes(product)
  bool tune(const Product& product, std::span<std::byte> scratch, std::byte* workspace,
            cudaStream_t stream, GemmClock& clock);
  static std::int64_t operand_bytes(const Product& product);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardwise::exec
