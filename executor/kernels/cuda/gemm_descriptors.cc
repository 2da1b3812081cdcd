#include "executor/kernels/cuda/gemm_descriptors.h"

#include <algorithm>
#include <optional>

namespace shardwise::exec {
namespace {

constexpr int kMostCandidates = 16;

cudaDataType_t type_of(DType dtype) { return dtype == DType::fp32 ? CUDA_R_32F : CUDA_R_16BF; }

cublasLtEpilogue_t epilogue_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::gelu_aux:
      return CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::gelu_aux_bias:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::dgelu:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::bias_gradient_a:
      return CUBLASLT_EPILOGUE_BGRADA;
    case Epilogue::bias_gradient_b:
      return CUBLASLT_EPILOGUE_BGRADB;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

/// Stands for an address that is read for its alignment alone.
const void* address_of(int alignment) {
  return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(alignment));  // NOLINT
}

}  // namespace

template <class T>
void GemmDescriptors::set(cublasLtMatmulDescAttributes_t attribute, const T& value) const {
  check_(check_.calls->product_set(product_desc_.get(), attribute, static_cast<const void*>(&value),
                                   sizeof(value)),
         "cublasLtMatmulDescSetAttribute");
}

Owned<cublasLtMatrixLayout_t> GemmDescriptors::layout(DType dtype, std::int64_t rows,
                                                      std::int64_t columns,
                                                      std::int64_t stride) const {
  cublasLtMatrixLayout_t made = nullptr;
  check_(check_.calls->layout_create(&made, type_of(dtype), static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), stride),
         "cublasLtMatrixLayoutCreate");
  return {made, {check_.calls->layout_destroy}};
}

GemmDescriptors::GemmDescriptors(const CublasLtChecked& check, const Product& p)
    : check_(check), product_(p) {
  cublasLtMatmulDesc_t made = nullptr;
  check_(check_.calls->product_create(
             &made, p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
         "cublasLtMatmulDescCreate");
  product_desc_ = {made, {check_.calls->product_destroy}};
  set(CUBLASLT_MATMUL_DESC_TRANSA, p.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, p.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (p.epilogue != Epilogue::none) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p.epilogue));
    if (p.vector_alignment != 0) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(p.result));
    if (p.aux_stride != 0) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.aux_stride);
    set_addresses(address_of(p.vector_alignment), address_of(p.aux_alignment));
  }
  a_ = p.a_transposed ? layout(p.dtype, p.k, p.m, p.a_stride)
                      : layout(p.dtype, p.m, p.k, p.a_stride);
  b_ = p.b_transposed ? layout(p.dtype, p.n, p.k, p.b_stride)
                      : layout(p.dtype, p.k, p.n, p.b_stride);
  d_ = layout(p.result, p.m, p.n, p.d_stride);
}

void GemmDescriptors::set_addresses(const void* vector, const void* aux) const {
  if (product_.vector_alignment != 0) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
  if (product_.aux_stride != 0) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
}

bool GemmDescriptors::has_one_order(const cublasLtMatmulAlgo_t& algorithm) const {
  const auto read = [&](cublasLtMatmulAlgoConfigAttributes_t attribute) {
    std::uint32_t value = 0;
    std::size_t written = 0;
    const cublasStatus_t status =
        check_.calls->algorithm_get(&algorithm, attribute, &value, sizeof(value), &written);
    return status == CUBLAS_STATUS_SUCCESS ? std::optional(value) : std::nullopt;
  };
  const auto scheme = read(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
  if (scheme == CUBLASLT_REDUCTION_SCHEME_NONE ||
      scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) {
    return true;
  }
  const auto splits = read(CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  return scheme && splits && *splits <= 1;
}

std::vector<cublasLtMatmulHeuristicResult_t> GemmDescriptors::candidates(
    cublasLtHandle_t handle, std::int64_t workspace_bytes) const {
  cublasLtMatmulPreference_t made = nullptr;
  check_(check_.calls->preference_create(&made), "cublasLtMatmulPreferenceCreate");
  const Owned<cublasLtMatmulPreference_t> preference(made, {check_.calls->preference_destroy});
  const auto set_preference = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check_(check_.calls->preference_set(made, attribute, &value, sizeof(value)),
           "cublasLtMatmulPreferenceSetAttribute");
  };
  set_preference(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                 static_cast<std::uint64_t>(workspace_bytes));
  set_preference(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                 static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  const Product& p = product_;
  set_preference(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                 static_cast<std::uint32_t>(p.a_alignment));
  set_preference(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                 static_cast<std::uint32_t>(p.b_alignment));
  for (const auto d :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set_preference(d, static_cast<std::uint32_t>(p.d_alignment));
  }
  std::vector<cublasLtMatmulHeuristicResult_t> found(kMostCandidates);
  int count = 0;
  const cublasStatus_t status =
      check_.calls->heuristic(handle, product_desc_.get(), a_.get(), b_.get(), d_.get(), d_.get(),
                              made, kMostCandidates, found.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check_(status, "cublasLtMatmulAlgoGetHeuristic");
  found.resize(static_cast<std::size_t>(std::clamp(count, 0, kMostCandidates)));
  std::erase_if(found, [&](const cublasLtMatmulHeuristicResult_t& each) {
    return each.state != CUBLAS_STATUS_SUCCESS ||
           each.workspaceSize > static_cast<std::size_t>(workspace_bytes) ||
           !has_one_order(each.algo);
  });
  return found;
}

bool GemmDescriptors::takes(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                            std::int64_t workspace_bytes) const {
  cublasLtMatmulHeuristicResult_t result = {};
  return check_.calls->algorithm_check(handle, product_desc_.get(), a_.get(), b_.get(), d_.get(),
                                       d_.get(), &algorithm, &result) == CUBLAS_STATUS_SUCCESS &&
         result.workspaceSize <= static_cast<std::size_t>(workspace_bytes) &&
         has_one_order(algorithm);
}

cublasStatus_t GemmDescriptors::multiply(cublasLtHandle_t handle,
                                         const cublasLtMatmulAlgo_t& algorithm,
                                         const ProductCall& call, std::byte* workspace,
                                         std::int64_t bytes, cudaStream_t stream) const {
  set_addresses(call.vector, call.aux);
  constexpr float kOne = 1;
  const float beta = product_.adds ? 1 : 0;
  return check_.calls->multiply(handle, product_desc_.get(), &kOne, call.a, a_.get(), call.b,
                                b_.get(), &beta, call.d, d_.get(), call.d, d_.get(), &algorithm,
                                workspace, static_cast<std::size_t>(bytes), stream);
}

}  // namespace shardwise::exec
