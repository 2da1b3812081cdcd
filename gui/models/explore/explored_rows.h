#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "gui/models/explore/layout_row.h"
#include "gui/models/question/question_limits.h"
#include "planner/search/pricing/search_memory.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"

namespace shardwise::view {

/// The time of a row.
struct TimedRow {
  std::uint32_t row = 0;
  Seconds time;
  bool bound = false;  // it takes no less
};

/// Ranking, which is known once every time is.
struct RankedRows {
  std::vector<std::uint32_t> ranked;
  std::vector<std::uint32_t> front;
};

/// Who hears of rows, on the thread that explores: each is called in this order, `timed` many
/// times.
struct RowListener {
  std::function<void(Answer answer)> priced;  // memory and fit of all, bounds on their times
  std::function<void(std::vector<TimedRow> rows)> timed;
  std::function<void(RankedRows rows)> ranked;
};

/// Which rows get their exact times.
enum class Timing : std::uint8_t {
  all,
  fitting,  // of those that fit the best, kMostPictured, with the front: a picture is there sooner
};
inline constexpr std::size_t kMostPictured = 60;

/// Every layout of the plan's question: its model, cluster, job and engine. \param reference  the
/// report of the plan's layout, for rates: layouts of one question do the same work in another time
/// \param memory  what earlier questions have made and this one adds to; none = nothing. The rows
/// are the same
void explore_rows(const Plan& plan, const StepReport& reference, const std::stop_token& stop,
                  const RowListener& listener, Timing timing = Timing::all,
                  std::shared_ptr<SearchMemory> memory = nullptr,
                  const QuestionLimits& limits = {});

/// Explores all rows at once.
Answer explored_rows(const Plan& plan, const StepReport& reference);

/// Puts what became known into an answer. \pre of its rows
void apply(Answer& answer, const std::vector<TimedRow>& rows);
void apply(Answer& answer, RankedRows rows);

/// Multiplies all times; rates follow. \pre no row has a simulated step yet
void slow_down(Answer& answer, double slower);

/// Gives a row a simulated step, or none; its rates follow.
void set_simulated(LayoutRow& row, std::optional<Seconds> step);

/// Ranks rows by what is known of them: those with a simulated step in its order, as the planner
/// does; then those that fit, those at risk, the others, each by time.
void rank(Answer& answer);
/// Sorts some of its rows as if none had a simulated step.
void rank_by_model(const Answer& answer, std::vector<std::uint32_t>& rows);

/// Finds the Pareto front among the rows whose times are known.
void mark_front(Answer& answer);

/// Gives rows the verdicts of another usable memory, counts them and finds their front. Their
/// simulated steps go: others may be the best.
void judge(Answer& answer, Bytes usable);

/// Gives rows what their tokens cost by the report, which is of one of them.
void price(Answer& answer, const StepReport& reference);

/// A row of its own for a layout that the space does not list; there is one at most.
/// \returns its index
std::size_t put_typed(Answer& answer, const Layout& layout, const StepReport& report);

}  // namespace shardwise::view
