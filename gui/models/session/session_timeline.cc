#include <algorithm>
#include <memory>
#include <utility>

#include "gui/models/session/session.h"
#include "gui/models/timeline/stretch_model.h"

namespace shardwise::view {

void Session::simulate() {
  state_.simulated.reset();
  clear_timeline();
  const auto plan = std::make_shared<const Plan>(state_.plan);
  const StepQuestion question{state_.timeline.rank, {}};
  worker_.post(
      "lanes",
      [this, plan, question, by = predictions()](const Worker::Task& task) -> Worker::Apply {
        const auto lanes = std::make_shared<StepLanes>(step_lanes(*plan, question, task.stop));
        lanes->report = by.corrected(std::move(lanes->report), *plan);
        return [this, lanes] {
          // Another layout's step is as wide; the same part of it stays in sight.
          const double before = state_.lanes ? state_.lanes->length : 0;
          const double longer = before > 0 ? lanes->length / before : 0;
          state_.range = longer > 0
                             ? TimeRange{state_.range.from * longer, state_.range.to * longer}
                             : TimeRange{0, lanes->length};
          state_.lanes = lanes;
          state_.simulated = lanes->report;
          explain();
        };
      });
}

void Session::choose(std::optional<ChosenSpan> chosen) {
  TimelineView& view = state_.timeline;
  view.chosen = chosen;
  view.waited.clear();
  const StepLanes* const step = state_.shown_step();
  if (!view.chosen || step == nullptr) return;
  const Lane* const lane = step->find(view.chosen->lane);
  if (lane == nullptr || view.chosen->span >= lane->spans.size()) return view.chosen.reset();
  view.waited = waited_for(*step, *view.chosen);
  // What is chosen is in sight.
  const double from = lane->spans.start[view.chosen->span];
  const double to = lane->spans.end[view.chosen->span];
  TimeRange& range = state_.range;
  if (to > range.from && from < range.to) return;
  const double begin = std::clamp((from + to - range.length()) / 2, 0.0,
                                  std::max(0.0, step->length - range.length()));
  range = {begin, begin + range.length()};
}

void Session::show_rank(std::int64_t rank) {
  state_.timeline.rank = rank;
  simulate();
}

void Session::stretch(const std::string& word, const sim::PriceScale& scale) {
  std::optional<Stretch>& now = state_.timeline.stretch;
  // The step before stays in sight until the next is known.
  if (!now || now->word != word) now = Stretch{word, 1, nullptr};
  now->factor = scale.factor;
  choose(std::nullopt);
  const auto plan = std::make_shared<const Plan>(state_.plan);
  const StepQuestion question{state_.timeline.rank, {scale}};
  worker_.post(
      "stretch",
      [this, plan, question, by = predictions()](const Worker::Task& task) -> Worker::Apply {
        const auto step = std::make_shared<StepLanes>(step_lanes(*plan, question, task.stop));
        step->report = by.corrected(std::move(step->report), *plan);
        return [this, step] {
          if (state_.timeline.stretch && step->simulated) state_.timeline.stretch->step = step;
        };
      });
}

void Session::unstretch() {
  if (!state_.timeline.stretch) return;
  choose(std::nullopt);
  state_.timeline.stretch.reset();
  state_.timeline.grabbed.reset();
  worker_.drop("stretch");
}

void Session::clear_timeline() {
  unstretch();
  choose(std::nullopt);
  state_.timeline.measured.reset();
  state_.timeline.grabbed.reset();
}

void Session::close_all() {
  const bool open =
      state_.palette_open || state_.help_open || state_.start_open || state_.details_open;
  state_.palette_open = state_.help_open = false;
  state_.start_open = state_.details_open = false;
  if (!open) clear_timeline();
}

}  // namespace shardwise::view
