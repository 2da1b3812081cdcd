#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "answers/question_of_plan.h"
#include "tests/answers/html/pages.h"

namespace shardwise::sim {

/// A plan with the layouts it was chosen from.
struct Ranked {
  Made made;
  PlanQuestion question;
  PlanAnswer answer;

  std::string page() const {
    PageContent content = made.content();
    content.question = &question;
    content.answer = &answer;
    return report_page(content);
  }
};

/// The best layout of Llama-3.1-8B on 16 H100, or another row of its ranking.
inline std::unique_ptr<Ranked> ranked(std::size_t row = 0, std::size_t top = 12) {
  auto all = std::make_unique<Ranked>();
  Plan asked;
  asked.model = *load_model("llama-3.1-8b");
  asked.cluster = *with_gpus(*find_cluster("dgx-h100"), 16);
  asked.engine = *find_engine("megatron_ddp");
  asked.job.global_batch_size = 128;
  asked.layout.dp_shard = 16;
  const PlanQuestion first = question_of(asked, 12);
  const PlanAnswer found = *answer(first);
  all->made = made_of(plan_of(first, found.best.at(row)));
  all->question = question_of(all->made.plan, top);
  all->answer = *answer(all->question);
  return all;
}

}  // namespace shardwise::sim
