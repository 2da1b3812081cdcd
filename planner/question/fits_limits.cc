#include "planner/question/fits_limits.h"

#include <array>

#include "planner/estimate/estimate.h"
#include "planner/legality/legality.h"

namespace shardwise {
namespace {

constexpr std::int64_t kSequenceUnit = 256;
constexpr std::int64_t kMostUnits = 65'536;  // 16 Mi tokens
constexpr std::int64_t kMostSequences = 4'096;

/// The largest of 1 … `most` of which `fits` says yes, where it says no of all that are larger: by
/// doubling, then by halves. 0 where it says no of 1.
template <class Fits>
std::int64_t largest(std::int64_t most, Fits fits) {
  std::int64_t yes = 0;
  std::int64_t no = 1;
  while (no <= most && fits(no)) {
    yes = no;
    no *= 2;
  }
  if (no > most) no = most + 1;
  while (no - yes > 1) {
    const std::int64_t middle = yes + (no - yes) / 2;
    (fits(middle) ? yes : no) = middle;
  }
  return yes;
}

class Limits {
 public:
  Limits(const Subject& subject, const Layout& layout, Bytes usable)
      : s_(subject), layout_(layout), usable_(usable) {}

  FitsLimits all() const {
    FitsLimits limits;
    limits.longest_sequence = kSequenceUnit * largest(kMostUnits, [&](std::int64_t units) {
                                JobSpec job = s_.job;
                                job.sequence_length = units * kSequenceUnit;
                                return fits(job, layout_).has_value();
                              });
    limits.largest_micro_batch = largest(kMostSequences, [&](std::int64_t sequences) {
      return fits(with_batch(sequences), with_micro_batch(sequences)).has_value();
    });
    limits.least_recompute = least_recompute();
    return limits;
  }

 private:
  std::optional<Evaluation> fits(const JobSpec& job, const Layout& layout) const {
    if (!is_legal(s_.model, s_.cluster, job, s_.engine, layout)) return std::nullopt;
    const Evaluation cost = evaluate(s_.model, s_.cluster, job, s_.engine, layout);
    if (fit_of(cost, usable_) != Fit::fits) return std::nullopt;
    return cost;
  }

  /// As many micro-batches a step as there are.
  JobSpec with_batch(std::int64_t sequences) const {
    JobSpec job = s_.job;
    const std::int64_t passes = job.microbatches(layout_.dp(), layout_.micro_batch_size);
    job.global_batch_size = passes * layout_.dp() * sequences;
    return job;
  }
  Layout with_micro_batch(std::int64_t sequences) const {
    Layout layout = layout_;
    layout.micro_batch_size = static_cast<std::int32_t>(sequences);
    return layout;
  }

  std::optional<RecomputeChoice> least_recompute() const {
    constexpr std::array<std::int32_t, 8> kIntervals = {0, 16, 8, 6, 4, 3, 2, 1};  // 0: none
    for (const std::int32_t interval : kIntervals) {
      Layout layout = layout_;
      layout.recompute = interval == 0 ? Recompute::none : Recompute::full;
      layout.recompute_interval = interval == 0 ? 1 : interval;
      const std::optional<Evaluation> cost = fits(s_.job, layout);
      if (cost) return RecomputeChoice{layout, cost->point, cost->step_time};
    }
    return std::nullopt;
  }

  const Subject& s_;
  const Layout& layout_;
  Bytes usable_;
};

}  // namespace

FitsLimits fits_limits(const Subject& subject, const Layout& layout, Bytes usable) {
  return Limits(subject, layout, usable).all();
}

}  // namespace shardwise
