#pragma once

#include <string>
#include <vector>

#include "answers/certificate.h"
#include "answers/plan_answer.h"
#include "planner/question/field_values.h"
#include "planner/search/advice/why_not.h"
#include "planner/spec/report/report.h"

namespace shardwise::cli {

/// Rows that fit 100 columns; columns that are the same in all rows are left out, the engine's only
/// when there is no choice of engines.
std::string layouts_text(const std::vector<sim::PlanRow>& rows, bool several_engines, bool colour);

/// By what the rows rank, which tie with the best, and what columns mean. \param rows  of the table
/// above
std::string ranking_text(const sim::PlanAnswer& answer, const std::vector<sim::PlanRow>& rows,
                         bool colour);

/// "Best engine: megatron_fsdp (of 7 searched)", and the best of the others. Empty for one engine.
/// Why engines refuse the question is printed for one, for several when `whole`.
std::string engines_text(const sim::PlanQuestion& question, const sim::PlanAnswer& answer,
                         bool whole, bool colour);

/// "111 M combinations, 9,446 valid: 3,290 do not fit, 0 at risk, 6,156 ranked".
std::string counts_text(const sim::PlanAnswer& answer, bool colour);

/// Distance of the nearest layout from fitting, and what would help. \pre answer.best is empty
std::string nothing_fits_text(const sim::PlanQuestion& question, const sim::PlanAnswer& answer,
                              bool colour);

/// Layouts that each rule dropped, and fields that no layout varied.
std::string rules_text(const sim::PlanAnswer& answer, bool colour);

/// The Pareto front, evenly thinned to `most` rows, both ends among them.
std::string front_text(const sim::PlanAnswer& answer, bool several_engines, std::size_t most,
                       bool colour);

/// Answer as above for a program, schema "shardwise.why_not/1".
std::string why_not_json(const WhyNot& answer);

/// The whole answer for a program, schema "shardwise.search/1". `report` is of the best, `proved`
/// null where nothing is.
std::string plan_json(const sim::PlanQuestion& question, const sim::PlanAnswer& answer,
                      const StepReport* report, const sim::Certificate* proved = nullptr);

}  // namespace shardwise::cli
