#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "executor/calibrate/filled.h"
#include "executor/calibrate/measure.h"
#include "executor/kernels/attention/attention.h"
#include "executor/kernels/products/linear.h"
#include "planner/spec/plan/names.h"

namespace shardwise::exec {
namespace {

// A training step reads each weight once a pass: it comes from memory, not from a cache. Operands
// are taken in turn from a pool larger than the caches of a rank.
constexpr std::int64_t kPool = std::int64_t{48} << 20;  // bytes
constexpr double kMostFlops = 2.6e9;                    // of a product that is timed

struct Shape {
  std::int64_t tokens = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
};

/// Tokens of a micro-batch times widths of small models, and heads.
std::vector<Shape> shapes() {
  std::vector<Shape> made;
  for (const std::int64_t tokens : {64, 128, 256, 512, 1024}) {
    for (const std::int64_t in : {128, 256, 768, 2048}) {
      for (const std::int64_t out : {128, 256, 768, 2048, 8192}) {
        const double flops = 2.0 * static_cast<double>(tokens * in * out);
        // Half of those, evenly spread, are enough for a curve.
        const bool kept = (tokens / 64 + in / 128 + out / 128) % 2 == 0 || in == out;
        if (kept && flops <= kMostFlops && flops >= 4e6) made.push_back({tokens, in, out});
      }
    }
  }
  return made;
}

/// Places in the pool, one after the other.
template <class E>
class PoolPlaces {
 public:
  PoolPlaces(std::vector<E>& pool, std::int64_t size) : pool_(pool), size_(size) {}
  E* next() {
    if (at_ + size_ > static_cast<std::int64_t>(pool_.size())) at_ = 0;
    E* const place = pool_.data() + at_;
    at_ += size_;
    return place;
  }

 private:
  std::vector<E>& pool_;
  std::int64_t size_;
  std::int64_t at_ = 0;
};

/// Attention whose gradients take the place of queries, keys and values.
template <class E>
void time_attention(const AttentionShape& s, Stopwatch& watch, Workers& workers, Measurements& to) {
  std::vector<E> qkv = filled<E>(s.batch * s.sequence * s.qkv_width());
  std::vector<E> out(static_cast<std::size_t>(s.batch * s.sequence * s.heads * s.head_dim));
  std::vector<float> log_sums(static_cast<std::size_t>(s.batch * s.heads * s.sequence));
  std::vector<float> workspace(static_cast<std::size_t>(attention_backward_bytes(s)) /
                               sizeof(float));
  const std::vector<E> d_out = filled<E>(std::ssize(out));
  AttentionPoint point;
  point.work = {s.batch,    s.heads,    s.kv_heads, s.sequence, s.sequence,
                s.head_dim, s.head_dim, 0,          true};
  point.time = Seconds(watch.computing(
      [&] { attention_forward<E>(s, qkv.data(), out.data(), log_sums.data(), workers); }));
  to.attention.push_back({kTypeOf<E>, point});
  const std::vector<E> kept = qkv;
  point.pass = Pass::backward;
  // What gradients took the place of is put back, for other numbers could overflow.
  const auto put_back = [&] { std::memcpy(qkv.data(), kept.data(), kept.size() * sizeof(E)); };
  const double copying = watch.computing(put_back);
  const double both = watch.computing([&] {
    put_back();
    attention_backward<E>(s, qkv.data(), out.data(), log_sums.data(), d_out.data(),
                          workspace.data(), workers);
  });
  point.time = Seconds(std::max(both - copying, both / 2));
  to.attention.push_back({kTypeOf<E>, point});
}

}  // namespace

template <class E>
void measure_products(Stopwatch& watch, Workers& workers, const Told& told, Measurements& to) {
  const std::vector<Shape> all = shapes();
  std::vector<E> pool = filled<E>(kPool / static_cast<std::int64_t>(sizeof(E)));
  std::vector<float> sums(static_cast<std::size_t>(kPool) / sizeof(float));
  // In bf16 half of the shapes, each with its weight gradient.
  const std::size_t step = kTypeOf<E> == DType::fp32 ? 1 : 2;
  for (std::size_t i = 0; i < all.size(); i += step) {
    const Shape& s = all[i];
    told(fmt::format("product {} x {} x {} in {}", s.tokens, s.out, s.in, name_of(kTypeOf<E>)),
         static_cast<double>(i) / static_cast<double>(all.size()));
    const std::vector<E> x = filled<E>(s.tokens * s.in);
    std::vector<E> y = filled<E>(s.tokens * s.out);
    PoolPlaces<E> weights(pool, s.in * s.out);
    const LinearShape linear = {s.tokens, s.in, s.out, s.in, s.out, false};
    GemmPoint point;
    point.dtype = kTypeOf<E>;
    point.m = s.tokens;
    point.n = s.out;
    point.k = s.in;
    point.time = Seconds(watch.computing([&] {
      linear_forward<E>(linear, x.data(), weights.next(), nullptr, y.data(), false, workers);
    }));
    to.products.push_back(point);
    if (i % 2 != 0) continue;
    PoolPlaces<float> gradients(sums, s.in * s.out);
    point.output = GemmOutput::fp32_sum;
    point.m = s.out;
    point.n = s.in;
    point.k = s.tokens;
    point.time = Seconds(watch.computing([&] {
      linear_backward_weight<E, float>(linear, x.data(), y.data(), gradients.next(), nullptr,
                                       workers);
    }));
    to.products.push_back(point);
  }
}

template <class E>
void measure_attention(Stopwatch& watch, Workers& workers, const Told& told, Measurements& to) {
  std::vector<AttentionShape> all;
  for (const std::int64_t head_dim : {32, 64, 128}) {
    for (const std::int64_t sequence : {64, 128, 256, 512, 1024}) {
      if (head_dim * sequence > 65'536) continue;
      all.push_back({1, sequence, 4, head_dim > 64 ? 2 : 4, head_dim, 0});
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const AttentionShape& s = all[i];
    told(fmt::format("attention over {} tokens, heads of {}, in {}", s.sequence, s.head_dim,
                     name_of(kTypeOf<E>)),
         static_cast<double>(i) / static_cast<double>(all.size()));
    time_attention<E>(s, watch, workers, to);
  }
}

template void measure_products<float>(Stopwatch&, Workers&, const Told&, Measurements&);
template void measure_products<Bf16>(Stopwatch&, Workers&, const Told&, Measurements&);
template void measure_attention<float>(Stopwatch&, Workers&, const Told&, Measurements&);
template void measure_attention<Bf16>(Stopwatch&, Workers&, const Told&, Measurements&);

}  // namespace shardwise::exec
