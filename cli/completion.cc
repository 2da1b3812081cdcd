#include "cli/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "answers/plan_question.h"
#include "planner/engines/engines.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"

namespace shardwise::cli {
namespace {

using Words = std::vector<std::string>;

template <class E>
Words names_of() {
  Words names;
  for (const std::string_view name : kNamesOf<E>) {
    if (name != "by_engine") names.emplace_back(name);
  }
  return names;
}

/// "on|off" as two words; nothing for "NAME|FILE", which stands for a value.
Words alternatives_in(const std::string& type) {
  Words words{""};
  for (const char c : type) {
    if (c == '|') {
      words.emplace_back();
    } else if (c >= 'A' && c <= 'Z') {
      return {};
    } else {
      words.back() += c;
    }
  }
  return words.size() > 1 ? words : Words{};
}

Words locks() {
  Words words;
  for (const std::string& key : layout_keys()) words.push_back(key + "=");
  return words;
}

Words values_of(const std::string& flag, const std::string& type) {
  if (flag == "--model") return catalogue_names("models");
  if (flag == "--cluster") return catalogue_names("clusters");
  if (flag == "--gpu") return catalogue_names("gpus");
  if (flag == "--to" || flag == "--from") return framework_names();
  if (flag == "--engine") return engine_names();
  if (flag == "--schedule") return names_of<PipelineSchedule>();
  if (flag == "--recompute") return names_of<Recompute>();
  if (flag == "--cp-kind") return names_of<ContextParallelKind>();
  if (flag == "--precision") return {"bf16", "fp16", "fp32", "fp8", "fp4"};
  if (flag == "--attention") return names_of<AttentionKernel>();
  if (flag == "--loss") return names_of<LossKernel>();
  if (flag == "--rms-norm") return names_of<RmsNormKernel>();
  if (flag == "--adamw") return names_of<AdamwKernel>();
  if (flag == "--kernels") return names_of<Kernels>();
  if (flag == "--tp-overlap") return names_of<TpOverlap>();
  if (flag == "--fp8-recipe") return names_of<Fp8Recipe>();
  if (flag == "--optimizer") return names_of<Optimizer>();
  if (flag == "--expert-dispatch") return names_of<ExpertDispatch>();
  if (flag == "--zero-stage") return {"0", "1", "2", "3"};
  if (flag == "--granularity") return {"layer", "kernel"};
  if (flag == "--transport") return {"usual", "registered", "copy_engines"};
  if (flag == "--rank-by") return {sim::kObjectiveNames.begin(), sim::kObjectiveNames.end()};
  if (flag == "--lock" || flag == "--why-not") return locks();
  if (flag == "--open") return layout_keys();
  return alternatives_in(type);
}

/// What the check of a positional accepts: CLI::IsMember shows it as "KIND:{models,clusters}".
Words positionals_of(const CLI::App& verb) {
  Words words;
  for (const CLI::Option* option : verb.get_options()) {
    if (!option->get_positional()) continue;
    const std::string type = option->get_type_name();
    const std::size_t open = type.find('{');
    if (open == std::string::npos) continue;
    std::istringstream members(type.substr(open + 1, type.find('}') - open - 1));
    for (std::string word; std::getline(members, word, ',');) words.push_back(word);
  }
  return words;
}

const CLI::Option* flag_named(const CLI::App& verb, const std::string& name) {
  if (!name.starts_with('-')) return nullptr;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->check_name(name)) return option;
  }
  return nullptr;
}

std::vector<Candidate> beginning_with(const std::string& typed, const Words& words) {
  std::vector<Candidate> found;
  for (const std::string& word : words) {
    if (word.starts_with(typed)) found.push_back({word, ""});
  }
  return found;
}

std::vector<Candidate> flags_beginning_with(const std::string& typed, const CLI::App& verb) {
  std::vector<Candidate> found;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      const std::string flag = "--" + name;
      if (flag.starts_with(typed)) found.push_back({flag, option->get_description()});
    }
  }
  return found;
}

constexpr const char* kBash = R"(# bash completion of shardwise: source this file, or put it into
# ~/.local/share/bash-completion/completions/shardwise
_shardwise() {
  local word rest
  COMPREPLY=()
  while IFS=$'\t' read -r word rest; do
    COMPREPLY+=("$word")
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
  return 0
}
complete -o bashdefault -o default -F _shardwise shardwise
)";

constexpr const char* kZsh = R"(#compdef shardwise
# zsh completion of shardwise: put this file into a folder of $fpath as _shardwise
_shardwise() {
  local -a found
  local line
  while IFS= read -r line; do
    found+=("${line%%$'\t'*}:${line#*$'\t'}")
  done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( $#found )); then
    _describe shardwise found
  else
    _files
  fi
}
if [ "$funcstack[1]" = "_shardwise" ]; then
  _shardwise "$@"
else
  compdef _shardwise shardwise
fi
)";

constexpr const char* kFish = R"(# fish completion of shardwise: put this file into
# ~/.config/fish/completions/shardwise.fish
function __shardwise_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    $words[1] __complete $words[2..-1] "$current" 2>/dev/null
end
complete -c shardwise -a '(__shardwise_complete)'
)";

}  // namespace

std::vector<Candidate> candidates(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return {};
  const std::string& typed = words.back();
  const Words verbs = [&] {
    Words names;
    for (const CLI::App* verb : app.get_subcommands({})) names.push_back(verb->get_name());
    return names;
  }();
  if (words.size() == 1) {
    if (typed.starts_with('-')) return flags_beginning_with(typed, app);
    std::vector<Candidate> found;
    for (const CLI::App* verb : app.get_subcommands({})) {
      if (!verb->get_name().starts_with(typed)) continue;
      found.push_back({verb->get_name(), verb->get_description()});
    }
    return found;
  }
  if (words.front() == "help")
    return words.size() == 2 ? beginning_with(typed, verbs) : std::vector<Candidate>{};
  if (std::ranges::find(verbs, words.front()) == verbs.end()) return {};
  const CLI::App& verb = *app.get_subcommand(words.front());
  const CLI::Option* before = flag_named(verb, words[words.size() - 2]);
  if (before != nullptr && before->get_expected_min() > 0 && before->get_type_size() > 0) {
    const Words names = before->get_lnames();
    const std::string type = before->get_type_name();  // after a colon come what checks say
    return beginning_with(typed, values_of(names.empty() ? "" : "--" + names.front(),
                                           type.substr(0, type.find(':'))));
  }
  if (typed.starts_with('-')) return flags_beginning_with(typed, verb);
  return beginning_with(typed, positionals_of(verb));
}

std::string completion_script(const std::string& shell) {
  if (shell == "zsh") return kZsh;
  if (shell == "fish") return kFish;
  return kBash;
}

}  // namespace shardwise::cli
