#include "executor/kernels/cuda/gemm_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <utility>

#include "executor/kernels/cuda/gemm_descriptors.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kPlaceMultiple = 256;

/// Bytes of a product's operands, from the first element of each to the last.
struct OperandBytes {
  explicit OperandBytes(const Product& p)
      : a(columns(p.a_transposed ? p.m : p.k, p.a_transposed ? p.k : p.m, p.a_stride, p.dtype)),
        b(columns(p.b_transposed ? p.k : p.n, p.b_transposed ? p.n : p.k, p.b_stride, p.dtype)),
        d(columns(p.n, p.m, p.d_stride, p.result)) {
    if (p.vector_alignment != 0) {
      vector = columns(1, p.epilogue == Epilogue::bias_gradient_b ? p.n : p.m, 0, p.result);
    }
    if (p.aux_stride != 0) aux = columns(p.n, p.m, p.aux_stride, p.result);
  }

  static std::int64_t columns(std::int64_t count, std::int64_t rows, std::int64_t stride,
                              DType dtype) {
    return ((count - 1) * stride + rows) * bits_of(dtype) / 8;
  }

  std::int64_t a;
  std::int64_t b;
  std::int64_t d;
  std::int64_t vector = 0;
  std::int64_t aux = 0;
};

/// The next multiple of kPlaceMultiple.
std::int64_t end_of(std::int64_t bytes) {
  return (bytes + kPlaceMultiple - 1) / kPlaceMultiple * kPlaceMultiple;
}

/// Random numbers for all operands.
void fill_operands(const ProductCall& call, KernelClock& clock) {
  const Product& p = call.product;
  const OperandBytes bytes(p);
  const auto fill_one = [&](const std::byte* at, std::int64_t size, DType dtype) {
    // What products only read is written here alone, before it holds anything.
    if (size > 0) clock.fill({const_cast<std::byte*>(at), static_cast<std::size_t>(size)}, dtype);
  };
  fill_one(call.a, bytes.a, p.dtype);
  fill_one(call.b, bytes.b, p.dtype);
  fill_one(call.d, bytes.d, p.result);
  fill_one(call.vector, bytes.vector, p.result);
  fill_one(call.aux, bytes.aux, p.result);
}

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
    std::optional<GemmDescriptors> descriptors;  // none: cuBLASLt has none of such a product
    std::optional<GemmChoice> choice;            // none: cuBLASLt has no algorithm
    std::string problem;                         // the last call that failed for it
  };

  Impl(const CublasLtLibrary& library, Options made)
      : options(made), check{&library.calls(), options.rank} {
    cublasLtHandle_t opened = nullptr;
    check(library.calls().create(&opened), "cublasLtCreate");
    handle = {opened, {library.calls().destroy}};
  }

  Plan& plan(const Product& product) {
    if (const auto found = plans.find(product); found != plans.end()) return found->second;
    Plan made;
    try {
      choose_first(product, made);
    } catch (const CublasLtError& error) {
      if (product.epilogue == Epilogue::none) throw;
      made.problem = error.what();
    }
    return plans.emplace(product, std::move(made)).first->second;
  }

  /// Takes what was kept of an earlier run, else the first that the heuristics offer.
  void choose_first(const Product& product, Plan& made) {
    made.descriptors.emplace(check, product);
    const std::string text = to_string(product);
    if (const auto kept = choices.find(text); kept != choices.end()) {
      if (made.descriptors->takes(handle.get(), algorithm_of(kept->second),
                                  options.workspace_bytes)) {
        made.choice = kept->second;
      } else {
        choices.erase(kept);
      }
    }
    if (made.choice) return;
    const auto found = made.descriptors->candidates(handle.get(), options.workspace_bytes);
    if (!found.empty()) choices[text] = *(made.choice = choice_of(found.front()));
  }

  Options options;
  CublasLtChecked check;
  Owned<cublasLtHandle_t> handle;
  std::map<Product, Plan> plans;
  GemmChoices choices;
};

GemmPlans::GemmPlans(const CublasLtLibrary& library, Options options)
    : impl_(std::make_unique<Impl>(library, options)) {}
GemmPlans::~GemmPlans() = default;

void GemmPlans::take(GemmChoices choices) { impl_->choices.merge(std::move(choices)); }
const GemmChoices& GemmPlans::choices() const { return impl_->choices; }
const GemmPlans::Options& GemmPlans::options() const { return impl_->options; }

bool GemmPlans::supports(const Product& product) {
  if (const auto parts = cut_to_vectors({.product = product})) {
    return supports(parts->first.product) && supports(parts->second.product);
  }
  return impl_->plan(product).choice.has_value();
}

void GemmPlans::run(const ProductCall& call, std::byte* workspace, cudaStream_t stream) {
  if (const auto parts = cut_to_vectors(call)) {
    run(parts->first, workspace, stream);
    return run(parts->second, workspace, stream);
  }
  const Impl::Plan& plan = impl_->plan(call.product);
  if (!plan.choice) {
    if (!plan.problem.empty()) throw CublasLtError(plan.problem);
    throw CublasLtError(fmt::format("rank {}: cublasLtMatmulAlgoGetHeuristic: no algorithm for {}",
                                    impl_->options.rank, to_string(call.product)));
  }
  impl_->check(plan.descriptors->multiply(impl_->handle.get(), algorithm_of(*plan.choice), call,
                                          workspace, impl_->options.workspace_bytes, stream),
               "cublasLtMatmul");
}

std::int64_t GemmPlans::operand_bytes(const Product& product) {
  const OperandBytes bytes(product);
  return end_of(bytes.a) + end_of(bytes.b) + end_of(bytes.d) + end_of(bytes.vector) +
         end_of(bytes.aux);
}

ProductCall GemmPlans::laid_out(const Product& product, std::byte* memory) {
  const OperandBytes bytes(product);
  ProductCall call;
  call.product = product;
  call.a = memory;
  call.b = call.a + end_of(bytes.a);
  call.d = memory + end_of(bytes.a) + end_of(bytes.b);
  const std::byte* const vector = call.d + end_of(bytes.d);
  if (bytes.vector > 0) call.vector = vector;
  if (bytes.aux > 0) call.aux = vector + end_of(bytes.vector);
  return call;
}

void GemmPlans::keep_apart(const Product& product, double microseconds) {
  Impl::Plan& plan = impl_->plan(product);
  SHARDWISE_CHECK(plan.choice.has_value(), "a product that was timed");
  plan.choice->apart_microseconds = microseconds;
  impl_->choices[to_string(product)] = *plan.choice;
}

double GemmPlans::apart_microseconds(const Product& product) {
  const Impl::Plan& plan = impl_->plan(product);
  return plan.choice ? plan.choice->apart_microseconds : 0;
}

bool GemmPlans::faster_apart(const Product& product) {
  const Impl::Plan& plan = impl_->plan(product);
  return plan.choice && plan.choice->apart_microseconds > 0 &&
         plan.choice->apart_microseconds < plan.choice->microseconds;
}

void GemmPlans::tune(const ProductCall& call, KernelTuning& tuning) {
  if (const auto parts = cut_to_vectors(call)) {
    tune(parts->first, tuning);
    return tune(parts->second, tuning);
  }
  Impl::Plan& plan = impl_->plan(call.product);
  const std::string text = to_string(call.product);
  const auto drop = [&](const std::string& why) {
    plan.problem = why;
    tuning.dropped.insert(fmt::format("{}: {}", text, why));
  };
  if (!plan.choice) {
    if (!plan.problem.empty()) drop(plan.problem);
    return;
  }
  if (plan.choice->microseconds > 0) {
    if (!tuning.timed.contains(text)) tuning.kept.insert(text);
    return;
  }
  SHARDWISE_CHECK(std::ssize(tuning.workspace) >= impl_->options.workspace_bytes,
                  "workspace_bytes");
  fill_operands(call, tuning.clock);
  std::optional<GemmChoice> best;
  for (const auto& each :
       plan.descriptors->candidates(impl_->handle.get(), impl_->options.workspace_bytes)) {
    GemmChoice candidate = choice_of(each);
    const auto issue = [&] {
      impl_->check(
          plan.descriptors->multiply(impl_->handle.get(), each.algo, call, tuning.workspace.data(),
                                     impl_->options.workspace_bytes, tuning.clock.stream()),
          "cublasLtMatmul");
    };
    try {
      issue();  // what the heuristics offer may still be refused
      candidate.microseconds = 1e6 * tuning.clock.seconds(issue);
    } catch (const CublasLtError& error) {
      drop(error.what());
      continue;
    }
    if (!best || candidate.microseconds < best->microseconds) best = candidate;
  }
  plan.choice = best;
  if (!best) {
    impl_->choices.erase(text);
    return;
  }
  impl_->choices[text] = *best;
  tuning.timed.insert(text);
  tuning.progress();
}

}  // namespace shardwise::exec
