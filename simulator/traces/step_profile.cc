#include "simulator/traces/step_profile.h"

#include <algorithm>
#include <array>
#include <span>

namespace shardwise::sim {
namespace {

struct Span {
  double start = 0;
  double end = 0;
};

/// Sorted and joined where they touch.
std::vector<Span> joined(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.start < b.start; });
  std::size_t kept = 0;
  for (const Span& span : spans) {
    if (kept > 0 && span.start <= spans[kept - 1].end) {
      spans[kept - 1].end = std::max(spans[kept - 1].end, span.end);
    } else {
      spans[kept++] = span;
    }
  }
  spans.resize(kept);
  return spans;
}

double length_of(const std::vector<Span>& spans) {
  double sum = 0;
  for (const Span& span : spans) sum += span.end - span.start;
  return sum;
}

/// How much of `span` lies inside `joined` spans.
double inside(const Span& span, const std::vector<Span>& joined) {
  auto at = std::upper_bound(joined.begin(), joined.end(), span.start,
                             [](double value, const Span& each) { return value < each.end; });
  double sum = 0;
  for (; at != joined.end() && at->start < span.end; ++at) {
    sum += std::min(span.end, at->end) - std::max(span.start, at->start);
  }
  return sum;
}

}  // namespace

StepProfile profile_of(const std::vector<DeviceWork>& work, double begin, double end) {
  std::vector<Span> computing;
  std::vector<Span> communicating;
  for (const DeviceWork& each : work) {
    const Span span = {std::max(each.start, begin), std::min(each.end, end)};
    if (span.end <= span.start) continue;
    (computes(each.kind) ? computing : communicating).push_back(span);
  }
  computing = joined(std::move(computing));
  communicating = joined(std::move(communicating));

  StepProfile made;
  made.length = Seconds(end - begin);
  made.computing = Seconds(length_of(computing));
  made.communicating = Seconds(length_of(communicating));
  double hidden = 0;
  for (const Span& span : communicating) hidden += inside(span, computing);
  made.exposed = made.communicating - Seconds(hidden);
  // Sums of spans that fill the step may round to more than it.
  made.idle = std::max(Seconds(0), made.length - made.computing - made.exposed);

  std::array<KindTime, kWorkKinds * kStepPhases> times;
  for (const DeviceWork& each : work) {
    const Span span = {std::max(each.start, begin), std::min(each.end, end)};
    if (span.end < span.start) continue;
    KindTime& time = times[static_cast<std::size_t>(each.kind) * kStepPhases +
                           static_cast<std::size_t>(each.phase)];
    time.kind = each.kind;
    time.phase = each.phase;
    ++time.count;
    time.time += Seconds(span.end - span.start);
    const double beside = computes(each.kind) ? 0.0 : inside(span, computing);
    time.exposed += Seconds(span.end - span.start - beside);
  }
  for (const KindTime& time : times) {
    if (time.count > 0) made.kinds.push_back(time);
  }
  return made;
}

}  // namespace shardwise::sim
