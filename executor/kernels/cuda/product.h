#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "executor/kernels/compute/compute.h"
#include "planner/spec/machine/dtype.h"

namespace shardwise::exec {

/// Change that a product makes to its result before it is stored.
enum class Epilogue : std::uint8_t {
  none,
  bias,             // + vector [m] for every column
  gelu_aux,         // aux = the result, d = gelu(it), by tanh
  gelu_aux_bias,    // both, the bias first
  dgelu,            // times gelu'(aux), by tanh
  bias_gradient_a,  // vector [m] = the sum over k of a
  bias_gradient_b,  // vector [n] = the sum over k of b
};

/// A product as cuBLASLt knows it, of matrices whose columns are dense: d [m, n] = op(a) op(b),
/// with op(a) [m, k], op(b) [k, n], added to d when `adds`. It sums in fp32. A row-major tensor
/// [rows, width] is such a matrix [width, rows]; its stride from row to row is the matrix's from
/// column to column.
struct Product {
  DType dtype = DType::fp32;   // of a and b: fp32 or bf16
  DType result = DType::fp32;  // of d, aux and vector
  bool tf32 = false;           // fp32 operands may be rounded to TF32
  bool a_transposed = false;
  bool b_transposed = false;
  bool adds = false;
  Epilogue epilogue = Epilogue::none;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t d_stride = 0;
  std::int64_t aux_stride = 0;  // 0: no aux
  // Largest divisor of the addresses, 16 at most; 0: no such operand.
  int a_alignment = 0;
  int b_alignment = 0;
  int d_alignment = 0;
  int vector_alignment = 0;
  int aux_alignment = 0;

  auto operator<=>(const Product&) const = default;
};

/// Key under which plans are kept: equal texts for equal products only.
std::string to_string(const Product& product);

/// A product of tensors.
struct ProductCall {
  Product product;
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  std::byte* d = nullptr;
  const std::byte* vector = nullptr;  // written where it is a gradient
  const std::byte* aux = nullptr;     // written by gelu_aux
};

/// The product as two, of which the first has all but the last few of its rows m or columns n.
/// cuBLASLt multiplies a vocabulary of 50,257 six times slower than one of 50,256 (H100, 13.1): its
/// fast kernels of 16-bit types want whole 16 bytes of what lies dense in d, or in a transposed b.
/// None where this is so, or where the product is too small to gain.
std::optional<std::pair<ProductCall, ProductCall>> cut_to_vectors(const ProductCall& call);

/// y = x W^T: of `work` all but the GELU; with `fused` that too. \pre fused: takes_gelu(work)
ProductCall product_of(const LinearWork& work, bool fused, bool tf32);
/// Whether an epilogue computes the GELU and keeps its input: tanh alone, and cuBLASLt wants rows
/// of whole 16 bytes.
bool takes_gelu(const LinearWork& work);

/// d_x = d_y W. `fused` as above.
ProductCall product_of(const LinearBackwardInputWork& work, bool fused, bool tf32);
bool takes_gelu(const LinearBackwardInputWork& work);

/// d_weight += d_y^T x. \param bias_sums  [out] in the type of gradients, the only one that
/// cuBLASLt takes; receives the sums of d_y's rows; null for none \pre work.d_weight
ProductCall product_of(const LinearBackwardWeightWork& work, std::byte* bias_sums, bool tf32);

}  // namespace shardwise::exec
