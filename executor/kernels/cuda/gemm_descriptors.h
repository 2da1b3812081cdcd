#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "executor/kernels/cuda/cublaslt_library.h"
#include "executor/kernels/cuda/product.h"

namespace shardwise::exec {

/// Holds the calls of one rank to success.
struct CublasLtChecked {
  const CublasLtCalls* calls = nullptr;
  int rank = 0;
  void operator()(cublasStatus_t status, const char* call) const {
    if (status != CUBLAS_STATUS_SUCCESS) throw CublasLtError(rank, call, status);
  }
};

/// A handle or descriptor of cuBLASLt and the call that gives it back.
template <class Handle>
struct Destroy {
  cublasStatus_t (*destroy)(Handle) = nullptr;
  void operator()(Handle handle) const { static_cast<void>(destroy(handle)); }
};
template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<Handle>>;

/// A product in cuBLASLt's words, without its operands' addresses. Tensors that d is added to are
/// d itself.
class GemmDescriptors {
 public:
  GemmDescriptors(const CublasLtChecked& check, const Product& product);

  /// Candidates, best first; empty: cuBLASLt has none for such a product.
  /// \throws CublasLtError when the heuristics fail in another way than by having none
  std::vector<cublasLtMatmulHeuristicResult_t> candidates(cublasLtHandle_t handle,
                                                          std::int64_t workspace_bytes) const;
  /// Whether cuBLASLt takes the algorithm within the workspace, and its sums have one order.
  bool takes(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
             std::int64_t workspace_bytes) const;
  /// \returns what cublasLtMatmul does
  cublasStatus_t multiply(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                          const ProductCall& call, std::byte* workspace, std::int64_t bytes,
                          cudaStream_t stream) const;

 private:
  Owned<cublasLtMatrixLayout_t> layout(DType dtype, std::int64_t rows, std::int64_t columns,
                                       std::int64_t stride) const;
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) const;
  void set_addresses(const void* vector, const void* aux) const;
  /// Whether the algorithm adds in one order; no, where cuBLASLt does not say.
  bool has_one_order(const cublasLtMatmulAlgo_t& algorithm) const;

  CublasLtChecked check_;
  Product product_;
  Owned<cublasLtMatmulDesc_t> product_desc_;
  Owned<cublasLtMatrixLayout_t> a_;
  Owned<cublasLtMatrixLayout_t> b_;
  Owned<cublasLtMatrixLayout_t> d_;
};

}  // namespace shardwise::exec
