#include "tests/support/host_cuda/fake_product.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "executor/kernels/element.h"

namespace fake_cublaslt {
namespace {

using shardwise::exec::Bf16;

double value_at(const void* at, std::int32_t type, std::int64_t index) {
  if (type == CUDA_R_32F) return static_cast<const float*>(at)[index];
  return shardwise::exec::to_float(static_cast<const Bf16*>(at)[index]);
}
void store(void* at, std::int32_t type, std::int64_t index, double value) {
  const auto rounded = static_cast<float>(value);
  if (type == CUDA_R_32F) {
    static_cast<float*>(at)[index] = rounded;
  } else {
    static_cast<Bf16*>(at)[index] = shardwise::exec::from_float<Bf16>(rounded);
  }
}

double inner(double x) { return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }
double gelu(double x) { return 0.5 * x * (1 + std::tanh(inner(x))); }
double gelu_slope(double x) {
  const double t = std::tanh(inner(x));
  const double slope = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope;
}

bool has(std::uint32_t epilogue, std::uint32_t bit) { return (epilogue & bit) != 0; }
constexpr std::uint32_t kBias = 4;
constexpr std::uint32_t kGelu = 32;
constexpr std::uint32_t kDgelu = 64;
constexpr std::uint32_t kAux = 128;

double element(const Matrix& matrix, const void* at, bool transposed, std::uint64_t row,
               std::uint64_t column) {
  if (transposed) std::swap(row, column);
  return value_at(
      at, matrix.type,
      static_cast<std::int64_t>(row) + static_cast<std::int64_t>(column) * matrix.stride);
}

std::string wrong_sizes(const Said& s) {
  const bool a_flat = s.a_op == CUBLAS_OP_N;
  const bool b_flat = s.b_op == CUBLAS_OP_N;
  if ((a_flat ? s.a.rows : s.a.columns) != s.m()) return "a has not the rows of d";
  if ((b_flat ? s.b.columns : s.b.rows) != s.n()) return "b has not the columns of d";
  if ((b_flat ? s.b.rows : s.b.columns) != s.k()) return "a and b have not the same k";
  if (s.c.rows != s.m() || s.c.columns != s.n()) return "c has not the size of d";
  for (const Matrix& each : {s.a, s.b, s.c, s.d}) {
    if (each.order != CUBLASLT_ORDER_COL || each.batches != 1) return "not one matrix of columns";
    if (each.stride < static_cast<std::int64_t>(each.rows)) return "a leading dimension below rows";
  }
  return "";
}

}  // namespace

Said read(const shardwise::exec::CublasLtCalls& calls, cublasLtMatmulDesc_t product,
          cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
          cublasLtMatrixLayout_t d) {
  const auto matrix = [&](cublasLtMatrixLayout_t layout) {
    Matrix m;
    std::size_t written = 0;
    const auto get = [&](cublasLtMatrixLayoutAttribute_t attribute, auto& value) {
      calls.layout_get(layout, attribute, &value, sizeof(value), &written);
    };
    get(CUBLASLT_MATRIX_LAYOUT_TYPE, m.type);
    get(CUBLASLT_MATRIX_LAYOUT_ORDER, m.order);
    get(CUBLASLT_MATRIX_LAYOUT_ROWS, m.rows);
    get(CUBLASLT_MATRIX_LAYOUT_COLS, m.columns);
    get(CUBLASLT_MATRIX_LAYOUT_LD, m.stride);
    get(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, m.batches);
    return m;
  };
  Said said = {matrix(a), matrix(b), matrix(c), matrix(d)};
  std::size_t written = 0;
  const auto get = [&](cublasLtMatmulDescAttributes_t attribute, auto& value) {
    calls.product_get(product, attribute, static_cast<void*>(&value), sizeof(value), &written);
  };
  get(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, said.compute);
  get(CUBLASLT_MATMUL_DESC_SCALE_TYPE, said.scale);
  get(CUBLASLT_MATMUL_DESC_TRANSA, said.a_op);
  get(CUBLASLT_MATMUL_DESC_TRANSB, said.b_op);
  get(CUBLASLT_MATMUL_DESC_EPILOGUE, said.epilogue);
  get(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, said.vector_type);
  get(CUBLASLT_MATMUL_DESC_BIAS_POINTER, said.vector);
  get(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, said.aux);
  get(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, said.aux_stride);
  if (said.vector_type < 0) said.vector_type = said.d.type;
  return said;
}

std::string wrong_with(const Said& s) {
  if (std::string wrong = wrong_sizes(s); !wrong.empty()) return wrong;
  const bool narrow = s.a.type == CUDA_R_16BF;
  if (s.a.type != s.b.type || s.c.type != s.d.type || (s.a.type != CUDA_R_32F && !narrow) ||
      (s.d.type != CUDA_R_32F && !(narrow && s.d.type == CUDA_R_16BF))) {
    return "types of no product";
  }
  const bool tf32 = s.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && !narrow;
  if ((s.compute != CUBLAS_COMPUTE_32F && !tf32) || s.scale != CUDA_R_32F) return "not by fp32";
  const bool gradient =
      s.epilogue == CUBLASLT_EPILOGUE_BGRADA || s.epilogue == CUBLASLT_EPILOGUE_BGRADB;
  if ((gradient || has(s.epilogue, kBias)) && (s.vector == nullptr || s.vector_type != s.d.type)) {
    return "an epilogue without its vector, or with one of another type";
  }
  if (has(s.epilogue, kAux) &&
      (s.aux == nullptr || reinterpret_cast<std::uintptr_t>(s.aux) % 16 != 0 ||
       s.aux_stride % 8 != 0 || s.aux_stride < static_cast<std::int64_t>(s.m()))) {
    return "an epilogue whose aux is missing, misaligned or of a wrong leading dimension";
  }
  return "";
}

void multiply(const Said& s, const Operands& o, int parts) {
  const bool a_t = s.a_op == CUBLAS_OP_T;
  const bool b_t = s.b_op == CUBLAS_OP_T;
  const std::uint64_t part =
      (s.k() + static_cast<std::uint64_t>(parts) - 1) / static_cast<std::uint64_t>(parts);
  for (std::uint64_t j = 0; j < s.n(); ++j) {
    for (std::uint64_t i = 0; i < s.m(); ++i) {
      float whole = 0;
      for (std::uint64_t begin = 0; begin < s.k(); begin += part) {
        double sum = 0;
        for (std::uint64_t l = begin; l < std::min(s.k(), begin + part); ++l) {
          sum += element(s.a, o.a, a_t, i, l) * element(s.b, o.b, b_t, l, j);
        }
        whole += static_cast<float>(sum);
      }
      double value = static_cast<double>(o.alpha) * whole;
      if (o.beta != 0) value += static_cast<double>(o.beta) * element(s.c, o.c, false, i, j);
      const auto row = static_cast<std::int64_t>(i);
      const auto column = static_cast<std::int64_t>(j);
      if (has(s.epilogue, kBias)) value += value_at(s.vector, s.vector_type, row);
      const std::int64_t aux = row + column * s.aux_stride;
      if (has(s.epilogue, kGelu)) {
        if (has(s.epilogue, kAux)) store(s.aux, s.d.type, aux, value);
        value = gelu(value);
      }
      if (has(s.epilogue, kDgelu)) value *= gelu_slope(value_at(s.aux, s.d.type, aux));
      store(o.d, s.d.type, row + column * s.d.stride, value);
    }
  }
  const bool of_a = s.epilogue == CUBLASLT_EPILOGUE_BGRADA;
  if (!of_a && s.epilogue != CUBLASLT_EPILOGUE_BGRADB) return;
  for (std::uint64_t i = 0; i < (of_a ? s.m() : s.n()); ++i) {
    double sum = 0;
    for (std::uint64_t l = 0; l < s.k(); ++l) {
      sum += of_a ? element(s.a, o.a, a_t, i, l) : element(s.b, o.b, b_t, l, i);
    }
    store(s.vector, s.vector_type, static_cast<std::int64_t>(i), sum);
  }
}

}  // namespace fake_cublaslt
