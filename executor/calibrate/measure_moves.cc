#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "executor/calibrate/filled.h"
#include "executor/calibrate/measure.h"
#include "executor/kernels/attention/rope.h"
#include "executor/kernels/embedding.h"
#include "executor/kernels/gelu.h"
#include "executor/kernels/norm.h"
#include "executor/kernels/products/cross_entropy.h"
#include "executor/kernels/swiglu.h"
#include "executor/kernels/tensor_view.h"
#include "executor/optimizer/adamw.h"
#include "executor/optimizer/exact_sum.h"
#include "planner/cost/kernels/traffic.h"
#include "planner/spec/plan/names.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kHeadDim = 64;
constexpr std::int64_t kVocabulary = 8192;

/// Elements [rows, width] of what is timed: of caches and beyond them.
struct Extent {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t elements() const { return rows * width; }
};
constexpr Extent kExtents[] = {{128, 256}, {512, 256}, {512, 768}, {1024, 2048}};

template <class E>
void put_back(const std::vector<E>& given, std::vector<E>& turned) {
  std::memcpy(turned.data(), given.data(), given.size() * sizeof(E));
}

/// Kernels of weights and activations in E, with gradients of weights in fp32.
template <class E>
class MoveTimer {
 public:
  MoveTimer(Stopwatch& watch, Workers& workers, Measurements& to)
      : watch_(watch), workers_(workers), to_(to) {
    job_.loss = LossKernel::chunked;
  }

  void norms(const Extent& e) {
    std::vector<E> y = filled<E>(e.elements());
    std::vector<E> d_x = filled<E>(e.elements());
    const std::vector<E> x = filled<E>(e.elements());
    const std::vector<E>& d_y = x;
    const std::vector<E> weight = filled<E>(e.width);
    std::vector<float> d_weight(weight.size());
    std::vector<float> d_bias(weight.size());
    std::vector<float> statistics(static_cast<std::size_t>(2 * e.rows));
    const NormShape s = {e.rows, 1, e.width, e.width, e.width, 1e-5F};
    both(
        norm(true), e.elements(),
        [&] {
          rms_norm_forward<E>(s, x.data(), weight.data(), y.data(), statistics.data(), workers_);
        },
        [&] {
          rms_norm_backward<E, float>(s, x.data(), weight.data(), statistics.data(), d_y.data(),
                                      d_x.data(), true, d_weight.data(), workers_);
        });
    both(
        norm(false), e.elements(),
        [&] {
          layer_norm_forward<E>(s, x.data(), weight.data(), weight.data(), y.data(),
                                statistics.data(), workers_);
        },
        [&] {
          layer_norm_backward<E, float>(s, x.data(), weight.data(), statistics.data(), d_y.data(),
                                        d_x.data(), true, d_weight.data(), d_bias.data(), workers_);
        });
  }

  void activations(const Extent& e) {
    const std::vector<E> x = filled<E>(2 * e.elements());
    const std::vector<E> d_y = filled<E>(e.elements());
    std::vector<E> y(d_y.size());
    both(
        activation(false), e.elements(),
        [&] { gelu_forward<E>(Gelu::tanh, e.elements(), x.data(), y.data(), workers_); },
        [&] {
          gelu_backward<E>(Gelu::tanh, e.elements(), x.data(), d_y.data(), y.data(), workers_);
        });
    note(activation(true), Pass::forward, e.elements(), watch_.computing([&] {
      swiglu_forward<E>(e.rows, e.width, x.data(), y.data(), workers_);
    }));
    note(activation(true), Pass::backward, e.elements(), renewed(x, [&](std::vector<E>& turned) {
           swiglu_backward<E>(e.rows, e.width, turned.data(), d_y.data(), workers_);
         }));
  }

  void rope(const Extent& e) {
    std::vector<E> x = filled<E>(e.elements());
    const std::vector<float> cosines(static_cast<std::size_t>(e.rows * kHeadDim / 2), 1.0F);
    const std::vector<float> sines(cosines.size(), 0.0F);
    const RopeTables tables = {cosines.data(), sines.data()};
    const RopeShape s = {1, e.rows, e.width / kHeadDim, kHeadDim, e.width};
    OperationSpec op;
    op.kind = OpKind::rope;
    both(
        op, e.elements(), [&] { rope_forward<E>(s, tables, x.data(), workers_); },
        [&] { rope_backward<E>(s, tables, x.data(), workers_); });
  }

  void embedding(const Extent& e) {
    const std::vector<E> table = filled<E>(kVocabulary * e.width);
    std::vector<float> d_table(table.size());
    std::vector<E> y(static_cast<std::size_t>(e.elements()));
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(e.rows));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<std::int64_t>(i * 2654435761U % kVocabulary);
    }
    const EmbeddingShape s = {1, e.rows, e.width};
    OperationSpec op;
    op.kind = OpKind::embedding;
    both(
        op, e.elements(),
        [&] { embedding_forward<E>(s, tokens.data(), table.data(), nullptr, y.data(), workers_); },
        [&] {
          embedding_backward<E, float>(s, tokens.data(), y.data(), d_table.data(), nullptr,
                                       workers_);
        });
  }

  void loss() {
    constexpr std::int64_t kRows = 64;
    const std::vector<E> logits = filled<E>(kRows * kVocabulary);
    const std::vector<std::int64_t> targets(static_cast<std::size_t>(kRows), 7);
    std::vector<float> losses(static_cast<std::size_t>(kRows));
    OperationSpec op;
    op.kind = OpKind::loss;
    note(op, Pass::forward, kRows * kVocabulary, renewed(logits, [&](std::vector<E>& turned) {
           loss_rows<E>(kRows, kVocabulary, targets.data(), 1e-3F, turned.data(), losses.data(),
                        workers_);
         }));
  }

  /// As RankState has it: the squares, then the update, which bf16 weights are made from.
  void optimizer(std::int64_t elements) {
    const auto all = static_cast<double>(elements);
    const std::vector<float> gradients = filled<float>(elements);
    ExactSquares squares;
    add(MoveKind::gradient_norm, Pass::forward, shared_norm_traffic(Kernels::planned) * all,
        watch_.computing([&] { squares.add(gradients); }));
    std::vector<float> weights = filled<float>(elements);
    std::vector<float> first(weights.size(), 0.01F);
    std::vector<float> second(weights.size(), 0.01F);
    std::vector<E> narrow(kNarrow ? weights.size() : 0);
    const AdamStep step = adam_step({}, 10);
    const double seconds = watch_.computing([&] {
      adamw(step, 0.999F, gradients, weights, first, second);
      if (kNarrow) cast(numbers_of(narrow), weights);
    });
    const double written = kNarrow ? sizeof(E) : 0;
    add(MoveKind::optimizer, Pass::forward,
        (optimizer_traffic(job_, Kernels::planned) + written) * all, seconds);
  }

  void copies(std::int64_t elements) {
    const std::vector<float> from = filled<float>(elements);
    std::vector<float> to(from.size());
    const double seconds = watch_.computing([&] { put_back(from, to); });
    to_.copies.push_back({Bytes(8 * elements), Seconds(seconds)});
  }

  /// Of fp32 to E.
  void casts(std::int64_t elements) {
    const std::vector<float> from = filled<float>(elements);
    std::vector<E> to(from.size());
    const double bytes = static_cast<double>(elements) * (sizeof(float) + sizeof(E));
    add(MoveKind::cast, Pass::forward, bytes,
        watch_.computing([&] { cast(numbers_of(to), from); }));
  }

 private:
  static constexpr bool kNarrow = sizeof(E) < sizeof(float);
  static TensorView numbers_of(std::vector<E>& values) {
    return {reinterpret_cast<std::byte*>(values.data()), values.size(), kTypeOf<E>};
  }
  static OperationSpec norm(bool rms) {
    OperationSpec op;
    op.kind = OpKind::norm;
    op.rms = rms;
    return op;
  }
  static OperationSpec activation(bool gated) {
    OperationSpec op;
    op.kind = OpKind::activation;
    op.gated = gated;
    return op;
  }

  void add(MoveKind kind, Pass pass, double bytes, double seconds) {
    const MovePoint point = {Bytes(static_cast<std::int64_t>(bytes)), Seconds(seconds)};
    to_.kinds.push_back({kind, pass, point, kTypeOf<E>});
  }
  /// With the bytes that the planner counts.
  void note(const OperationSpec& op, Pass pass, std::int64_t elements, double seconds) {
    const Traffic traffic = traffic_of(op, job_, Kernels::planned, {}, sizeof(E));
    const double each = pass == Pass::forward ? traffic.forward : traffic.backward;
    add(move_kind(op), pass, each * static_cast<double>(elements), seconds);
  }
  template <class Forward, class Backward>
  void both(const OperationSpec& op, std::int64_t elements, Forward forward, Backward backward) {
    note(op, Pass::forward, elements, watch_.computing(forward));
    note(op, Pass::backward, elements, watch_.computing(backward));
  }

  /// Of a call that turns `given` into something else: it is put back before every call, as numbers
  /// that are turned again and again become too small for normal arithmetic.
  template <class Call>
  double renewed(const std::vector<E>& given, Call call) {
    std::vector<E> turned = given;
    const double copying = watch_.computing([&] { put_back(given, turned); });
    const double all = watch_.computing([&] {
      put_back(given, turned);
      call(turned);
    });
    return std::max(all - copying, all / 2);
  }

  Stopwatch& watch_;
  Workers& workers_;
  Measurements& to_;
  JobSpec job_;
};

}  // namespace

template <class E>
void measure_moves(Stopwatch& watch, Workers& workers, const Told& told, Measurements& to) {
  MoveTimer<E> timer(watch, workers, to);
  const std::string in = " in " + std::string(name_of(kTypeOf<E>));
  told("copies" + in, 0);
  if (kTypeOf<E> == DType::fp32) {
    for (const std::int64_t elements :
         {8'192, 16'384, 32'768, 65'536, 131'072, 262'144, 524'288, 1'048'576, 2'097'152}) {
      timer.copies(elements);
    }
  } else {
    for (const std::int64_t elements : {65'536, 524'288, 2'097'152}) timer.casts(elements);
  }
  told("the loss" + in, 0.15);
  timer.loss();
  told("the optimizer" + in, 0.2);
  for (const std::int64_t elements : {65'536, 524'288, 2'097'152}) timer.optimizer(elements);
  double done = 0.3;
  for (const Extent& extent : kExtents) {
    const std::string of =
        " of " + std::to_string(extent.rows) + " x " + std::to_string(extent.width) + in;
    told("norms" + of, done);
    timer.norms(extent);
    told("activations" + of, done + 0.06);
    timer.activations(extent);
    told("rotary embeddings" + of, done + 0.12);
    timer.rope(extent);
    timer.embedding(extent);
    done += 0.17;
  }
}

template void measure_moves<float>(Stopwatch&, Workers&, const Told&, Measurements&);
template void measure_moves<Bf16>(Stopwatch&, Workers&, const Told&, Measurements&);

}  // namespace shardwise::exec
