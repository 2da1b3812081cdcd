#include "answers/asked_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "planner/engines/engines.h"
#include "planner/engines/executed.h"
#include "planner/estimate/gpu_hour_price.h"
#include "planner/question/asked_engines.h"
#include "planner/question/field_values.h"
#include "planner/question/flags.h"
#include "planner/question/stack_flag.h"
#include "planner/search/advice/default_batch.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/nearest.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/split.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::sim {
namespace {

void append_problems(Diagnostics& to, const Diagnostics& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// The entry of `names` that `text` is, or a problem with the nearest.
template <std::size_t kCount>
std::size_t choose(const std::string& text, const std::string& flag,
                   const std::array<std::string_view, kCount>& names, Diagnostics& problems) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (names[i] == text) return i;
  }
  const auto near = nearest(text, {names.begin(), names.end()});
  problems.push_back(wrong_flag(flag, fmt::format("'{}' is not a choice", shown(text)),
                                near ? fmt::format("did you mean {}?", *near)
                                     : fmt::format("use {}", fmt::join(names, ", "))));
  return 0;
}

/// Says which layouts are left out where our executor trains, under every engine, and which flag
/// searches them too.
void note_executed(PlanQuestion& q) {
  const auto held_of = [&](const EngineProfile* engine) {
    return held_to_executed(q.clusters.front(), *engine, q.locks, q.opened);
  };
  std::vector<HeldField> held = held_of(q.engines.front());
  for (const EngineProfile* engine : q.engines) {
    const std::vector<HeldField> others = held_of(engine);
    std::erase_if(held, [&](const HeldField& each) {
      return std::ranges::find(others, each) == others.end();
    });
  }
  // Both values of a switch leave nothing out.
  std::erase_if(held, [](const HeldField& each) {
    return each.values == std::vector<std::string>{"true", "false"};
  });
  if (held.empty()) return;
  std::vector<std::string> words;
  for (const HeldField& each : held) {
    words.push_back(fmt::format("{} {}", each.key, fmt::join(each.values, " or ")));
  }
  q.assumptions.push_back(
      {"layouts.executed",
       fmt::format(
           "only layouts that shardwise run executes: {} (--open FIELD searches the others)",
           fmt::join(words, ", ")),
       "docs/executor.md"});
}

/// Locks what the stack sets of a layout, but what is locked anyway.
void lock_stack(const AskedPlan& asked, const Subject& subject, PlanQuestion& q) {
  for (const auto& [field, value] : stack_settings(subject.engine, q.model, subject.stack).layout) {
    const bool typed = std::ranges::any_of(asked.locks, [&name = field](const std::string& lock) {
      return lock.find(name + "=") != std::string::npos;
    });
    if (typed) continue;
    q.locks.emplace_back(field, value);
    q.assumptions.push_back({"stack.layout",
                             fmt::format("--stack {}: {} {}", subject.stack, flag_of(field), value),
                             "docs/time.md, Stacks"});
  }
}

/// Engines, model, job and clusters.
void read_job(const AskedPlan& asked, PlanQuestion& q, Diagnostics& problems) {
  AskedJob job = asked.job;
  Result<std::vector<const EngineProfile*>> engines = read_engines(asked.job.engine);
  if (engines) {
    q.engines = *std::move(engines);
    job.engine = q.engines.front()->name;
  } else {
    append_problems(problems, engines.problems());
    job.engine = "";
  }
  if (asks_for_stack(job.texts) && (asked.job.engine.empty() || q.engines.size() > 1)) {
    problems.push_back(
        wrong_flag("--stack", "each engine has its own", "name one engine: --engine"));
    return;
  }
  const std::vector<std::string> counts = split_at(asked.job.gpus, ',');
  job.gpus = counts.front();
  Result<Subject> subject = read_subject(job);
  if (subject) {
    q.model = std::move(subject->model);
    q.job = std::move(subject->job);
    q.assumptions = std::move(subject->assumptions);
    if (!subject->stack.empty()) lock_stack(asked, *subject, q);
    if (subject->recompute_core_attention) q.locks.emplace_back("recompute", "selective");
    q.clusters.push_back(subject->cluster);
    for (std::size_t i = 1; i < counts.size(); ++i) {
      job.gpus = counts[i];
      const Result<Subject> more = read_subject(job);
      if (more) {
        q.clusters.push_back(more->cluster);
      } else {
        append_problems(problems, more.problems());
      }
    }
  } else {
    append_problems(problems, subject.problems());
  }
}

/// What is searched, and by what it is ranked.
void read_space(const AskedPlan& asked, PlanQuestion& q, Diagnostics& problems) {
  q.breadth = static_cast<Breadth>(choose(asked.space, "--space", kBreadthNames, problems));
  q.objective =
      static_cast<Objective>(choose(asked.rank_by, "--rank-by", kObjectiveNames, problems));
  if (!asked.max_memory.empty()) {
    constexpr Bytes kMostMemory = 1024_GiB * 1024;
    const std::string problem =
        read_size(asked.max_memory, 1_GiB, 1_MiB, kMostMemory, q.max_memory);
    if (!problem.empty()) {
      problems.push_back(wrong_flag("--max-memory", problem, "a number alone counts GiB"));
    }
  }
  for (const std::string& text : asked.locks) {
    const auto values = read_values(text, "--lock");
    if (!values) {
      append_problems(problems, values.problems());
      continue;
    }
    for (const auto& [key, value] : *values) {
      const bool twice =
          std::ranges::any_of(q.locks, [&name = key](const auto& l) { return l.first == name; });
      if (twice) problems.push_back(wrong_flag("--lock", fmt::format("{} is locked twice", key)));
      q.locks.emplace_back(key, value);
    }
  }
  for (const std::string& key : asked.opened) {
    Layout scratch;
    const std::string problem = set_field(scratch, key, "");
    // An empty text is no value of a field that exists.
    if (!problem.starts_with(key + ":")) problems.push_back(wrong_flag("--open", problem));
  }
  if (!asked.why_not.empty()) {
    const auto values = read_values(asked.why_not, "--why-not");
    if (!values) append_problems(problems, values.problems());
  }
}

}  // namespace

Result<PlanQuestion> read_question(const AskedPlan& asked) {
  Diagnostics problems;
  PlanQuestion q;
  read_job(asked, q, problems);
  read_space(asked, q, problems);
  if (!problems.empty()) return problems;

  const bool money = q.objective == Objective::cost || q.objective == Objective::tokens_per_dollar;
  const ClusterSpec& cluster = q.clusters.front();
  if (money && !gpu_hour_price(cluster)) {
    return wrong_flag("--rank-by", fmt::format("{} has no price", cluster.name),
                      "put price_per_gpu_hour_usd into a cluster file of your own");
  }
  if (q.job.global_batch_size == 0) {
    q.job.global_batch_size = default_batch(cluster, q.job);
    q.assumptions.push_back(batch_assumption(cluster, q.job));
  }
  note_curves(q.model, *std::ranges::max_element(q.clusters, {}, &ClusterSpec::gpus), q.job,
              q.assumptions);
  q.opened = asked.opened;
  q.executed = executor_trains_on(cluster);
  if (asked.top > 0) q.top = static_cast<std::size_t>(asked.top);
  q.front = asked.front;
  q.threads = asked.threads;
  if (asked.job.engine.empty()) {
    q.engines = engines_of_today(cluster);
    q.takes_engine = q.engines.size() > 1;
  }
  if (q.executed) note_executed(q);
  note_usual_kernels(asked.job, q.model, q.job, q.engines, q.assumptions);
  // Of all engines only what decides between them.
  if (q.takes_engine) {
    std::erase_if(q.assumptions, [](const Assumption& each) {
      return each.id == "rms_norm.usual" || each.id == "adamw.usual";
    });
  }
  return q;
}

Diagnostics with_executed_hint(const PlanQuestion& question, Diagnostics problems) {
  if (!question.executed || problems.empty()) return problems;
  std::string& hint = problems.back().hint;
  if (!hint.empty()) hint += "\n    ";
  hint +=
      "on CPUs only layouts that shardwise run executes are searched; --open FIELD searches more";
  return problems;
}

}  // namespace shardwise::sim
