#pragma once

#include <span>
#include <string>
#include <vector>

#include "answers/plan_answer.h"
#include "answers/plan_question.h"
#include "planner/question/field_values.h"
#include "planner/search/advice/why_not.h"
#include "planner/search/search.h"

namespace shardwise::sim {

// Sentences about an answer, without colour or line breaks: the command, the report and the viewer
// say them in the same words.

/// "llama-3.1-70b, 70.6 B parameters, 64 GPUs of dgx-h100, megatron_fsdp, batch 1,024 x 4,096
/// tokens". \param cluster  one of the question's
std::string question_words(const PlanQuestion& question, const ClusterSpec& cluster,
                           const std::vector<std::string>& engines);

/// "111 M combinations, 9,446 valid: 3,290 too large, 0 at risk, 6,156 ranked".
std::string counts_words(const SearchCounts& counts);

/// By what the rows rank, which tie with the best, and what columns mean.
/// \param rows  of the table that the words are about \pre answer.best is not empty
std::string ranking_words(const PlanAnswer& answer, std::span<const PlanRow> rows);

/// "Best engine by cost: fsdp2 (of 7 searched). Best layout of each other engine:".
/// \pre answer.best is not empty
std::string engines_words(const PlanQuestion& question, const PlanAnswer& answer);
/// "fsdp2 refuses: --pp: fsdp2 has no pipeline". \pre engine.refused is not empty
std::string refusal_words(const EngineAnswer& engine);

/// How far from fitting the nearest layout is. \pre answer.best is empty
std::string nothing_fits_words(const PlanAnswer& answer);
/// "--open offload_optimizer: 61.2 GiB, 1.32 s a step; or the fewest GPUs, --gpus 24: …", or that
/// neither helps.
std::string way_out_words(const NothingFits& nothing);

/// "With tp 4 the best of 12 layouts that fit is 0.2 s (3.1 %) slower"; "Not valid" as a change of
/// the best layout.
std::string why_not_words(const WhyNot& answer, const FieldValues& values);

}  // namespace shardwise::sim
