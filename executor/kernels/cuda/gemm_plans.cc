#include "executor/kernels/cuda/gemm_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <utility>

#include "executor/kernels/cuda/gemm_descriptors.h"
#include "planner/spec/check.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kPlaceMultiple = 256;

std::int64_t size_of(DType dtype) { return bits_of(dtype) / 8; }

/// Bytes of the operands of a product, one after the other.
struct Places {
  explicit Places(const Product& p)
      : a(end(p.a_stride * (p.a_transposed ? p.m : p.k) * size_of(p.dtype))),
        b(end(p.b_stride * (p.b_transposed ? p.k : p.n) * size_of(p.dtype))),
        d(end(p.d_stride * p.n * size_of(p.result))),
        vector(end(p.vector_alignment == 0 ? 0 : std::max(p.m, p.n) * size_of(p.result))),
        aux(end(p.aux_stride * p.n * size_of(p.result))) {}

  static std::int64_t end(std::int64_t bytes) {
    return (bytes + kPlaceMultiple - 1) / kPlaceMultiple * kPlaceMultiple;
  }
  std::int64_t all() const { return a + b + d + vector + aux; }

  std::int64_t a;
  std::int64_t b;
  std::int64_t d;
  std::int64_t vector;
  std::int64_t aux;
};

cublasLtMatmulAlgo_t algorithm_of(const GemmChoice& choice) {
  return std::bit_cast<cublasLtMatmulAlgo_t>(choice.algorithm);
}
GemmChoice choice_of(const cublasLtMatmulHeuristicResult_t& result) {
  GemmChoice choice;
  choice.algorithm = std::bit_cast<decltype(choice.algorithm)>(result.algo);
  choice.workspace_bytes = static_cast<std::int64_t>(result.workspaceSize);
  return choice;
}

}  // namespace

class GemmPlans::Impl {
 public:
  struct Plan {
    GemmDescriptors descriptors;
    std::optional<GemmChoice> choice;  // none: cuBLASLt has no algorithm
  };

  Impl(const CublasLtLibrary& library, Options made)
      : options(std::move(made)),
        version(library.version()),
        check{&library.calls(), options.rank} {
    cublasLtHandle_t opened = nullptr;
    check(library.calls().create(&opened), "cublasLtCreate");
    handle = {opened, {library.calls().destroy}};
  }

  Plan& plan(const Product& product) {
    if (const auto found = plans.find(product); found != plans.end()) return found->second;
    Plan made = {GemmDescriptors(check, product), std::nullopt};
    const std::string text = to_string(product);
    if (const auto kept = choices.find(text); kept != choices.end()) {
      if (made.descriptors.takes(handle.get(), algorithm_of(kept->second),
                                 options.workspace_bytes)) {
        made.choice = kept->second;
      } else {
        choices.erase(kept);
      }
    }
    if (!made.choice) {
      const auto found = made.descriptors.candidates(handle.get(), options.workspace_bytes);
      if (!found.empty()) choices[text] = *(made.choice = choice_of(found.front()));
    }
    return plans.emplace(product, std::move(made)).first->second;
  }

  Options options;
  std::int64_t version;
  CublasLtChecked check;
  Owned<cublasLtHandle_t> handle;
  std::map<Product, Plan> plans;
  GemmChoices choices;
};

GemmPlans::GemmPlans(const CublasLtLibrary& library, Options options)
    : impl_(std::make_unique<Impl>(library, std::move(options))) {}
GemmPlans::~GemmPlans() = default;

void GemmPlans::take(GemmChoices choices) { impl_->choices.merge(std::move(choices)); }
const GemmChoices& GemmPlans::choices() const { return impl_->choices; }
GemmMachine GemmPlans::machine() const { return {impl_->options.gpu, impl_->version}; }
const GemmPlans::Options& GemmPlans::options() const { return impl_->options; }

bool GemmPlans::supports(const Product& product) { return impl_->plan(product).choice.has_value(); }

void GemmPlans::run(const ProductCall& call, std::byte* workspace, cudaStream_t stream) {
  const Impl::Plan& plan = impl_->plan(call.product);
  if (!plan.choice) {
    throw CublasLtError(fmt::format("rank {}: cublasLtMatmulAlgoGetHeuristic: no algorithm for {}",
                                    impl_->options.rank, to_string(call.product)));
  }
  impl_->check(plan.descriptors.multiply(impl_->handle.get(), algorithm_of(*plan.choice), call,
                                         workspace, impl_->options.workspace_bytes, stream),
               "cublasLtMatmul");
}

std::int64_t GemmPlans::operand_bytes(const Product& product) { return Places(product).all(); }

bool GemmPlans::tune(const Product& product, std::span<std::byte> scratch, std::byte* workspace,
                     cudaStream_t stream, GemmClock& clock) {
  Impl::Plan& plan = impl_->plan(product);
  const Places bytes(product);
  if (!plan.choice || bytes.all() > std::ssize(scratch)) return false;
  if (plan.choice->microseconds > 0) return true;
  ProductCall call;
  call.product = product;
  std::byte* at = scratch.data();
  const auto place = [&](std::int64_t size, DType dtype) {
    std::byte* const begin = at;
    clock.fill({begin, static_cast<std::size_t>(size)}, dtype);
    at += size;
    return begin;
  };
  call.a = place(bytes.a, product.dtype);
  call.b = place(bytes.b, product.dtype);
  call.d = place(bytes.d, product.result);
  call.vector = bytes.vector == 0 ? nullptr : place(bytes.vector, product.result);
  call.aux = bytes.aux == 0 ? nullptr : place(bytes.aux, product.result);

  std::optional<GemmChoice> best;
  for (const auto& each :
       plan.descriptors.candidates(impl_->handle.get(), impl_->options.workspace_bytes)) {
    GemmChoice candidate = choice_of(each);
    const auto issue = [&] {
      return plan.descriptors.multiply(impl_->handle.get(), each.algo, call, workspace,
                                       impl_->options.workspace_bytes, stream);
    };
    // What the heuristics offer may still be refused.
    const cublasStatus_t first = issue();
    if (first == CUBLAS_STATUS_NOT_SUPPORTED) continue;
    impl_->check(first, "cublasLtMatmul");
    candidate.microseconds = 1e6 * clock.seconds([&] { impl_->check(issue(), "cublasLtMatmul"); });
    if (!best || candidate.microseconds < best->microseconds) best = candidate;
  }
  if (!best) return false;
  impl_->choices[to_string(product)] = *(plan.choice = best);
  return true;
}

}  // namespace shardwise::exec
