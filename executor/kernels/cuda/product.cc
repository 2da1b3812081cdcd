#include "executor/kernels/cuda/product.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kAuxMultiple = 8;  // cublasLt.h, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD

int alignment_of(const std::byte* at) {
  if (at == nullptr) return 0;
  constexpr std::uintptr_t kMost = 16;
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  return static_cast<int>(std::min(kMost, address & (~address + 1)));
}

/// With the alignments of its operands.
ProductCall with_alignments(ProductCall call) {
  Product& p = call.product;
  p.a_alignment = alignment_of(call.a);
  p.b_alignment = alignment_of(call.b);
  p.d_alignment = alignment_of(call.d);
  p.vector_alignment = alignment_of(call.vector);
  p.aux_alignment = alignment_of(call.aux);
  return call;
}

Product of_types(DType dtype, DType result, bool tf32) {
  SHARDWISE_CHECK(dtype == DType::fp32 || dtype == DType::bf16, "fp32 or bf16");
  SHARDWISE_CHECK(result == DType::fp32 || result == dtype, "fp32, or bf16 of bf16");
  Product product;
  product.dtype = dtype;
  product.result = result;
  product.tf32 = tf32 && dtype == DType::fp32;
  return product;
}

const char* name_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return "none";
    case Epilogue::bias:
      return "bias";
    case Epilogue::gelu_aux:
      return "gelu_aux";
    case Epilogue::gelu_aux_bias:
      return "gelu_aux_bias";
    case Epilogue::dgelu:
      return "dgelu";
    case Epilogue::bias_gradient_a:
      return "bias_gradient_a";
    case Epilogue::bias_gradient_b:
      return "bias_gradient_b";
  }
  return "";
}

const char* name_of(const Product& p) {
  if (p.dtype == DType::fp32) return p.tf32 ? "tf32" : "fp32";
  return p.result == DType::fp32 ? "bf16_fp32" : "bf16";
}

}  // namespace

std::optional<std::pair<ProductCall, ProductCall>> cut_to_vectors(const ProductCall& call) {
  constexpr std::int64_t kVector = 8;   // 16 bytes of bf16
  constexpr std::int64_t kLeast = 256;  // below, a second launch costs more than it gains
  const Product& p = call.product;
  const bool plain = p.epilogue == Epilogue::none || p.epilogue == Epilogue::bias;
  if (p.dtype != DType::bf16 || !plain) return std::nullopt;
  const auto behind = [](auto* at, std::int64_t elements, DType dtype) {
    return at == nullptr ? at : at + elements * bytes_of(dtype);
  };
  std::pair<ProductCall, ProductCall> parts{call, call};
  ProductCall& rest = parts.second;
  if (p.m >= kLeast && p.m % kVector != 0) {
    const std::int64_t whole = p.m / kVector * kVector;
    parts.first.product.m = whole;
    rest.product.m = p.m - whole;
    rest.a = behind(call.a, p.a_transposed ? whole * p.a_stride : whole, p.dtype);
    rest.d = behind(call.d, whole, p.result);
    rest.vector = behind(call.vector, whole, p.result);
  } else if (p.n >= kLeast && p.n % kVector != 0 && p.b_transposed) {
    const std::int64_t whole = p.n / kVector * kVector;
    parts.first.product.n = whole;
    rest.product.n = p.n - whole;
    rest.b = behind(call.b, whole, p.dtype);
    rest.d = behind(call.d, whole * p.d_stride, p.result);
  } else {
    return std::nullopt;
  }
  return parts;  // alignments stay: all moved by whole vectors
}

std::string to_string(const Product& p) {
  return fmt::format("{} {}{} {}x{}x{} strides {},{},{},{} {} {} aligned {},{},{},{},{}",
                     name_of(p), p.a_transposed ? 't' : 'n', p.b_transposed ? 't' : 'n', p.m, p.n,
                     p.k, p.a_stride, p.b_stride, p.d_stride, p.aux_stride,
                     p.adds ? "adds" : "sets", name_of(p.epilogue), p.a_alignment, p.b_alignment,
                     p.d_alignment, p.vector_alignment, p.aux_alignment);
}

bool takes_gelu(const LinearWork& w) {
  return w.gelu == Gelu::tanh && !w.adds && w.shape.out % kAuxMultiple == 0;
}

ProductCall product_of(const LinearWork& w, bool fused, bool tf32) {
  const LinearShape& s = w.shape;
  SHARDWISE_CHECK(!fused || (takes_gelu(w) && s.y_stride == s.out), "GELU by epilogue");
  ProductCall call;
  Product& p = call.product = of_types(w.dtype, w.dtype, tf32);
  p.m = s.out;
  p.n = s.rows;
  p.k = s.in;
  p.a_transposed = !s.transposed;
  p.a_stride = s.transposed ? s.out : s.in;
  p.b_stride = s.x_stride;
  p.d_stride = s.y_stride;
  p.adds = w.adds;
  call.a = w.weight;
  call.b = w.x;
  call.d = w.y;
  call.vector = w.bias;
  p.epilogue = w.bias != nullptr ? Epilogue::bias : Epilogue::none;
  if (fused) {
    p.epilogue = w.bias != nullptr ? Epilogue::gelu_aux_bias : Epilogue::gelu_aux;
    p.aux_stride = s.out;
    call.d = w.activated;
    call.aux = w.y;
  }
  return with_alignments(call);
}

bool takes_gelu(const LinearBackwardInputWork& w) {
  return w.gelu == Gelu::tanh && w.shape.in % kAuxMultiple == 0;
}

ProductCall product_of(const LinearBackwardInputWork& w, bool fused, bool tf32) {
  const LinearShape& s = w.shape;
  SHARDWISE_CHECK(!fused || (takes_gelu(w) && s.x_stride == s.in), "GELU by epilogue");
  ProductCall call;
  Product& p = call.product = of_types(w.dtype, w.dtype, tf32);
  p.m = s.in;
  p.n = s.rows;
  p.k = s.out;
  p.a_transposed = s.transposed;
  p.a_stride = s.transposed ? s.out : s.in;
  p.b_stride = s.y_stride;
  p.d_stride = s.x_stride;
  p.adds = w.adds;
  call.a = w.weight;
  call.b = w.d_y;
  call.d = w.d_x;
  if (fused) {
    p.epilogue = Epilogue::dgelu;
    p.aux_stride = s.in;
    call.aux = w.before;
  }
  return with_alignments(call);
}

ProductCall product_of(const LinearBackwardWeightWork& w, std::byte* bias_sums, bool tf32) {
  const LinearShape& s = w.shape;
  ProductCall call;
  Product& p = call.product = of_types(w.dtype, w.gradient, tf32);
  p.k = s.rows;
  p.b_transposed = true;
  p.adds = true;
  call.d = w.d_weight;
  call.vector = bias_sums;
  // The weight's rows are columns of d: a has what they are made of.
  if (s.transposed) {
    p.m = s.out;
    p.n = s.in;
    p.a_stride = s.y_stride;
    p.b_stride = s.x_stride;
    call.a = w.d_y;
    call.b = w.x;
  } else {
    p.m = s.in;
    p.n = s.out;
    p.a_stride = s.x_stride;
    p.b_stride = s.y_stride;
    call.a = w.x;
    call.b = w.d_y;
  }
  p.d_stride = p.m;
  if (bias_sums != nullptr) {
    p.epilogue = s.transposed ? Epilogue::bias_gradient_a : Epilogue::bias_gradient_b;
  }
  return with_alignments(call);
}

}  // namespace shardwise::exec
