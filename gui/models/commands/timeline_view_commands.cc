// What is chosen, marked, pinned and coloured on the timeline, and what is stretched.
#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "gui/models/commands/command_groups.h"
#include "gui/models/question/choices.h"
#include "gui/models/timeline/stretch_model.h"
#include "planner/spec/text/number.h"

namespace shardwise::view {
namespace {

constexpr double kLatestMoment = 1e9;
constexpr double kMostTimeFactor = 1000;

std::vector<std::string> argument_words(const std::string& argument) {
  std::istringstream stream(argument);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// "LANE SECONDS" of the step that is shown. \returns empty, or what is wrong
std::string read_place(const Session& session, const std::string& argument,
                       std::optional<ChosenSpan>& found) {
  const std::vector<std::string> words = argument_words(argument);
  if (words.size() != 2) return "a lane and a time in seconds: 0.compute 0.25";
  const StepLanes* const step = session.state().shown_step();
  const std::optional<LaneName> name = read_lane_name(words[0]);
  const Lane* const lane = step == nullptr || !name ? nullptr : step->find(*name);
  if (!name || lane == nullptr) return words[0] + " is no lane of this step: 0.compute, 1.send";
  double seconds = 0;
  std::string problem = read_number(words[1], 0, kLatestMoment, seconds);
  if (!problem.empty()) return problem;
  constexpr double kSlack = 0.002;  // of what is shown: a few pixels
  const std::size_t span = span_at(*lane, seconds, kSlack * session.state().range.length());
  found.reset();
  if (span < lane->spans.size()) found = ChosenSpan{*name, span};
  return "";
}

std::string select(Session& session, const std::string& argument) {
  std::optional<ChosenSpan> found;
  std::string problem = read_place(session, argument, found);
  if (problem.empty()) session.choose(found);
  return problem;
}

template <int kBy>
std::string move(Session& session, const std::string&) {
  std::optional<ChosenSpan> chosen = session.state().timeline.chosen;
  const StepLanes* const step = session.state().shown_step();
  if (!chosen || step == nullptr) return "choose a span first: click on one";
  const Lane* const lane = step->find(chosen->lane);
  if (lane == nullptr) return "";
  const auto last = static_cast<std::int64_t>(lane->spans.size()) - 1;
  chosen->span = static_cast<std::size_t>(
      std::clamp<std::int64_t>(static_cast<std::int64_t>(chosen->span) + kBy, 0, last));
  session.choose(chosen);
  return "";
}

std::string search(Session& session, const std::string& argument) {
  session.timeline().search = argument;
  const StepLanes* const step = session.state().shown_step();
  if (step == nullptr || argument.empty()) return "";
  const std::optional<ChosenSpan> found =
      next_match(*step, argument, session.state().timeline.chosen);
  if (!found) return "no span has " + argument + " in its name";
  session.choose(found);
  return "";
}

std::string mark(Session& session, const std::string& argument) {
  TimelineView& view = session.timeline();
  double seconds = (session.state().range.from + session.state().range.to) / 2;
  const StepLanes* const step = session.state().shown_step();
  if (view.chosen && step != nullptr) {
    const Lane* const lane = step->find(view.chosen->lane);
    if (lane != nullptr) seconds = lane->spans.active_start[view.chosen->span];
  }
  if (!argument.empty()) {
    std::string problem = read_number(argument, 0, kLatestMoment, seconds);
    if (!problem.empty()) return problem;
  }
  const auto place = std::ranges::lower_bound(view.marks, seconds);
  if (place == view.marks.end() || *place != seconds) view.marks.insert(place, seconds);
  return "";
}

std::string pin_lane(Session& session, const std::string& argument) {
  TimelineView& view = session.timeline();
  std::optional<LaneName> name = read_lane_name(argument);
  if (argument.empty() && view.chosen) name = view.chosen->lane;
  if (!name) return "choose a span of the lane first, or name it: 0.compute";
  if (view.pinned.erase(*name) == 0) view.pinned.insert(*name);
  return "";
}

std::string set_span_colour(Session& session, const std::string& argument) {
  TimelineView& view = session.timeline();
  const auto colour = choose(kColourBys, view.colour, argument);
  if (!colour) return none_of(argument, kColourBys);
  view.colour = *colour;
  return "";
}

std::string show_ranks(Session& session, const std::string& argument) {
  std::int64_t rank = 0;
  std::string problem = read_integer(argument, 0, session.state().plan.layout.world() - 1, rank);
  if (problem.empty()) session.show_rank(rank);
  return problem;
}

std::string scroll(Session& session, const std::string& argument) {
  constexpr double kMost = 1e6;
  double units = 0;
  std::string problem = read_number(argument, 0, kMost, units);
  if (problem.empty()) session.timeline().scroll = units;
  return problem;
}

/// Chooses and measures the span that is exposed longest, and shows it.
std::string worst(Session& session, const std::string&) {
  const StepLanes* const step = session.state().shown_step();
  if (step == nullptr) return "";
  if (!step->worst) return "nothing is exposed in this step";
  const ChosenSpan span = step->worst->span;
  const Lane& lane = *step->find(span.lane);
  const TimeRange longest{lane.spans.active_start[span.span], lane.spans.end[span.span]};
  session.choose(span);
  session.timeline().measured = longest;
  constexpr double kWider = 3;
  session.set_range(zoomed(longest, kWider, 0.5, step->length));
  return "";
}

/// Takes hold of the edge of the block that is there.
std::string grab(Session& session, const std::string& argument) {
  std::optional<ChosenSpan> found;
  std::string problem = read_place(session, argument, found);
  if (!problem.empty() || !found) return problem;
  const Lane& lane = *session.state().shown_step()->find(found->lane);
  const auto [first, last] = lane.block(block_of(lane, found->span));
  session.choose(found);
  session.timeline().grabbed = TimeRange{lane.spans.active_start[first], lane.spans.end[last - 1]};
  session.timeline().grabbed_word = scale_word(lane, first);
  return "";
}

std::string stretch(Session& session, const std::string& argument) {
  const std::vector<std::string> words = argument_words(argument);
  if (words.empty()) {
    session.unstretch();
    return "";
  }
  if (words.size() != 2) return "what is stretched and the factor of its time: backward 0.5";
  double factor = 1;
  std::string problem = read_number(words[1], 1 / kMostTimeFactor, kMostTimeFactor, factor);
  if (!problem.empty()) return problem;
  const std::optional<sim::PriceScale> scale = read_scale(session.state().plan, words[0], factor);
  if (!scale) {
    return words[0] + " is nothing that can be stretched: " + scale_words(session.state().plan);
  }
  session.stretch(words[0], *scale);
  return "";
}

constexpr std::array kTimelineViewCommands = std::to_array<Command>({
    {"timeline.select", "", "Choose the span of a lane at a time", "LANE SECONDS", select},
    {"timeline.next", ".", "Choose the next span of the lane", "", move<1>, nullptr, true},
    {"timeline.previous", ",", "Choose the span before", "", move<-1>, nullptr,
     true},
    {"timeline.cause", "[", "Choose what the span waited for", "",
     [](Session& session, const std::string&) {
       const std::vector<ChosenSpan>& waited = session.state().timeline.waited;
       if (waited.empty()) return std::string("no span is chosen that waited for another");
       session.choose(ChosenSpan(waited.front()));
       return std::string();
     }},
    {"timeline.search", "Ctrl+G", "Choose the next span with these letters in its name", "WORDS",
     search},
    {"timeline.mark", "M", "Mark the chosen span's begin, or a time", "[SECONDS]", mark},
    {"timeline.unmark", "Ctrl+Shift+Y", "Remove all marks", "",
     [](Session& session, const std::string&) {
       session.timeline().marks.clear();
       return std::string();
     }},
    {"timeline.pin", "P", "Pin a lane above the others, or let it go", "[LANE]", pin_lane},
    {"timeline.group", "H", "Group lanes by stage or by stream", "",
     [](Session& session, const std::string&) {
       session.timeline().by_stream = !session.timeline().by_stream;
       return std::string();
     }},
    {"timeline.colour", "Q", "Colour spans by kind, micro-batch or axis",
     "[WHAT]", set_span_colour},
    {"timeline.path", "V", "Show the critical path, or not", "",
     [](Session& session, const std::string&) {
       session.timeline().path_shown = !session.timeline().path_shown;
       return std::string();
     }},
    {"timeline.cut", "Ctrl+Shift+G", "Draw all of a long step, or its begin, middle and end", "",
     [](Session& session, const std::string&) {
       session.timeline().uncut = !session.timeline().uncut;
       return std::string();
     }},
    {"timeline.worst", "Ctrl+J", "Show the span that is exposed longest", "", worst},
    {"timeline.rank", "R", "Show the ranks of the pipeline of a rank", "RANK", show_ranks},
    {"timeline.wheel", "Ctrl+Shift+W", "Let the wheel zoom without Ctrl, or not", "",
     [](Session& session, const std::string&) {
       session.timeline().wheel_zooms = !session.timeline().wheel_zooms;
       return std::string();
     }},
    {"timeline.scroll", "", "Scroll the lanes to a height", "UNITS", scroll},
    {"timeline.stretch", "Ctrl+T",
     "Simulate the step with something at a factor of its time", "[WHAT FACTOR]",
     stretch},
    {"timeline.grab", "", "Take hold of the edge of a block", "LANE SECONDS", grab},
    {"timeline.drop", "", "Let the edge go", "",
     [](Session& session, const std::string&) {
       session.timeline().grabbed.reset();
       return std::string();
     }},
});

}  // namespace

std::span<const Command> timeline_view_commands() { return kTimelineViewCommands; }

}  // namespace shardwise::view
