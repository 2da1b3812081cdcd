#pragma once

// Descriptors of cuBLASLt, and the product they mean.
#include <cublasLt.h>

#include <cstdint>
#include <string>

#include "executor/kernels/cuda/cublaslt_library.h"

namespace fake_cublaslt {

struct Matrix {
  std::int32_t type = 0;  // cudaDataType
  std::int32_t order = 0;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::int64_t stride = 0;
  std::int32_t batches = 0;
};

struct Said {
  Matrix a;
  Matrix b;
  Matrix c;
  Matrix d;
  std::int32_t compute = 0;
  std::int32_t scale = 0;
  std::int32_t a_op = 0;
  std::int32_t b_op = 0;
  std::uint32_t epilogue = 0;
  std::int32_t vector_type = 0;
  void* vector = nullptr;
  void* aux = nullptr;
  std::int64_t aux_stride = 0;

  std::uint64_t m() const { return d.rows; }
  std::uint64_t n() const { return d.columns; }
  std::uint64_t k() const { return a_op == CUBLAS_OP_N ? a.columns : a.rows; }
};

/// Reads them back with the library's own getters.
Said read(const shardwise::exec::CublasLtCalls& calls, cublasLtMatmulDesc_t product,
          cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
          cublasLtMatrixLayout_t d);

/// Problem of it; empty for none.
std::string wrong_with(const Said& said);

struct Operands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  float alpha = 0;
  float beta = 0;
};
/// \param parts  of k, each summed by itself and rounded to fp32
void multiply(const Said& said, const Operands& operands, int parts);

}  // namespace fake_cublaslt
